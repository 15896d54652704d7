"""A session of the pipeline, and what its replies reason."""

from __future__ import annotations

from typing import Any

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.fold import apply, extend
from contextengine_server.context.message import Addressee
from contextengine_server.context.plan import segment_slots
from contextengine_server.engines.pipeline import PipelineEngine, PipelineOptions
from contextengine_server.engines.pipeline.past import Past, past_of
from contextengine_server.testing.engine import views
from contextengine_server.testing.engine.trial import lawful
from contextengine_server.testing.oracle.pairs import ViewRow
from contextengine_server.wire.slots import item_of

BUDGET = ReferenceTokens(100_000)
ANTHROPIC = Addressee("claude", "anthropic", "claude", reasoning_may_go=True)


class Session:
    """A session that goes on by turns."""

    def __init__(
        self, reader: Addressee = ANTHROPIC, *, keep: int = 5, idle: int = 1_800_000
    ) -> None:
        options = PipelineOptions(
            history_turns=100, thinking_keep_turns=keep, replay_drift_idle_ms=idle
        )
        self.engine, self.options = PipelineEngine(options), options
        self.view, self.count = views.empty(), 0
        self.view.reader = reader

    def add(self, *messages: pb.Message) -> int:
        for message in messages:
            self.count += 1
            row = ViewRow(self.count, message, 100 * self.count)
            apply(self.view, extend(self.view, [views.entry_of(row)], views.SHAPER))
        return self.count

    def ask(self, at: int | None = None) -> int:
        message = said(pb.ROLE_USER, "go on")
        if at is not None:
            message.timestamp.FromMilliseconds(at)
        return self.add(message)

    def reply(self, *parts: pb.Part, at: int | None = None, **made: Any) -> int:
        """A reply with these parts before its text."""
        message = pb.Message(role=pb.ROLE_ASSISTANT, parts=parts, **made)
        message.parts.add().text.text = "done"
        if at is not None:
            message.timestamp.FromMilliseconds(at)
        return self.add(message)

    def call(self, *parts: pb.Part, signature: bytes = b"") -> int:
        """A reply with these parts that calls a tool, which answers; the reply's sequence."""
        message = pb.Message(role=pb.ROLE_ASSISTANT, parts=parts)
        part = message.parts.add(thought_signature=signature)
        part.tool_call.call_id, part.tool_call.name = f"c{self.count}", "probe"
        answer = pb.Message(role=pb.ROLE_TOOL)
        answer.parts.add().tool_result.call_id = f"c{self.count}"
        answer.parts[0].tool_result.parts.add().text.text = "found"
        return self.add(message, answer) - 1

    def turns(self, count: int, *parts: pb.Part) -> list[int]:
        """So many turns of one reply with these parts; the sequences of the replies."""
        made = []
        for _ in range(count):
            self.ask()
            made.append(self.reply(*parts))
        return made

    def items(self) -> dict[int, pb.Item]:
        """What is shown, by sequence."""
        plan = self.engine.plan(self.view, BUDGET)
        assert lawful(self.view, self.engine, plan, BUDGET) is None
        self.forms = plan.forms
        slots = [slot for part in plan.segments for slot in segment_slots(part, self.view)]
        return {slot.sequence: item_of(slot.frame) for slot in slots}

    def changed(self) -> dict[int, pb.Message]:
        """The messages that are not shown as they came, by sequence."""
        return {at: item.message for at, item in self.items().items() if item.form}

    def past(self) -> Past:
        return past_of(self.view, 0, self.options)


def said(role: pb.Role, words: str) -> pb.Message:
    return pb.Message(role=role, parts=[pb.Part(text=pb.TextPart(text=words))])


def text(words: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=words))


def thought(words: str = "hm", signature: bytes = b"", redacted: bytes = b"") -> pb.Part:
    made = pb.ReasoningPart(text=words, signature=signature, redacted_data=redacted)
    return pb.Part(reasoning=made)


def made_by(field: str, name: str) -> dict[str, Any]:
    """Says who made a reply; `field` empty: nothing."""
    return {field: name} if field else {}


def kinds(message: pb.Message) -> list[str]:
    return [part.WhichOneof("kind") or "" for part in message.parts]
