"""Session pruning: what is shown in short once a provider's cache has ended, whichever engine
serves, and what never is (docs/semantics.md#session-pruning)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.fold import apply, extend
from contextengine_server.context.message import Form
from contextengine_server.context.plan import segment_slots
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.legacy import LegacyEngine, LegacyOptions
from contextengine_server.engines.pipeline import PipelineEngine, PipelineOptions
from contextengine_server.engines.pruned import PrunedEngine, PruningRules
from contextengine_server.engines.pruned.rules import CLEARED
from contextengine_server.testing.engine import views
from contextengine_server.testing.engine.trial import lawful
from contextengine_server.testing.oracle.pairs import ViewRow
from contextengine_server.wire.slots import WireShaper, item_of

MINUTE = 60_000
BUDGET = 32_768  # a cell of its own


def count(text: str) -> int:
    """Four characters a token, as OpenClaw estimates."""
    return len(text) // 4


SHAPER = WireShaper(count)


def engines() -> list[Engine]:
    return [
        DagEngine(DagOptions(fresh_tail_turns=1)),
        PipelineEngine(PipelineOptions()),
        LegacyEngine(LegacyOptions()),
    ]


class Session:
    """A session whose messages have times; the model speaks a second after it was asked."""

    def __init__(self, engine: Engine | None = None, **rules: Any) -> None:
        self.engine = PrunedEngine(
            engine or DagEngine(DagOptions(fresh_tail_turns=1)),
            PruningRules(**{"on": True, **rules}),
        )
        self.view, self.count, self.clock = views.empty(), 0, 1_700_000_000_000
        self.rows: list[ViewRow] = []

    def wait(self, ms: int) -> None:
        self.clock += ms

    def add(self, *messages: pb.Message) -> int:
        for message in messages:
            self.count += 1
            self.clock += 1
            message.timestamp.FromMilliseconds(self.clock)
            row = ViewRow(self.count, message, 100 * self.count)
            self.rows.append(row)
            apply(self.view, extend(self.view, [views.entry_of(row, count)], SHAPER))
        return self.count

    def say(self, text: str = "go on") -> int:
        return self.add(said(pb.ROLE_USER, text))

    def show(self, words: str = "what is this?", *, label: str = "") -> int:
        """A user asks about a picture."""
        message = said(pb.ROLE_USER, words)
        message.parts.add().image.uri = "https://example.org/a.png"
        if label:
            message.labels[label] = "true"
        return self.add(message)

    def turns(self, count: int) -> None:
        """So many turns that the model answers."""
        for _ in range(count):
            self.say()
            self.reply()

    def reply(self, times: int = 1) -> int:
        for _ in range(times):
            self.add(said(pb.ROLE_ASSISTANT, "done"))
        return self.count

    def call(self, text: str, tool: str = "probe", *, image: bool = False) -> int:
        """A tool is called and answers; the answer's sequence."""
        asked, answer = pb.Message(role=pb.ROLE_ASSISTANT), pb.Message(role=pb.ROLE_TOOL)
        part = asked.parts.add().tool_call
        part.call_id, part.name = f"c{self.count}", tool
        part.arguments_json = json.dumps({"n": self.count}).encode()
        result = answer.parts.add().tool_result
        result.call_id, result.name = part.call_id, tool
        result.parts.add().text.text = text
        if image:
            result.parts.add().image.uri = "https://example.org/a.png"
        return self.add(asked, answer)

    def shown_forms(self, sequences: list[int]) -> list[Form]:
        """The forms of these messages."""
        self.shown()
        return [self.forms[sequence] for sequence in sequences]

    def shown(self, budget: int = BUDGET) -> dict[int, str]:
        """What is shown of the results, by sequence."""
        plan = self.engine.plan(self.view, ReferenceTokens(budget))
        assert lawful(self.view, self.engine, plan, budget) is None
        slots = [slot for part in plan.segments for slot in segment_slots(part, self.view)]
        self.items = {slot.sequence: item_of(slot.frame).message for slot in slots}
        self.forms, self.name = {slot.sequence: slot.form for slot in slots}, plan.forms
        return {slot.sequence: text for slot in slots if (text := result_of(slot.frame))}


def said(role: pb.Role, words: str) -> pb.Message:
    message = pb.Message(role=role)
    message.parts.add().text.text = words
    return message


def result_of(frame: bytes) -> str:
    message = item_of(frame).message
    return " ".join(one.text.text for part in message.parts for one in part.tool_result.parts)


