"""Codex rollout files: one line for each thing that happened in a thread, in order.

As Codex 0.169 writes them: `session_meta` names the thread, `response_item` is an item of the
Responses API as the model gave or got it, `compacted` the thread's own compaction, the last reply
before which is its summary. Older versions also take turns back (`thread_rolled_back`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from ..messages import text_of
from ..types import ROLE_ASSISTANT, ROLE_USER, Message
from .codex_history import Segment
from .node import FormatError, Node, member, parse
from .responses import from_responses
from .session_files import Entry, HostSummary, ModelUpdate, Transcript

_SILENT = {
    "event_msg": "events for the screen",
    "turn_context": "settings of turns",
    "world_state": "states of the workspace",
    "token_usage_record": "bills",
}
"""Lines that are no messages, by what people call them."""


def is_rollout(first: Mapping[str, Any]) -> bool:
    """Whether a file that begins with this line is a rollout."""
    return first.get("type") == "session_meta" and isinstance(first.get("payload"), Mapping)


def codex_session(segments: Sequence[Segment], name: str) -> Transcript:
    """The thread of a rollout's files; `name` is its id where they have none. A message's id is
    that of its file, which is the thread's for a thread's first, and the number of the line that it
    begins with, so that a file that has grown gives what it gave, and more. Raises FormatError with
    the number of the line."""
    rollout = _Rollout(name)
    *_, last = segments
    if last.entries:
        rollout.name(last.entries[0])
    for segment in segments:
        rollout.enter(segment.name)
        for entry in segment.entries:
            if (entry.node.number("ordinal") or 0) < segment.until:
                rollout.take(entry)
            else:
                rollout.leave(entry)
    return rollout.transcript()


class _Rollout:
    """What the lines say, one after the other."""

    def __init__(self, name: str) -> None:
        self._thread = self._file = name
        self._provider = ""
        self._models: list[ModelUpdate] = []
        self._messages: list[Message] = []
        self._items: list[Entry] = []
        """Items that are not yet messages: those of a reply come with other lines between."""
        self._summaries: list[HostSummary] = []
        self._left_out: Counter[str] = Counter()
        self._abandoned: set[str] = set()

    def transcript(self) -> Transcript:
        """The thread, once every line was taken."""
        self._flush()
        models = self._models
        return Transcript(
            self._thread,
            self._messages,
            models[0].model if models else "",
            self._provider,
            tuple(models[1:]),
            tuple(self._summaries),
            dict(self._left_out),
            frozenset(self._abandoned),
        )

    def name(self, head: Entry) -> None:
        """Takes the thread's name from the head of its newest file."""
        if head.node.text("type") == "session_meta" and (payload := head.node.node("payload")):
            self._thread = self._file = payload.text("id") or self._thread
            self._provider = payload.text("model_provider")

    def enter(self, file: str) -> None:
        """What follows is of the file of this id. Empty: of the thread's first."""
        self._flush()
        self._file = file or self._thread

    def leave(self, entry: Entry) -> None:
        """A line that the thread has gone back behind."""
        if entry.node.text("type") == "response_item":
            self._abandoned.add(f"{self._file}:{entry.line}")
            self._left_out["items of turns that were taken back"] += 1

    def take(self, entry: Entry) -> None:
        """The next line."""
        with entry.named():
            kind = entry.node.required("type")
            payload = entry.node.node("payload")
            if payload is None:
                raise entry.node.error("payload", "an object is needed")
        match kind:
            case "response_item":
                self._items.append(entry)
            case "compacted":
                self._flush()
                self._compacted(entry, payload)
            case "event_msg" if payload.text("type") == "thread_rolled_back":
                self._flush()
                self._roll_back(payload.number("num_turns") or 0)
            case "session_meta" if payload.text("id") == self._thread:
                pass
            case "session_meta":
                # A thread that was forked repeats the lines of its parent behind its own head.
                self._left_out["heads of forked threads"] += 1
            case _:
                if kind == "turn_context":
                    self._chose(payload.text("model"))
                self._left_out[_SILENT.get(kind, f"lines of type {kind}")] += 1

    def _flush(self) -> None:
        """The items that have come as messages, the items of a reply as one."""
        taken, self._items = self._items, []
        texts = [member(one.raw.decode(), "payload").text for one in taken]
        try:
            made = from_responses(texts)
        except FormatError:
            for entry, text in zip(taken, texts, strict=True):
                with entry.named():
                    from_responses([text])
            raise
        items = iter(taken)
        for message in made:
            native = parse(message.native.json)
            first, *_ = islice(items, len(native) if isinstance(native, list) else 1)
            message.id = f"{self._file}:{first.line}"
            if message.role == ROLE_ASSISTANT:
                message.provider = self._provider
                message.model = self._models[-1].model if self._models else ""
                message.api = "openai-responses"
            if (time := first.node.time("timestamp")) is not None:
                message.timestamp.CopyFrom(time)
            self._messages.append(message)

    def _chose(self, model: str) -> None:
        if model and (not self._models or self._models[-1].model != model):
            self._flush()
            self._models.append(ModelUpdate(len(self._messages), model, self._provider))

    def _compacted(self, entry: Entry, payload: Node) -> None:
        text = payload.text("message")
        last = self._messages[-1] if self._messages else None
        if last is not None and last.role == ROLE_ASSISTANT:
            made = text_of(last)
            if made.strip() and text.endswith(made):
                self._messages.pop()
                self._left_out["replies that made a summary"] += 1
        if text.strip():
            name = f"{self._file}:{entry.line}"
            self._summaries.append(HostSummary(name, len(self._messages), text))
        else:
            self._left_out["compactions without a text"] += 1

    def _roll_back(self, turns: int) -> None:
        """Leaves the last turns, each from its user message on."""
        at = len(self._messages)
        while turns and at:
            at -= 1
            turns -= self._messages[at].role == ROLE_USER
        left = self._messages[at:]
        self._abandoned.update(message.id for message in left)
        self._left_out["messages of turns that were taken back"] += len(left)
        del self._messages[at:]
        self._summaries = [one for one in self._summaries if one.count <= at]
