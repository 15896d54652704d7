"""Of which replies the reasoning stays, by the facts of Comis's engine where they hold
(docs/pipeline.md)."""

from __future__ import annotations

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import Addressee
from contextengine_server.engines.pipeline.past import drift
from tests.unit.engines.reasoning.playing import (
    Session,
    kinds,
    made_by,
    text,
    thought,
)

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
