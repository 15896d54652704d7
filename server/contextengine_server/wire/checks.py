"""What a message that arrives may be: whatever is not is refused before anything of it is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import methodcaller

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.errors import InvalidField

KIND = methodcaller("WhichOneof", "kind")
"""What a part is."""
TEXT = frozenset({"text"})
"""The kind of part that is nothing but text."""
MAX_ID_BYTES = 256
MAX_FORMAT_BYTES = 64
MAX_PARTS = 10_000
MAX_FILE_BYTES = 2**53
"""More than any file system holds: a size above is a mistake, and its tokens would not fit a
sum."""
_TIMESTAMP_RANGE = (-62_135_596_800, 253_402_300_799)


_NAMED = ("id", "custom_role", "name", "idempotency_key")


def check(
    message: pb.Message, parts: Sequence[pb.Part], kinds: Sequence[str | None], field: str
) -> None:
    """Raises InvalidField for a message that cannot be, naming what is wrong under `field`.
    `parts`: its own; `kinds`: what these are."""
    if message.role == pb.ROLE_UNSPECIFIED:
        raise InvalidField(f"{field}.role", "is required: say who speaks, for example ROLE_USER")
    if message.role == pb.ROLE_CUSTOM and not message.custom_role:
        raise InvalidField(f"{field}.custom_role", "is required with ROLE_CUSTOM: name the role")
    named = message.id, message.custom_role, message.name, message.idempotency_key
    for name, given in zip(_NAMED, named, strict=True) if any(named) else ():
        if not given:
            continue
        if len(given.encode()) > MAX_ID_BYTES:
            raise InvalidField(
                f"{field}.{name}", f"is longer than {MAX_ID_BYTES} bytes: shorten it"
            )
        if "\0" in given:
            raise InvalidField(f"{field}.{name}", "holds a NUL character: remove it")
    if len(parts) > MAX_PARTS:
        raise InvalidField(
            f"{field}.parts",
            f"has {len(parts)} parts, at most {MAX_PARTS} are allowed: split the message",
        )
    if message.HasField("native") and len(message.native.format.encode()) > MAX_FORMAT_BYTES:
        raise InvalidField(
            f"{field}.native.format", f"is longer than {MAX_FORMAT_BYTES} bytes: shorten it"
        )
    if message.HasField("timestamp"):
        lowest, highest = _TIMESTAMP_RANGE
        if (
            not lowest <= message.timestamp.seconds <= highest
            or not 0 <= message.timestamp.nanos < 1_000_000_000
        ):
            raise InvalidField(f"{field}.timestamp", "must be a time in the years 1 to 9999")
    if not TEXT.issuperset(kinds):
        check_parts(parts, f"{field}.parts")


def check_parts(parts: Iterable[pb.Part], field: str) -> None:
    """Raises InvalidField for a part that cannot be, naming it under `field`."""
    for index, part in enumerate(parts):
        kind = part.WhichOneof("kind")
        if kind == "tool_call":
            if not part.tool_call.call_id:
                raise InvalidField(
                    f"{field}[{index}].tool_call.call_id", "is required: results are paired by it"
                )
            if not part.tool_call.name:
                raise InvalidField(f"{field}[{index}].tool_call.name", "is required")
        elif kind == "tool_result":
            if not part.tool_result.call_id:
                raise InvalidField(
                    f"{field}[{index}].tool_result.call_id",
                    "is required: it names the call answered",
                )
            within = part.tool_result.parts[:]
            if not TEXT.issuperset(map(KIND, within)):
                check_parts(within, f"{field}[{index}].tool_result.parts")
        elif kind == "file":
            if not 0 <= part.file.size_bytes <= MAX_FILE_BYTES:
                raise InvalidField(
                    f"{field}[{index}].file.size_bytes",
                    f"is {part.file.size_bytes}: give 0 to {MAX_FILE_BYTES}",
                )
        elif kind == "image":
            for name in ("width", "height"):
                if getattr(part.image, name) < 0:
                    raise InvalidField(
                        f"{field}[{index}].image.{name}", "is negative: give pixels, 0 for unknown"
                    )
