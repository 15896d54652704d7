"""The layers of reasoning: what each leaves out, and what it never does, by the facts of Comis's
engine where they hold (docs/pipeline.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.fold import apply, extend
from contextengine_server.context.message import Addressee, Stripped
from contextengine_server.context.plan import segment_slots
from contextengine_server.engines.pipeline import PipelineEngine, PipelineOptions
from contextengine_server.engines.pipeline import reasoning as layers
from contextengine_server.engines.pipeline.isolation import switched_off
from contextengine_server.engines.pipeline.past import Leavings, Past, drift, past_of
from contextengine_server.engines.pipeline.signature_scrubber import scrub
from contextengine_server.engines.pipeline.surrogate_guard import guard
from contextengine_server.engines.pipeline.tag_stripper import strip
from contextengine_server.engines.pipeline.thinking_cleaner import clean
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


# The thinking-block cleaner.


def test_only_the_newest_replies_keep_their_reasoning() -> None:
    session = Session(keep=5)
    replies = session.turns(8, thought())
    session.ask()
    changed = session.changed()
    assert sorted(changed) == replies[:3]
    assert all(kinds(message) == ["text"] for message in changed.values())
    assert all(item.form != pb.FORM_STRIPPED_TAGS for item in session.items().values())


def test_fewer_replies_than_are_kept_change_nothing() -> None:
    session = Session(keep=10)
    session.turns(10, thought())
    session.ask()
    assert session.changed() == {}


def test_what_only_the_provider_can_read_is_kept_whatever_its_age() -> None:
    session = Session(keep=1, idle=60_000)
    session.turns(3, thought(redacted=b"x"), thought())
    session.reply(at=0)
    session.ask(at=10_000_000)
    changed = session.changed()
    assert len(changed) == 3
    assert all(message.parts[0] == thought(redacted=b"x") for message in changed.values())
    assert all(kinds(message) == ["reasoning", "text"] for message in changed.values())


def test_replies_within_the_newest_turn_move_nothing() -> None:
    session = Session(keep=5)
    session.turns(7, thought())
    session.ask()
    before = session.changed()
    assert len(before) == 2
    for _ in range(20):
        session.call(thought())
        assert session.changed() == before
    session.ask()
    assert len(session.changed()) == 22


def test_what_is_kept_moves_by_several_replies_at_a_time() -> None:
    session = Session(keep=15)
    session.turns(15, thought())
    moved = []
    for _ in range(15):
        session.ask()
        moved.append(len(session.changed()))
        session.reply(thought())
    assert sorted(set(moved)) == [0, 5, 10]
    assert moved[-1] == 10
    assert moved == sorted(moved)


def test_a_message_of_nothing_but_reasoning_says_what_is_missing() -> None:
    session = Session(keep=1)
    session.ask()
    alone = session.add(pb.Message(role=pb.ROLE_ASSISTANT, parts=[thought()]))
    session.reply()
    session.turns(3)
    session.ask()
    shown = session.changed()[alone]
    assert kinds(shown) == ["text"]
    assert shown.parts[0].text.text == f"[reasoning left out; expand sequence {alone} to read it]"


def test_no_form_says_in_native_what_it_leaves_out() -> None:
    session = Session(keep=1)
    session.ask()
    message = pb.Message(role=pb.ROLE_ASSISTANT, parts=[thought(signature=b"s"), text("done")])
    message.native.format, message.native.json = "pi", b"{}"
    at = session.add(message)
    session.ask()
    assert not session.changed()[at].HasField("native")


# Replay drift.


@pytest.mark.parametrize(
    ("field", "drifted"),
    [("provider", "provider_change"), ("model", "model_change"), ("api", "api_change")],
)
def test_a_reply_by_another_ends_the_worth_of_what_was_before(field: str, drifted: str) -> None:
    session = Session(Addressee(), keep=10)
    session.ask()
    first = session.reply(thought(), **made_by(field, "one"))
    session.ask()
    second = session.reply(thought(), **made_by(field, "other"))
    session.ask()
    assert drift(session.view, session.options)[1] == drifted
    assert sorted(session.changed()) == [first]
    session.turns(1)
    session.ask()
    assert sorted(session.changed()) == [first]
    assert second not in session.changed()


def test_a_value_that_is_missing_tells_nothing() -> None:
    session = Session(Addressee(), keep=10)
    for field in ("", "model", "", "provider", "api", "model"):
        session.ask()
        session.reply(thought(), **made_by(field, "one"))
    session.ask()
    assert drift(session.view, session.options) == (0, "")
    assert session.changed() == {}


def test_a_date_in_its_name_makes_no_other_model() -> None:
    session = Session(Addressee("claude-x", "", "claude-x"), keep=10)
    session.turns(1)
    session.ask()
    session.reply(thought(), model="anthropic/claude-x-20250929")
    session.ask()
    assert session.changed() == {}


def test_another_reader_than_wrote_it_wants_none_of_it() -> None:
    session = Session(Addressee("two", "", "two"), keep=10)
    session.ask()
    at = session.reply(thought(), model="one")
    session.ask()
    assert drift(session.view, session.options)[1] == "model_change"
    assert sorted(session.changed()) == [at]


def test_a_pause_counts_from_one_millisecond_more() -> None:
    session = Session(keep=10, idle=1_800_000)
    session.ask(at=0)
    at = session.reply(thought(), at=1_000)
    session.ask(at=1_801_000)
    assert session.changed() == {}
    session.reply(thought(), at=2_000_000)
    session.ask(at=3_800_001)
    assert drift(session.view, session.options)[1] == "idle"
    assert sorted(session.changed()) == [at, at + 2]


def test_a_pause_that_is_over_still_counts() -> None:
    session = Session(keep=10)
    session.ask(at=0)
    at = session.reply(thought(), at=1_000)
    session.ask(at=9_000_000)
    for turn in range(5):
        session.reply(thought(), at=9_000_000 + 1_000 * turn)
        session.ask(at=9_000_500 + 100_000 * turn)
        assert sorted(session.changed()) == [at]


@pytest.mark.parametrize(("replied", "asked"), [(None, 9_000_000), (0, None)])
def test_a_time_that_is_missing_is_no_pause(replied: int | None, asked: int | None) -> None:
    session = Session(keep=10)
    session.ask(at=0)
    session.reply(thought(), at=replied)
    session.ask(at=asked)
    assert session.changed() == {}


# The signature replay scrubber.


def test_signed_reasoning_goes_once_its_turn_is_over() -> None:
    session = Session(keep=50)
    session.ask()
    signed = session.call(thought(signature=b"s"), thought("plain"))
    newest = session.reply(thought(signature=b"s"))
    assert session.changed() == {}
    session.ask()
    changed = session.changed()
    assert sorted(changed) == [signed, newest]
    assert [part.reasoning.text for part in changed[signed].parts][:1] == ["plain"]
    assert kinds(changed[newest]) == ["text"]


def test_a_call_loses_its_signature_and_stays() -> None:
    session = Session(Addressee("gemini", "google", "gemini", reasoning_may_go=True), keep=50)
    session.ask()
    at = session.call(signature=b"s")
    bare = session.call()
    session.ask()
    changed = session.changed()
    assert sorted(changed) == [at]
    assert changed[at].parts[0].thought_signature == b""
    assert changed[at].parts[0].tool_call.name == "probe"
    assert bare not in changed


def test_reasoning_without_a_signature_is_not_scrubbed() -> None:
    session = Session(keep=50)
    session.turns(2, thought(signature=b""), thought(redacted=b"x"))
    session.ask()
    assert session.changed() == {}
    decided = Leavings()
    assert scrub(session.past(), decided) is decided


@pytest.mark.parametrize("provider", ["", "mistral"])
def test_sealed_reasoning_stays_where_nobody_says_that_it_may_go(provider: str) -> None:
    session = Session(Addressee("m", provider, "m"), keep=1)
    session.turns(5, thought(signature=b"s"), thought("plain"), text("<think>x</think>y"))
    session.ask()
    assert session.changed() == {}


# The signature surrogate guard.


def damaged_native(json: bytes) -> pb.Message:
    message = pb.Message(role=pb.ROLE_ASSISTANT, parts=[thought(signature=b"s"), text("done")])
    message.native.format, message.native.json = "anthropic.messages", json
    return message


@pytest.mark.parametrize(
    ("json", "damaged"),
    [
        (rb'{"thinking": "a \ud83d b"}', True),
        (rb'{"thinking": "a \ude00 b"}', True),
        (rb'{"thinking": "a \ud83d\ude00 b"}', False),
        (rb'{"thinking": "a \u00e9 b"}', False),
    ],
)
def test_signed_reasoning_with_half_a_pair_goes_whole(json: bytes, damaged: bool) -> None:
    session = Session()
    session.ask()
    at = session.add(damaged_native(json))
    session.ask()
    decided = guard(session.past(), Leavings())
    assert decided == ({at: Stripped((0,))} if damaged else {})


def test_what_half_a_pair_became_is_no_signed_text_either() -> None:
    session = Session(keep=50)
    session.ask()
    at = session.reply(thought("a � b", signature=b"s"))
    session.reply(thought("a � b"))
    session.ask()
    assert guard(session.past(), Leavings()) == {at: Stripped((0,))}


def test_a_signature_is_never_altered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block is absent, or all its bytes are there (law 3)."""
    monkeypatch.setattr(layers, "LAYERS", (("signature-surrogate-guard", guard),))
    session = Session()
    session.ask()
    at = session.reply(thought("a � b", signature=b"s"), thought("c", signature=b"t"))
    session.ask()
    shown = session.changed()[at]
    assert [part.reasoning for part in shown.parts[:1]] == [thought("c", signature=b"t").reasoning]
    assert len(shown.parts) == 2


