"""Masks: results that later ones stand for, from a compaction on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.fold import apply, extend
from contextengine_server.context.message import Entry, Form
from contextengine_server.context.plan import Reshaped, segment_slots
from contextengine_server.context.view import View
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.masks import LEAST_SAVED, REASON, coming_masks, masks_of
from contextengine_server.testing.engine import views
from contextengine_server.testing.engine.real_sessions import REAL_SHAPER, count
from contextengine_server.testing.oracle.masked import dishonest
from contextengine_server.testing.oracle.pairs import ViewRow
from contextengine_server.wire.slots import item_of

TAIL = 2
ENGINE = DagEngine(DagOptions(fresh_tail_turns=TAIL))
BUDGET = ReferenceTokens(50_000)


def _entry(sequence: int, message: pb.Message) -> Entry:
    """A message as the server takes it in; revisions between two are those of compactions."""
    return views.entry_of(ViewRow(sequence, message, 100 * sequence), count)


class Session:
    """A session that reads files; a read is two messages."""

    def __init__(self) -> None:
        self.view, self.messages, self.made = views.empty(), list[pb.Message](), 0

    def add(self, *messages: pb.Message) -> None:
        entries = []
        for message in messages:
            self.messages.append(message)
            entries.append(_entry(len(self.messages), message))
        apply(self.view, extend(self.view, entries, REAL_SHAPER))

    def say(self, text: str = "go on") -> None:
        message = pb.Message(role=pb.ROLE_USER)
        message.parts.add().text.text = text
        self.add(message)

    def read(self, *paths: str, words: int = 300, failed: bool = False, name: str = "read") -> int:
        """One message that reads these and one that answers it; the answer's sequence."""
        call, answer = pb.Message(role=pb.ROLE_ASSISTANT), pb.Message(role=pb.ROLE_TOOL)
        for number, path in enumerate(paths):
            id = f"c{len(self.messages)}-{number}"
            part = pb.ToolCallPart(call_id=id, name=name)
            part.arguments_json = b'{"path": "%s"}' % path.encode()
            call.parts.add().tool_call.MergeFrom(part)
            result = answer.parts.add().tool_result
            result.call_id, result.name, result.is_error = id, name, failed
            result.parts.add().text.text = f"{path} " * words
        answer.native.json = b"{}"
        self.add(call, answer)
        return len(self.messages)

    def compact(self, first: int, last: int) -> None:
        """A summary over these steps is committed."""
        self.made += 1
        created = 100 * len(self.messages) + self.made
        made, _ = views.summary(self.view, first, last, "s " * 50, created=created, count=count)
        self.view.place(made)

    def masked(self) -> dict[int, str]:
        """The texts that stand in place of masked messages, by sequence."""
        shown = [
            (slot, segment)
            for segment in ENGINE.plan(self.view, BUDGET).segments
            for slot in segment_slots(segment, self.view)
        ]
        found = {}
        for slot, segment in shown:
            if slot.form is Form.PLACEHOLDER:
                item = item_of(slot.frame)
                stored = self.messages[slot.sequence - 1]
                assert dishonest(item, stored) is None
                assert isinstance(segment, Reshaped)
                assert segment.reason == REASON
                found[slot.sequence] = " ".join(
                    text.text.text for part in item.message.parts for text in part.tool_result.parts
                )
        return found


def session() -> Session:
    """Steps 0 to 3 are for a summary; then file `a` is read twice, and others."""
    made = Session()
    for _ in range(4):
        made.say("a few words " * 60)
    made.read("a")  # step 4, answered by 6
    made.read("b")
    made.read("a")  # step 6, answered by 10
    for path in "cdef":
        made.read(path)
    return made


def test_what_is_read_again_is_masked_from_the_next_commit_on() -> None:
    one = session()
    assert one.masked() == {}
    one.compact(0, 2)
    text = one.masked()
    assert list(text) == [6]
    assert text[6].startswith("[superseded: ")
    assert "see sequence 10" in text[6]
    assert "expand sequence 6" in text[6]


def test_nothing_is_masked_between_commits_and_no_mask_is_lifted() -> None:
    one = session()
    one.compact(0, 1)
    before = one.masked()
    one.read("b")
    one.read("a")
    for path in "ghi":
        one.read(path)
    assert one.masked() == before
    one.compact(2, 3)
    assert set(one.masked()) == {6, 8, 10}
    assert one.masked()[6] == before[6]


def test_the_tail_of_the_commit_stays_as_it_is() -> None:
    one = Session()
    for _ in range(4):
        one.say("a few words " * 60)
    one.read("a")
    one.read("a")
    one.compact(0, 2)
    assert one.masked() == {}
    one.read("c")
    one.read("d")
    assert one.masked() == {}


@pytest.mark.parametrize(
    ("again", "masked"),
    [
        ({"paths": ("a",), "failed": True}, False),
        ({"paths": ("b",)}, False),
        ({"paths": ("./a",), "name": "file_read"}, True),
        ({"paths": ("a",), "name": "edit"}, False),
    ],
)
def test_only_a_read_of_the_same_that_worked_stands_for_it(
    again: dict[str, object], masked: bool
) -> None:
    one = Session()
    for _ in range(4):
        one.say("a few words " * 60)
    one.read("a")
    paths = again.pop("paths")
    assert isinstance(paths, tuple)
    one.read(*paths, **again)  # type: ignore[arg-type]
    for path in "cde":
        one.read(path)
    one.compact(0, 2)
    assert bool(one.masked()) == masked


def test_only_the_results_that_were_read_again_are_left_out() -> None:
    one = Session()
    for _ in range(4):
        one.say("a few words " * 60)
    first = one.read("a", "b")
    one.read("a")
    for path in "cde":
        one.read(path)
    one.compact(0, 2)
    text = one.masked()[first]
    assert "superseded" in text
    assert text.endswith("b " * 300)


def test_what_is_pinned_or_small_is_left_alone() -> None:
    one = Session()
    for _ in range(4):
        one.say("a few words " * 60)
    one.read("a", words=LEAST_SAVED // 2)
    call, answer = pb.Message(role=pb.ROLE_ASSISTANT), pb.Message(role=pb.ROLE_TOOL)
    call.labels["pinned"] = "true"
    call.parts.add().tool_call.MergeFrom(
        pb.ToolCallPart(call_id="x", name="read", arguments_json=b'{"path": "p"}')
    )
    answer.parts.add().tool_result.MergeFrom(pb.ToolResultPart(call_id="x"))
    answer.parts[0].tool_result.parts.add().text.text = "p " * 300
    one.add(call, answer)
    for path in ("a", "p", "c", "d", "e"):
        one.read(path)
    one.compact(0, 2)
    assert one.masked() == {}


def test_a_compaction_counts_on_the_masks_that_it_brings() -> None:
    one = session()
    coming = coming_masks(one.view, TAIL)
    one.compact(0, 2)
    assert masks_of(one.view, TAIL).keys() == coming.keys() == {4}


def test_masks_follow_from_the_messages_however_they_came() -> None:
    one = session()
    one.compact(0, 2)
    entries = [_entry(at, message) for at, message in enumerate(one.messages, 1)]
    for batch in (1, 3, len(entries)):
        again = _folded(entries, batch)
        again.summaries, again.evictions = one.view.summaries, one.view.evictions
        assert masks_of(again, TAIL).keys() == masks_of(one.view, TAIL).keys() == {4}


def _folded(entries: Sequence[Entry], batch: int) -> View:
    view = views.empty()
    for at in range(0, len(entries), batch):
        apply(view, extend(view, entries[at : at + batch], REAL_SHAPER))
    return view
