"""A session under the compressor that goes on."""

from __future__ import annotations

from typing import Any

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.fold import apply, extend
from contextengine_server.context.lawful import snapshot_of
from contextengine_server.context.message import Form
from contextengine_server.context.plan import segment_slots
from contextengine_server.engines.compressor import CompressorEngine, CompressorOptions
from contextengine_server.engines.contract import CompactionGoal, CompactionStep, NothingToDo
from contextengine_server.testing.engine import views
from contextengine_server.testing.engine.real_sessions import REAL_SHAPER, count
from contextengine_server.testing.engine.trial import lawful
from contextengine_server.testing.oracle.pairs import ViewRow
from contextengine_server.wire.slots import item_of


class Session:
    """A session that goes on."""

    def __init__(self, **options: Any) -> None:
        self.engine = CompressorEngine(CompressorOptions(**options))
        self.view, self.count, self.made = views.empty(), 0, 0

    def add(self, *messages: pb.Message) -> int:
        entries = []
        for message in messages:
            self.count += 1
            entries.append(views.entry_of(ViewRow(self.count, message, 100 * self.count), count))
        apply(self.view, extend(self.view, entries, REAL_SHAPER))
        return self.count

    def say(self, words: int = 5, role: pb.Role = pb.ROLE_USER) -> int:
        message = pb.Message(role=role)
        message.parts.add().text.text = f"said{self.count} " * words
        return self.add(message)

    def reply(self, words: int = 5) -> int:
        return self.say(words, pb.ROLE_ASSISTANT)

    def turns(self, number: int, words: int = 100) -> None:
        for _ in range(number):
            self.say(words)
            self.reply(words)

    def call(self, words: int = 100, path: str = "", *, says: str = "", image: bool = False) -> int:
        """A file is read, or a probe asked; the sequence of what it says."""
        id = f"c{self.count}"
        asked = pb.Message(role=pb.ROLE_ASSISTANT)
        part = asked.parts.add().tool_call
        part.call_id, part.name = id, "read_file" if path else "probe"
        part.arguments_json = b'{"path": "%s"}' % path.encode() if path else b"{}"
        answer = pb.Message(role=pb.ROLE_TOOL)
        result = answer.parts.add().tool_result
        result.call_id, result.name = id, part.name
        result.parts.add().text.text = says or f"line{0 if path else self.count} " * words
        if image:
            result.parts.add().image.uri = "https://example.org/a.png"
        return self.add(asked, answer)

    def step(self, budget: int, **goal: Any) -> CompactionStep | NothingToDo:
        goal = {"floor": 110, **goal}
        return self.engine.compaction(self.view, CompactionGoal(budget, **goal))

    def compact_step(self, budget: int, **goal: Any) -> CompactionStep:
        step = self.step(budget, **goal)
        assert isinstance(step, CompactionStep), step
        return step

    def compact(self, budget: int, **goal: Any) -> CompactionStep:
        step = self.compact_step(budget, **goal)
        self.made += 1
        below = [one for one in self.view.summaries if one.id in step.replaces]
        made, _ = views.summary(
            self.view, step.first, step.last, "word " * max(1, step.target_tokens - 100),
            created=100 * self.count + self.made, count=count, below=below, depth=step.depth,
            role=step.role,
            before=snapshot_of(self.view, self.engine.saved(self.view, ReferenceTokens(budget))),
        )  # fmt: skip
        self.view.place(made)
        return step

    def shown(self, budget: int) -> dict[int, Form]:
        """The messages shown and their forms, by sequence; 0: the summary."""
        plan = self.engine.plan(self.view, ReferenceTokens(budget))
        assert lawful(self.view, self.engine, plan, budget) is None
        slots = [slot for part in plan.segments for slot in segment_slots(part, self.view)]
        self.tokens = sum(slot.tokens for slot in slots)
        self.texts = {slot.sequence: text(slot.frame) for slot in slots}
        self.roles = {slot.sequence: item_of(slot.frame).message.role for slot in slots}
        return {slot.sequence: slot.form for slot in slots}


def text(frame: bytes) -> str:
    parts = item_of(frame).message.parts
    return " ".join(
        [part.text.text for part in parts]
        + [one.text.text for part in parts for one in part.tool_result.parts]
    )
