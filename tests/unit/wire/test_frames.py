"""Frames written by hand are what the generated code would write, for every kind of slot."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from contextengine_proto.v1 import assemble_pb2
from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import Form, Slot
from contextengine_server.testing.engine.random_sessions import RandomSession, sessions
from contextengine_server.testing.engine.trial import trial_of
from contextengine_server.testing.engine.views import SHAPER, all_slots, entries_of, folded, summary
from contextengine_server.testing.oracle.pairs import CoveredRange
from contextengine_server.wire.slots import (
    frame,
    item_of,
    origin_live,
    origin_sequence,
    varint,
)


def generated(item: pb.Item) -> bytes:
    """An item as the generated code writes it into a reply."""
    return assemble_pb2.AssembleResponse(items=[item]).SerializeToString(deterministic=True)


def built(slot: Slot, body: pb.Message, origin: pb.Origin) -> pb.Item:
    """The item of a slot, by the generated code."""
    return pb.Item(
        id=body.id, origin=origin, content_hash=slot.hash, tokens=slot.tokens,
        form=pb.Form.Name(int(slot.form)),
        message=body,
    )  # fmt: skip


@given(sessions(max_events=20), st.lists(st.integers(1, 20), max_size=2))
def test_every_slot_of_a_session_is_as_the_generated_code_writes_it(
    session: RandomSession, covered: list[int]
) -> None:
    stretches = [CoveredRange(first, first + 3, 2 * first + 9) for first in covered]
    view = folded(entries_of(session.rows), stretches=stretches)
    bodies = {row.sequence: row.message for row in session.rows}
    for slot in all_slots(view):
        item = item_of(slot.frame)
        assert generated(item) == slot.frame
        assert (item.tokens, item.content_hash, item.form) == (
            slot.tokens,
            slot.hash,
            int(slot.form),
        )
        origin = pb.Origin(sequence=slot.sequence)
        if slot.synthetic:
            origin = pb.Origin(synthetic="no result was recorded")
        elif slot.form == Form.VERBATIM:
            assert generated(built(slot, bodies[slot.sequence], origin)) == slot.frame
        assert item == built(slot, item.message, origin)
    joined = assemble_pb2.AssembleResponse.FromString(
        b"".join(slot.frame for slot in all_slots(view))
    )
    assert list(joined.items) == [item_of(slot.frame) for slot in all_slots(view)]


@given(sessions(max_events=8))
def test_a_summary_is_as_the_generated_code_writes_it(session: RandomSession) -> None:
    one = trial_of(session.rows)
    if not one.view.steps or not one.rows:
        return
    made, covering = summary(one.view, 0, one.view.steps - 1, "what was said", created=9)
    item = item_of(made.slot.frame)
    assert generated(item) == made.slot.frame
    assert item.id == item.message.id == f"ce:summary:{made.id}"
    assert item.origin == pb.Origin(summary_id=made.id)
    assert (item.summary.first_sequence, item.summary.last_sequence) == (
        made.first_sequence,
        made.last_sequence,
    )
    assert item.summary.message_count == covering.message_count
    assert item.summary.HasField("start_time") == (made.start_ms is not None)


@given(sessions(max_events=6), st.integers(0, 300))
def test_what_is_not_stored_names_its_place_in_the_list(session: RandomSession, index: int) -> None:
    for entry in entries_of(session.rows):
        item = item_of(SHAPER.whole(replace(entry, live_index=index)).frame)
        # Presence matters: the first message of a list has index 0.
        assert item.origin.WhichOneof("kind") == "live_index"
        assert item.origin.live_index == index


@given(
    st.text(max_size=5), st.integers(0, 2**62), st.binary(min_size=16, max_size=16), st.integers(0,
    2**40),
    st.sampled_from(Form), st.binary(max_size=300), st.booleans(),
)  # fmt: skip
def test_any_item_is_as_the_generated_code_writes_it(
    item_id: str,
    sequence: int,
    digest: bytes,
    tokens: int,
    form: Form,
    data: bytes,
    with_summary: bool,
) -> None:
    message = pb.Message(
        id=item_id, role=pb.ROLE_USER, parts=[pb.Part(opaque=pb.OpaquePart(json=data))]
    )
    info = pb.SummaryInfo(id="s", depth=2, children=["a", "b"]) if with_summary else None
    item = pb.Item(
        id=item_id, origin=pb.Origin(sequence=sequence), content_hash=digest, tokens=tokens,
        form=pb.Form.Name(int(form)), message=message, summary=info,
    )  # fmt: skip
    body = message.SerializeToString(deterministic=True)
    told_of = info.SerializeToString(deterministic=True) if info else b""
    assert frame(
        item_id, origin_sequence(sequence), digest, tokens, form, body, told_of
    ) == generated(item)


@given(st.integers(0, 2**63 - 1))
def test_integers_are_those_of_the_wire(value: int) -> None:
    assert origin_sequence(value) == pb.Origin(sequence=value).SerializeToString()
    assert origin_live(value)[1:] == varint(value)
