"""Pictures and files as the formats take them: by their bytes, or by an address that the provider
itself reads."""

from __future__ import annotations

import base64
import binascii
from urllib.parse import unquote_to_bytes

from msgspec.structs import replace

from .model import File, Image

IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""What OpenAI and Anthropic look at."""


def encoded(data: bytes) -> str:
    """Base64."""
    return base64.b64encode(data).decode()


def resolved(part: Image | File) -> Image | File | None:
    """The medium, with bytes of its own where its address holds them; None where there are neither
    bytes nor an address."""
    if part.data is None and part.uri.startswith("data:"):
        mime, data = _data_of(part.uri)
        part = replace(part, mime=mime or part.mime, data=data, uri="")
    return part if part.data or (part.data is None and part.uri) else None


def is_web_address(part: Image | File) -> bool:
    """True where anybody can fetch it."""
    return part.data is None and part.uri.startswith(("https://", "http://"))


def is_provider_file(part: Image | File) -> bool:
    """True where its address is a name that the provider gave it: none with a scheme, and no
    path."""
    return part.data is None and bool(part.uri) and "/" not in part.uri and ":" not in part.uri


def data_url(part: Image | File) -> str:
    """The medium itself as a URL."""
    return f"data:{part.mime};base64,{encoded(part.data or b'')}"


def _data_of(uri: str) -> tuple[str, bytes]:
    """The type and the bytes in a data URL; no bytes where it cannot be read."""
    head, _, body = uri.removeprefix("data:").partition(",")
    mime, _, more = head.partition(";")
    plain = unquote_to_bytes(body)
    if not more.endswith("base64"):
        return mime, plain
    try:
        return mime, base64.b64decode(plain, validate=True)
    except binascii.Error:
        return mime, b""
