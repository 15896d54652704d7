"""Pictures of a prompt as Codex takes them. One that cannot be decoded Codex replaces by a line of
its own, or refuses the turn; so it is left out here, and said (rule X11)."""

from __future__ import annotations

import zlib

from msgspec.structs import replace

from ..media import data_url, is_web_address, resolved
from ..model import Image

DETAILS = ("auto", "low", "high", "original")
_PNG = b"\x89PNG\r\n\x1a\n"


def kind_of(data: bytes) -> str:
    """The media type of a whole picture by its bytes: PNG, JPEG, GIF or WebP; empty for everything
    else, and where the end is missing."""
    if data.startswith(_PNG):
        return "image/png" if _png_is_whole(data) else ""
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg" if b"\xff\xd9" in data[3:] else ""
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif" if data.rstrip(b"\0").endswith(b";") else ""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp" if len(data) >= 8 + int.from_bytes(data[4:8], "little") else ""
    return ""


def input_of(part: Image) -> tuple[dict[str, str] | None, str]:
    """The picture as an input of turn/start, or None and what is wrong with it."""
    detail = {"detail": part.detail} if part.detail in DETAILS else {}
    picture = resolved(part)
    if picture is not None and is_web_address(picture):
        return {"type": "image", "url": part.uri} | detail, ""
    if picture is None or picture.data is None:
        return (
            None,
            (
                f"its address {part.uri[:100]!r} is none that Codex fetches: give its bytes, or"
                " http(s)"
            ),
        )
    kind = kind_of(picture.data)
    if not kind:
        return (
            None,
            (
                f"{len(picture.data)} bytes of type {picture.mime!r} are not a complete PNG,"
                " JPEG, GIF or WebP"
            ),
        )
    return {"type": "image", "url": data_url(replace(picture, mime=kind))} | detail, ""


def _png_is_whole(data: bytes) -> bool:
    """True where the chunks, each with its right checksum, go from the header through pixels to the
    end."""
    at, names = len(_PNG), []
    while at + 12 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        body, check = data[at + 4 : at + 8 + size], data[at + 8 + size : at + 12 + size]
        if len(check) < 4 or zlib.crc32(body).to_bytes(4, "big") != check:
            return False
        names.append(body[:4])
        if names[-1] == b"IEND":
            break
        at += 12 + size
    return names[:1] == [b"IHDR"] and b"IDAT" in names and names[-1:] == [b"IEND"]
