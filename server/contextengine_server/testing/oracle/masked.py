"""What a message with a placeholder must be: as it was stored, but for parts in place of which it
says how to get them back. Calls stay, and results answer what they answered."""

from __future__ import annotations

from contextengine_proto.v1 import message_pb2 as pb

from . import offloaded


def dishonest(item: pb.Item, stored: pb.Message) -> str | None:
    """What is wrong with a message that is shown with a placeholder; None where it says the
    truth."""
    shown = item.message
    if shown.HasField("native"):
        return "carries the native form, which says all of it"
    if (shown.role, shown.id, shown.name) != (stored.role, stored.id, stored.name):
        return "is not the stored message"
    if len(shown.parts) != len(stored.parts):
        return "has other parts than the stored message"
    changed = [
        (part, whole)
        for part, whole in zip(shown.parts, stored.parts, strict=True)
        if part != whole
    ]
    for part, whole in changed:
        if offloaded.wrong(part, whole, item.origin.sequence) is None:
            continue
        if whole.HasField("tool_call") or not _same_result(part, whole):
            return "changes a call, or what a result answers"
        if f"sequence {item.origin.sequence} " not in _said(part):
            return "does not say how to get back what it leaves out"
    return None if changed else "leaves nothing out"


def _said(part: pb.Part) -> str:
    if part.HasField("tool_result"):
        return " ".join(inner.text.text for inner in part.tool_result.parts)
    return part.reasoning.text if part.HasField("reasoning") else part.text.text


def _same_result(part: pb.Part, whole: pb.Part) -> bool:
    bare, stored = pb.ToolResultPart(), pb.ToolResultPart()
    bare.CopyFrom(part.tool_result)
    stored.CopyFrom(whole.tool_result)
    bare.ClearField("parts")
    stored.ClearField("parts")
    return bare == stored
