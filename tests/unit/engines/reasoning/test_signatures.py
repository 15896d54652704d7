"""What is signed, sealed or between tags goes whole or stays as it is."""

from __future__ import annotations

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import Addressee, Stripped
from contextengine_server.engines.pipeline import reasoning as layers
from contextengine_server.engines.pipeline.past import Leavings
from contextengine_server.engines.pipeline.signature_scrubber import scrub
from contextengine_server.engines.pipeline.surrogate_guard import guard
from tests.unit.engines.reasoning.playing import (
    Session,
    kinds,
    said,
    text,
    thought,
)

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
