"""Search and Expand by the ids that hosts gave, in place of sequences
(docs/semantics.md#host-ids-in-place-of-sequences)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import user
from tests.integration.harness import House, problem, ref

from .asking import S, covered, find, sequences, sequences_of, write

Rewind = t.RecordHostChangeRequest.Rewind
NO_ROW, BOTH = ("NOT_FOUND", "ROW_NOT_FOUND"), ("INVALID_ARGUMENT", "CONTRADICTORY_FIELDS")


async def talked(house: House, count: int = 9) -> None:
    """Messages `m1`, `m2` … that all speak of the harbour."""
    said = [user(f"boat {n} lies in the harbour " * 9, id=f"m{n}") for n in range(1, count + 1)]
    await write(house, S, *said)


async def found(house: House, session: t.SessionRef = S, **more: Any) -> list[int]:
    return sorted(sequences(await find(house, "harbour", session, **more)))


@pytest.mark.parametrize(
    ("by_id", "by_sequence"),
    [
        ({"first_message_id": "m4"}, {"first_sequence": 4}),
        ({"last_message_id": "m6"}, {"last_sequence": 6}),
        (
            {"first_message_id": "m4", "last_message_id": "m6"},
            {"first_sequence": 4, "last_sequence": 6},
        ),
        ({"first_sequence": 4, "last_message_id": "m4"}, {"first_sequence": 4, "last_sequence": 4}),
    ],
)
async def test_a_search_begins_and_ends_with_messages_of_a_host(
    house: House, by_id: dict[str, Any], by_sequence: dict[str, Any]
) -> None:
    await talked(house)
    wanted = await found(house, **by_sequence)
    assert 0 < len(wanted) < 9
    assert await found(house, **by_id) == wanted
    house.forget()
    assert await found(house, **by_id) == wanted
    # Pages are those of the same search.
    first = await find(house, "harbour", limit=1, **by_id)
    pages = [first]
    while pages[-1].next_page_token:
        token = pages[-1].next_page_token
        pages.append(await find(house, "harbour", limit=1, page_token=token, **by_id))
    assert sorted(one for page in pages for one in sequences(page)) == wanted


async def test_messages_are_brought_back_by_their_ids(house: House) -> None:
    await talked(house)
    by_id = await house.client.recall.expand(S, message_ids=["m7", "m2", "m2"], sequences=[7, 3])
    assert by_id == await house.client.recall.expand(S, sequences=[2, 3, 7])
    assert sequences_of(by_id.items) == [2, 3, 7]
    assert [item.id for item in by_id.items] == ["m2", "m3", "m7"]
    house.forget()
    page = await house.client.recall.expand(S, message_ids=["m1", "m2", "m3", "m9"], max_tokens=256)
    came = [*page.items]
    while page.truncated:
        page = await house.client.recall.expand(
            S,
            message_ids=["m1", "m2", "m3", "m9"],
            max_tokens=256,
            page_token=page.next_page_token,
        )
        came += page.items
    assert sequences_of(came) == [1, 2, 3, 9]


async def test_ids_that_no_message_of_the_view_has_are_counted_by_expand(house: House) -> None:
    await talked(house)
    await house.client.record_host_change(S, rewind=Rewind(after_message_id="m6"))
    page = await house.client.recall.expand(S, message_ids=["m5", "m8", "nobody's", "m8"])
    assert (sequences_of(page.items), page.missing_count) == ([5], 2)
    only = await house.client.recall.expand(S, message_ids=["nobody's"])
    assert (len(only.items), only.missing_count) == (0, 1)
    # What left the view is still there, by its sequence.
    assert sequences_of((await house.client.recall.expand(S, sequences=[8])).items) == [8]


async def test_an_item_of_a_summary_stands_for_what_it_covers(house: House) -> None:
    await talked(house)
    made = await covered(house, S, 3, 5, "three boats lie there")
    (item,) = [
        one.id for one in (await house.client.assemble(S)).items if one.origin.summary_id == made.id
    ]
    # The summary itself tells of its range, and is no message.
    messages = t.SEARCH_SCOPE_MESSAGES
    assert await found(house, scope=messages, first_message_id=item) == [*range(3, 10)]
    assert await found(house, scope=messages, last_message_id=item) == [*range(1, 6)]


async def test_a_fork_and_a_continuation_know_the_ids_that_they_inherit(house: House) -> None:
    await talked(house)
    await house.client.prepare_subagent_spawn(
        S, ref("child"), context_mode=t.CONTEXT_MODE_FORK, fork_after_message_id="m6"
    )
    await house.client.bootstrap(ref("next"), continues=S)
    for session, last in ((ref("child"), 6), (ref("next"), 9)):
        await write(house, session, user("the harbour is closed", id="mine"))
        assert await found(house, session, first_message_id="m5") == [*range(5, last + 2)]
        page = await house.client.recall.expand(session, message_ids=["m5", "mine"])
        assert sequences_of(page.items) == [5, last + 1]


async def test_an_id_that_was_given_again_after_a_rewind_is_found_once(house: House) -> None:
    await talked(house)
    await house.client.record_host_change(S, rewind=Rewind(after_message_id="m6"))
    await write(house, S, user("another boat in the harbour", id="m8"))
    wanted = ["m8", "nobody's", "no one's"]
    page = await house.client.recall.expand(S, message_ids=wanted)
    assert (sequences_of(page.items), page.missing_count) == ([10], 2)


async def test_a_grant_opens_no_message_that_is_newer(house: House) -> None:
    await talked(house)
    spawned = await house.client.prepare_subagent_spawn(
        S, ref("child"), grant=t.RecallGrant(max_tokens=4_000)
    )
    await write(house, S, user("a secret of the harbour", id="later"))
    token = spawned.spawn_token
    page = await house.client.recall.expand(
        ref("child"), message_ids=["m5", "later"], spawn_token=token
    )
    assert (sequences_of(page.items), page.missing_count) == ([5], 1)
    with pytest.raises(ContextEngineError) as caught:
        await find(
            house,
            "harbour",
            ref("child"),
            at_least_revision=0,
            first_message_id="later",
            spawn_token=token,
        )
    assert problem(caught.value) == (*NO_ROW, ["first_message_id"])


@pytest.mark.parametrize(
    ("asked", "wanted", "fields"),
    [
        ({"first_message_id": "nobody's"}, NO_ROW, ["first_message_id"]),
        ({"last_message_id": "gone"}, NO_ROW, ["last_message_id"]),
        (
            {"first_message_id": "m4", "last_message_id": "m3"},
            ("INVALID_ARGUMENT", "INVALID_FIELD"),
            ["last_message_id"],
        ),
        (
            {"first_sequence": 1, "first_message_id": "m1"},
            BOTH,
            ["first_sequence", "first_message_id"],
        ),
    ],
)
async def test_what_cannot_be_meant_is_said(
    house: House, asked: dict[str, Any], wanted: tuple[str, str], fields: list[str]
) -> None:
    await talked(house)
    await write(house, S, user("undone", id="gone"))
    await house.client.record_host_change(S, rewind=Rewind(after_message_id="m9"))
    with pytest.raises(ContextEngineError) as caught:
        await find(house, "harbour", **asked)
    assert problem(caught.value) == (*wanted, fields)


def numbered(of: Descriptor, seen: set[str]) -> Iterator[tuple[Descriptor, str]]:
    """The fields of a request, and of what lies in it, that name messages by sequences."""
    if of.full_name in seen:
        return
    seen.add(of.full_name)
    for field in of.fields:
        if field.name.endswith(("sequence", "sequences")):
            yield of, field.name
        if field.message_type is not None:
            yield from numbered(field.message_type, seen)


def test_no_request_asks_for_a_sequence_alone() -> None:
    seen: set[str] = set()
    alone = []
    services = [
        service
        for name in ("context_engine", "recall", "projection", "runtime", "sessions", "engines")
        for service in __import__(
            f"contextengine_proto.v1.{name}_pb2", fromlist=[name]
        ).DESCRIPTOR.services_by_name.values()
    ]
    for service in services:
        for rpc in service.methods:
            for of, name in numbered(rpc.input_type, seen):
                twin = name.removesuffix("sequences").removesuffix("sequence")
                known = {field.name for field in of.fields}
                if not known & {f"{twin}message_id", f"{twin}message_ids"}:
                    alone.append(f"{of.name}.{name}")
    # What the service answered of a thread and wants back as it was.
    assert alone == ["ProjectionBinding.first_sequence"]
