"""What a message without its reasoning must be: as it was stored, but for reasoning, signatures and
what stands between tags. What only the provider can read is there, and nothing is added."""

from __future__ import annotations

from collections.abc import Iterable

from contextengine_proto.v1 import message_pb2 as pb


def dishonest(item: pb.Item, stored: pb.Message) -> str | None:
    """What is wrong with a message that is shown without reasoning; None where it is well."""
    shown = item.message
    if shown.HasField("native"):
        return "carries the native form, which says all of it"
    if (shown.role, shown.id, shown.name) != (stored.role, stored.id, stored.name):
        return "is not the stored message"
    left = list(stored.parts)
    for part in shown.parts:
        skipped = _skip_to(left, part)
        if skipped is None:
            if len(shown.parts) == 1 and f"sequence {item.origin.sequence} " in part.text.text:
                skipped, left = left, []
            else:
                return "has a part that the stored message has not"
        if any(_must_stay(each) for each in skipped):
            return "has lost more than reasoning"
    if any(_must_stay(each) for each in left):
        return "has lost more than reasoning"
    whole = list(shown.parts) == list(stored.parts)
    return "leaves nothing out" if whole else None


def _skip_to(left: list[pb.Part], part: pb.Part) -> list[pb.Part] | None:
    """Takes all before what this part shows, and that; None where nothing is like it."""
    skipped: list[pb.Part] = []
    while left:
        one = left.pop(0)
        if _shows(part, one):
            return skipped
        skipped.append(one)
    left[:] = skipped
    return None


def _shows(part: pb.Part, stored: pb.Part) -> bool:
    if part.HasField("reasoning"):
        return part == stored
    bare = pb.Part()
    bare.CopyFrom(stored)
    if not part.thought_signature:
        bare.ClearField("thought_signature")
    if part.HasField("text") and "<" in bare.text.text:
        if not bare.HasField("text") or not _within(part.text.text, bare.text.text):
            return False
        bare.text.text = part.text.text
    return part == bare


def _must_stay(part: pb.Part) -> bool:
    if part.HasField("reasoning"):
        return bool(part.reasoning.redacted_data)
    return not (part.HasField("text") and "<" in part.text.text)


def _within(some: Iterable[str], whole: str) -> bool:
    """True where these characters stand in the text in this order."""
    rest = iter(whole)
    return all(character in rest for character in some)
