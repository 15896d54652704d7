"""The layers of the pipeline over a whole list, as docs/pipeline.md has them. Nothing is folded,
kept or looked up: each form is worked out anew from all messages, which is slow and plain.

Messages are numbered from 1, as they are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import Addressee, Gone
from contextengine_server.engines.pipeline import PipelineOptions

Numbered = list[tuple[int, pb.Message]]


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message without some of its reasoning, as it is to be shown."""

    parts: list[pb.Part] = field(default_factory=list)


def _numbered(messages: Sequence[pb.Message]) -> Numbered:
    return list(enumerate(messages, 1))


def _users(messages: Sequence[pb.Message]) -> list[int]:
    return [number for number, one in _numbered(messages) if one.role == pb.ROLE_USER]


def _replies(messages: Sequence[pb.Message]) -> Numbered:
    return [one for one in _numbered(messages) if one[1].role == pb.ROLE_ASSISTANT]


# Layers 1 to 4: reasoning.


def without_reasoning(
    messages: Sequence[pb.Message],
    options: PipelineOptions,
    reader: Addressee,
    untagged: Callable[[str], str],
) -> dict[int, list[pb.Part]]:
    """What stands in place of messages, by number. `untagged`: a text without tags of reasoning."""
    users = _users(messages)
    if not users:
        return {}
    over = users[-1]
    said = [number for number, _ in _replies(messages) if number < over]
    keep = options.thinking_keep_turns
    block = max(1, keep // 3)
    gone = max(0, len(said) - keep) // block * block
    young = max(said[gone] if gone else 0, _drifted(messages, options, reader))
    shown = {}
    for number, message in _replies(messages):
        sealed = any(_signed(part) or part.reasoning.redacted_data for part in message.parts)
        pinned = "pinned" in message.labels
        if number >= over or pinned or (sealed and not reader.reasoning_may_go):
            continue
        parts = _spoken(message, number < young, untagged)
        if parts is not None and parts != list(message.parts):
            shown[number] = parts
    return shown


def _spoken(message: pb.Message, old: bool, untagged: Callable[[str], str]) -> list[pb.Part] | None:
    """The parts that are left of a message."""
    gone = [
        part.HasField("reasoning") and not part.reasoning.redacted_data and (old or _signed(part))
        for part in message.parts
    ]
    redacted = any(part.reasoning.redacted_data for part in message.parts)
    parts = []
    for part, goes in zip(message.parts, gone, strict=True):
        left = pb.Part()
        left.CopyFrom(part)
        left.ClearField("thought_signature")
        # Beside what only the provider can read tags stand, unless other reasoning goes.
        if part.HasField("text") and (any(gone) or not redacted):
            left.text.text = untagged(part.text.text)
        emptied = part.HasField("text") and part.text.text and not left.text.text
        if not goes and not emptied:
            parts.append(left)
    return parts


def _signed(part: pb.Part) -> bool:
    return part.HasField("reasoning") and bool(
        part.reasoning.signature and not part.reasoning.redacted_data
    )


def _drifted(messages: Sequence[pb.Message], options: PipelineOptions, reader: Addressee) -> int:
    """The number of the first message before which reasoning is worth nothing."""
    users, model, switched, paused = _users(messages), "", 0, 0
    spoke: int | None = None
    for number, message in _numbered(messages):
        at = message.timestamp.ToMilliseconds() if message.HasField("timestamp") else None
        if message.role == pb.ROLE_ASSISTANT:
            if model and message.model and message.model != model:
                switched = number
            model = message.model or model
            spoke = spoke if at is None else at
        elif message.role == pb.ROLE_USER and at is not None and spoke is not None:
            paused = number if at - spoke > options.replay_drift_idle_ms else paused
    if model and reader.name and model != reader.name:
        switched = users[-1]
    return max(paused, min(switched, users[-1]))


# Layer 5: the history window.


def hidden(turns: int, options: PipelineOptions, anchors: int) -> range:
    """The turns, from 0, that the window hides. `anchors`: the first turns that stay."""
    shown = options.history_turns
    block = max(1, shown // 3)
    gone = max(0, turns - shown) // block * block
    return range(min(anchors, gone), gone)


# Layers 6 and 7: dead content, and old results.


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answered."""

    number: int
    tool: str
    read: object
    """What was read, where that is known; None: nothing that is."""
    tokens: int
    before: int
    """The tokens of all before its call."""
    failed: bool = False
    pictured: bool = False


def in_short(results: Sequence[Result], options: PipelineOptions) -> dict[int, Gone]:
    """Why results are left out, by number; but for those that are too small for it."""
    apart = (options.observation_trigger_chars - options.observation_deactivation_chars) / 3.5 / 2
    sums = [sum(one.tokens for one in results[: at + 1]) for at in range(len(results))]
    ticks = [
        at for at in range(len(sums))
        if sums[at] // int(apart) > (sums[at - 1] if at else 0) // int(apart)
    ]  # fmt: skip
    if not ticks:
        return {}
    there = results[: ticks[-1] + 1]
    newest = there[-1]
    decided: dict[int, Gone] = {}
    for at, one in enumerate(there):
        if len(there) - at <= options.eviction_min_age or one.number == newest.number:
            continue
        again = [
            later for later in there[at + 1 :]
            if one.read is not None and later.read == one.read and not later.failed
        ]  # fmt: skip
        if again and not one.failed:
            decided[one.number] = Gone.SUPERSEDED
        elif one.pictured:
            decided[one.number] = Gone.OLD_IMAGE
        elif one.failed:
            decided[one.number] = Gone.OLD_ERROR
    if 3.5 * (newest.before + sum(one.tokens for one in there)) < options.observation_trigger_chars:
        return decided
    counts = {"web": 0, "other": 0}
    windows = {"web": options.ephemeral_keep_window, "other": options.observation_keep_window}
    for one in reversed(there):
        if one.tool in ("read", "memory_search", "session_search"):
            continue
        tier = "web" if one.tool in ("web_search", "mcp__wiki__page") else "other"
        counts[tier] += 1
        if counts[tier] > windows[tier] and one.number not in (newest.number, *decided):
            decided[one.number] = Gone.MASKED
    return decided