def filled(one: Session, share: float, budget: int = BUDGET) -> None:
    """A question of so large a share of the budget."""
    one.say("word" * int(share * budget))


LONG = "a" * 2_000 + "b" * 2_001
TRIMMED = (
    f"{'a' * 1_500}\n...\n{'b' * 1_500}\n\n"
    "[Tool result trimmed: kept first 1500 chars and last 1500 chars of 4001 chars.]"
)


@pytest.mark.parametrize("engine", engines(), ids=lambda engine: engine.id)
def test_a_long_result_is_trimmed_once_the_cache_has_ended(engine: Engine) -> None:
    """OpenClaw's fact 153."""
    one = Session(engine)
    filled(one, 0.3)
    result = one.call(LONG)
    one.reply(3)
    assert one.shown()[result] == LONG
    one.wait(5 * MINUTE)
    one.say()
    tool = " with session_search" if engine.id == "pipeline" else ""
    assert one.shown()[result] == f"{TRIMMED}\n[expand sequence {result}{tool} to read it]"
    assert one.forms[result] is Form.PLACEHOLDER
    assert one.name


def test_what_says_no_more_than_it_may_is_not_trimmed() -> None:
    one = Session()
    filled(one, 0.3)
    result = one.call(LONG[:4_000])
    one.reply(3)
    one.wait(5 * MINUTE)
    one.say()
    assert one.shown()[result] == LONG[:4_000]


@pytest.mark.parametrize(("waited", "trimmed"), [(5 * MINUTE - 3, False), (5 * MINUTE, True)])
def test_nothing_new_is_pruned_before_the_cache_has_ended(waited: int, trimmed: bool) -> None:
    one = Session()
    filled(one, 0.3)
    result = one.call(LONG)
    one.reply(3)
    one.wait(waited)
    one.say()
    assert (one.shown()[result] != LONG) is trimmed


@pytest.mark.parametrize(("share", "trimmed"), [(0.2, False), (0.28, True)])
def test_little_context_is_left_alone(share: float, trimmed: bool) -> None:
    """The share is of what the budget leaves for messages; the result itself is 0.03 of it."""
    one = Session()
    filled(one, share)
    result = one.call(LONG)
    one.reply(3)
    one.wait(5 * MINUTE)
    one.say()
    assert (one.shown()[result] != LONG) is trimmed


@pytest.mark.parametrize(("replies", "trimmed"), [(2, False), (3, True)])
def test_the_newest_three_messages_of_the_model_protect_what_follows(
    replies: int, trimmed: bool
) -> None:
    one = Session()
    filled(one, 0.3)
    result = one.call(LONG)
    one.reply(replies)
    one.wait(5 * MINUTE)
    one.say()
    assert (one.shown()[result] != LONG) is trimmed


def test_with_fewer_messages_of_the_model_nothing_is_pruned() -> None:
    one = Session(keep_last_assistants=4)
    filled(one, 0.3)
    result = one.call(LONG)
    one.reply(2)
    one.wait(5 * MINUTE)
    one.say()
    assert one.shown()[result] == LONG


def test_what_came_before_the_first_question_is_not_pruned() -> None:
    one = Session()
    early = one.call(LONG)
    filled(one, 0.3)
    late = one.call(LONG)
    one.reply(3)
    one.wait(5 * MINUTE)
    one.say()
    shown = one.shown()
    assert shown[early] == LONG
    assert shown[late] != LONG


def test_what_is_pruned_stays_so_and_nothing_more_is_until_the_cache_ends_again() -> None:
    one = Session()
    filled(one, 0.3)
    first = one.call(LONG)
    one.reply(3)
    one.wait(5 * MINUTE)
    one.say()
    before, name = one.shown()[first], one.name
    second = one.call(LONG)
    one.reply(5)
    one.say()
    shown = one.shown()
    assert shown[first] == before
    assert shown[second] == LONG
    assert one.name == name  # and so the epoch stays
    one.wait(5 * MINUTE)
    one.say()
    shown = one.shown()
    assert shown[first] == before
    assert shown[second] != LONG
    assert one.name != name