# The reasoning-tag stripper.


def test_tags_go_once_their_turn_is_over() -> None:
    session = Session()
    session.ask()
    at = session.reply(text("<think>hm</think>It is `<think>` 4."))
    user = session.add(said(pb.ROLE_USER, "what is <think>x</think>?"))
    items = session.items()
    assert items[at].form == pb.FORM_STRIPPED_TAGS
    assert items[at].message.parts[0].text.text == "It is `<think>` 4."
    assert items[user].form == pb.FORM_UNSPECIFIED


def test_within_the_newest_turn_tags_are_left_in_place() -> None:
    session = Session()
    session.ask()
    session.call(text("<think>hm</think>first"))
    session.reply(text("<think>hm</think>It is 4."))
    assert session.changed() == {}


def test_tags_beside_what_must_stay_as_it_is_stay() -> None:
    session = Session(keep=50)
    session.ask()
    at = session.reply(thought(redacted=b"x"), text("<think>a</think>b"))
    both = session.reply(thought(signature=b"s"), text("<think>a</think>b"))
    session.ask()
    changed = session.changed()
    assert at not in changed
    assert [part.text.text for part in changed[both].parts] == ["b", "done"]


# All of them.

LAYERS: list[Callable[[Past, Leavings], Leavings]] = [clean, scrub, guard, strip]


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_with_nothing_to_do_answers_what_it_was_given(
    layer: Callable[[Past, Leavings], Leavings],
) -> None:
    session = Session(keep=50)
    session.turns(3, thought())
    session.ask()
    decided = Leavings({2: Stripped((0,))})
    assert layer(session.past(), decided) is decided


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_changes_nothing_that_it_was_given(
    layer: Callable[[Past, Leavings], Leavings],
) -> None:
    session = Session(keep=1)
    session.turns(4, thought(), thought("�", signature=b"s"), text("<think>a</think>b"))
    session.ask()
    bodies = [one.entry.body for one in session.past().said]
    decided = scrub(session.past(), Leavings()) if layer is strip else Leavings()
    before = dict(decided)
    assert layer(session.past(), decided) != before
    assert decided == before
    assert [one.entry.body for one in session.past().said] == bodies


