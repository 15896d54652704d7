"""What the parts of a message that arrives may be."""

from __future__ import annotations

from collections.abc import Iterable
from operator import methodcaller

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.errors import InvalidField

KIND = methodcaller("WhichOneof", "kind")
"""What a part is."""
TEXT = frozenset({"text"})
"""The kind of part that is nothing but text."""
MAX_FILE_BYTES = 2**53
"""More than any file system holds: a size above is a mistake, and its tokens would not fit a
sum."""


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