def test_results_are_cleared_oldest_first_until_there_is_room() -> None:
    """OpenClaw's fact 155."""
    one = Session()
    filled(one, 0.4)
    results = [one.call("c" * 4_000) for _ in range(15)]
    one.reply(3)
    one.wait(5 * MINUTE)
    one.say()
    shown = one.shown()
    cleared = [at for at in results if shown[at].startswith(CLEARED)]
    assert shown[results[0]] == f"{CLEARED}\n[expand sequence {results[0]} to read it]"
    assert cleared == results[: len(cleared)]
    share = sum(atom.tokens for atom in one.view.atoms) / BUDGET - 1_000 * len(cleared) / BUDGET
    assert share < 0.5 <= share + 1_000 / BUDGET + 0.02
    assert all(shown[at] == "c" * 4_000 for at in results[len(cleared) :])


@pytest.mark.parametrize(
    ("results", "chars", "rules", "cleared"),
    [
        (13, 4_000, {}, True),
        (12, 4_000, {}, False),
        (12, 4_000, {"min_prunable_chars": 48_000}, True),
        (13, 4_000, {"clears": False}, False),
        (13, 4_000, {"hard_clear_ratio": 0.99}, False),
    ],
)
def test_when_nothing_is_cleared(
    results: int, chars: int, rules: dict[str, Any], cleared: bool
) -> None:
    """Below 50,000 characters that may be pruned; where it is off; where trimming is enough."""
    one = Session(**rules)
    filled(one, 0.4)
    sequences = [one.call("c" * chars) for _ in range(results)]
    one.reply(3)
    one.wait(5 * MINUTE)
    one.say()
    shown = one.shown()
    assert any(shown[at].startswith(CLEARED) for at in sequences) is cleared


def test_an_operator_says_what_stands_for_a_cleared_result() -> None:
    one = Session(placeholder="(gone)", hard_clear_ratio=0.0)
    filled(one, 0.4)
    results = [one.call("c" * 4_000) for _ in range(13)]
    one.reply(3)
    one.wait(5 * MINUTE)
    one.say()
    assert {one.shown()[at].split("\n")[0] for at in results} == {"(gone)"}


@pytest.mark.parametrize(
    ("allow", "deny", "trimmed"),
    [
        ((), (), True),
        (("Probe",), (), True),
        (("read",), (), False),
        (("pro*",), ("*be",), False),  # fact 157: deny wins
        ((), ("other",), True),
    ],
)
def test_tools_that_are_allowed_and_denied(
    allow: tuple[str, ...], deny: tuple[str, ...], trimmed: bool
) -> None:
    one = Session(allow=allow, deny=deny)
    filled(one, 0.3)
    result = one.call(LONG)
    one.reply(3)
    one.wait(5 * MINUTE)
    one.say()
    assert (one.shown()[result] != LONG) is trimmed


def test_pictures_of_old_results_go_with_them() -> None:
    one = Session()
    filled(one, 0.3)
    short, long = one.call("a screenshot", image=True), one.call(LONG, image=True)
    one.reply(3)
    one.wait(5 * MINUTE)
    one.say()
    shown = one.shown()
    removed = "[image removed during context pruning]"
    assert shown[short] == f"a screenshot\n{removed}\n[expand sequence {short} to read it]"
    assert shown[long] == f"{TRIMMED}\n{removed}\n[expand sequence {long} to read it]"


def test_what_an_engine_keeps_verbatim_is_not_pruned() -> None:
    """A tail of eight steps is longer than three messages of the model."""
    one = Session(DagEngine(DagOptions(fresh_tail_turns=8)))
    filled(one, 0.3)
    early, late = one.call(LONG), one.call(LONG)
    one.reply(6)
    one.wait(5 * MINUTE)
    one.say()
    shown = one.shown()
    assert shown[early] != LONG
    assert shown[late] == LONG


def test_pinned_results_are_not_pruned() -> None:
    one = Session()
    filled(one, 0.3)
    result = one.call(LONG)
    one.view.atoms[-1].pinned = True
    one.view.pinned.append(one.view.atoms[-1].step)
    one.reply(3)
    one.wait(5 * MINUTE)
    one.say()
    assert one.shown()[result] == LONG


def test_legacy_fits_by_it() -> None:
    """Over the budget as it is, within it once old results are trimmed."""
    one = Session(LegacyEngine(LegacyOptions()))
    one.say()
    for _ in range(20):
        one.call("d" * 20_000)
    one.reply(3)
    assert one.engine.plan(one.view, ReferenceTokens(BUDGET)).over
    one.wait(5 * MINUTE)
    one.say()
    assert len(one.shown()) == 20
    assert not one.engine.plan(one.view, ReferenceTokens(BUDGET)).over