def test_pinned_messages_keep_their_reasoning() -> None:
    session = Session(keep=1)
    session.ask()
    message = pb.Message(role=pb.ROLE_ASSISTANT, parts=[thought(signature=b"s"), text("done")])
    message.labels["pinned"] = "true"
    session.add(message)
    session.turns(3)
    session.ask()
    assert session.changed() == {}


def test_a_message_of_which_only_parts_stand_is_left_as_it_is() -> None:
    session = Session(keep=1)
    session.ask()
    message = pb.Message(role=pb.ROLE_ASSISTANT, parts=[thought(), text("done")])
    message.parts.add().tool_result.call_id = "nobody"
    at = session.add(message)
    session.turns(3)
    session.ask()
    assert session.items()[at].form == pb.FORM_SOME_PARTS


def test_what_is_left_out_follows_from_the_messages_alone() -> None:
    """Folded at once, or one by one: a restart shows the same."""
    session = Session(keep=2)
    entries = []
    for turn in range(9):
        session.ask(at=turn * 1_000)
        session.call(thought(signature=b"s"), thought())
        session.reply(thought(), text("<think>a</think>b"), at=turn * 1_000, model=f"m{turn // 5}")
        shown = session.items()
        entries = session.view.entries()
        again = views.folded(entries, views.SHAPER)
        again.reader = session.view.reader
        plan = session.engine.plan(again, BUDGET)
        slots = [slot for part in plan.segments for slot in segment_slots(part, again)]
        assert {slot.sequence: item_of(slot.frame) for slot in slots} == shown
        assert plan.forms == session.forms
    assert any(item.form for item in shown.values())


