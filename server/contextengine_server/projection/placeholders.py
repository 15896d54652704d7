"""What stands in the place of what a target cannot show: enough to know it again, and no more."""

from __future__ import annotations

from .model import File, Image, Opaque, Part
from .text import sha256


def size_and_hash(part: Image | File) -> tuple[int, str]:
    """Bytes and digest of a medium; 0 and empty where only its address is known."""
    return (len(part.data), sha256(part.data)) if part.data is not None else (0, "")


def placeholder(part: Part) -> str:
    """A line in place of a medium or a vendor's item."""
    if isinstance(part, Opaque):
        return f"[{part.type or 'item'} of {part.format} left out: {len(part.json)} characters]"
    assert isinstance(part, Image | File)
    kind = "image" if isinstance(part, Image) else "file"
    if part.data is None:
        return f"[{kind} {part.mime or 'of unknown type'} left out: {part.uri}]"
    size, digest = size_and_hash(part)
    return f"[{kind} {part.mime or 'of unknown type'} left out: {size} bytes, sha256 {digest}]"
