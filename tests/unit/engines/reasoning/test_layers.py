"""What all layers of the pipeline over reasoning keep, and how one that fails is left out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import Stripped
from contextengine_server.context.plan import segment_slots
from contextengine_server.engines.pipeline import reasoning as layers
from contextengine_server.engines.pipeline.isolation import switched_off
from contextengine_server.engines.pipeline.past import Leavings, Past
from contextengine_server.engines.pipeline.signature_scrubber import scrub
from contextengine_server.engines.pipeline.surrogate_guard import guard
from contextengine_server.engines.pipeline.tag_stripper import strip
from contextengine_server.engines.pipeline.thinking_cleaner import clean
from contextengine_server.testing.engine import views
from contextengine_server.wire.slots import item_of
from tests.unit.engines.reasoning.playing import (
    BUDGET,
    Session,
    kinds,
    text,
    thought,
)

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