def test_messages_without_a_time_end_no_cache() -> None:
    one = Session()
    filled(one, 0.3)
    result = one.call(LONG)
    one.reply(3)
    timed = one.rows[-1].message.timestamp
    assert timed.seconds
    row = ViewRow(one.count + 1, said(pb.ROLE_USER, "go on"), 100 * one.count + 100)
    apply(one.view, extend(one.view, [views.entry_of(row, count)], SHAPER))
    assert one.shown()[result] == LONG


def test_a_summary_since_lifts_nothing() -> None:
    """Of the context that there was, a summary that came later takes away what it covers, and not
    what was decided about the rest."""
    one = Session()
    filled(one, 0.35)
    one.reply()
    result = one.call(LONG)
    one.reply(3)
    one.wait(5 * MINUTE)
    one.say()
    before = one.shown()[result]
    assert before != LONG
    made, _ = views.summary(
        one.view, 0, 1, "what was said", created=100 * one.count + 1, count=count
    )
    one.view.place(made)
    one.reply()
    assert one.shown()[result] == before
    # And at the next pause the context is small.
    later = one.call(LONG)
    one.reply(3)
    one.wait(5 * MINUTE)
    one.say()
    assert one.shown()[later] == LONG
    assert one.shown()[result] == before


SEEN = "[image data removed - already processed by model]"


@pytest.mark.parametrize("engine", engines(), ids=lambda engine: engine.id)
def test_pictures_stay_for_the_newest_turns_that_were_answered(engine: Engine) -> None:
    """OpenClaw's cleanup of old images, whatever the cache does."""
    one = Session(engine, on=False, picture_turns=3)
    asked = one.show()
    looked = one.call("it shows a cat", image=True)
    one.reply()
    one.turns(2)
    one.say()
    assert set(one.shown_forms([asked, looked])) == {Form.VERBATIM}
    one.reply()
    assert set(one.shown_forms([asked, looked])) == {Form.VERBATIM}  # within a turn nothing moves
    one.say()
    assert set(one.shown_forms([asked, looked])) == {Form.PLACEHOLDER}
    words, marker = one.items[asked].parts
    assert words.text.text == "what is this?"
    reader = " with session_search" if engine.id == "pipeline" else ""
    assert marker.text.text == f"{SEEN}\n[expand sequence {asked}{reader} to see it]"
    result = one.items[looked].parts[0].tool_result
    assert [part.text.text.split("\n")[0] for part in result.parts] == ["it shows a cat", SEEN]
    assert not any(part.HasField("image") for part in result.parts)
    one.turns(9)
    assert set(one.shown_forms([asked, looked])) == {Form.PLACEHOLDER}


def test_turns_that_nobody_answered_do_not_count() -> None:
    one = Session(on=False, picture_turns=1)
    asked = one.show()
    one.reply()
    for _ in range(4):
        one.say()
    assert one.shown_forms([asked]) == [Form.VERBATIM]
    one.reply()
    one.say()
    assert one.shown_forms([asked]) == [Form.PLACEHOLDER]


def test_pictures_of_a_tail_pinned_ones_and_those_of_the_model_stay() -> None:
    one = Session(DagEngine(DagOptions(fresh_tail_turns=5)), on=False, picture_turns=1)
    pinned = one.show(label="pinned")
    message = said(pb.ROLE_ASSISTANT, "I drew it")
    message.parts.add().image.uri = "https://example.org/a.png"
    own = one.add(message)
    one.turns(4)
    late = one.show()
    one.reply()
    one.turns(1)
    one.say()
    assert set(one.shown_forms([pinned, own, late])) == {Form.VERBATIM}
    one.turns(3)
    one.say()
    assert one.shown_forms([pinned, own, late]) == [
        Form.VERBATIM, Form.VERBATIM, Form.PLACEHOLDER
    ]  # fmt: skip


def test_pictures_stay_for_good_by_default() -> None:
    one = Session()
    asked = one.show()
    one.turns(20)
    assert one.shown_forms([asked]) == [Form.VERBATIM]


def test_what_is_cleared_besides_has_no_picture_either() -> None:
    one = Session(picture_turns=1, soft_trim_ratio=0.0, max_chars=100, head_chars=10, tail_chars=10)
    one.say()
    looked = one.call("x" * 4_000, image=True)
    one.reply()
    one.turns(3)
    one.wait(6 * MINUTE)
    one.say()
    shown = one.shown()[looked]
    assert "[image removed during context pruning]" in shown
    assert SEEN not in shown