def test_other_forms_are_another_epoch_and_the_same_are_not() -> None:
    session = Session(keep=1)
    session.ask()
    session.reply(thought(signature=b"s"))
    session.items()
    assert session.forms == ""
    session.ask()
    session.items()
    named = session.forms
    assert named
    session.reply()
    session.ask()
    session.items()
    assert session.forms == named


# Isolation.


def broken(past: Past, decided: Leavings) -> Leavings:
    raise RuntimeError("broken")


def test_a_layer_that_fails_passes_its_input_on(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(keep=50)
    session.ask()
    at = session.reply(thought(signature=b"s"), text("<think>a</think>b"))
    session.ask()
    cleaner, scrubber, watch, stripper = layers.LAYERS
    monkeypatch.setattr(layers, "LAYERS", (cleaner, (scrubber[0], broken), watch, stripper))
    assert session.changed() == {}  # what is sealed stays, with the tags beside it
    monkeypatch.setattr(layers, "LAYERS", ((cleaner[0], broken), scrubber, watch, stripper))
    assert kinds(session.changed()[at]) == ["text", "text"]


def test_three_failures_in_a_row_switch_a_layer_off_for_its_session(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session, other = Session(keep=50), Session(keep=50)
    kept = layers.LAYERS
    name = "signature-replay-scrubber"
    monkeypatch.setattr(layers, "LAYERS", ((name, broken),))
    for turn in range(3):
        session.ask()
        session.reply(thought(signature=b"s"))
        session.ask()
        assert switched_off(session.view) == frozenset()
        session.items()
        session.items()  # the same state counts once
        assert (name in switched_off(session.view)) == (turn == 2)
    assert "switched off" in capsys.readouterr().err
    monkeypatch.setattr(layers, "LAYERS", kept)
    assert session.changed() == {}
    other.turns(1, thought(signature=b"s"))
    other.ask()
    assert len(other.changed()) == 1


def test_a_success_begins_the_count_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(keep=50)
    kept = layers.LAYERS
    for turn in range(9):
        session.ask()
        session.reply(thought(signature=b"s"))
        session.ask()
        fails = turn % 3 < 2
        monkeypatch.setattr(layers, "LAYERS", ((kept[1][0], broken),) if fails else kept)
        session.items()
        assert switched_off(session.view) == frozenset()
