"""Hosts know ids and no sequences: wherever a sequence is asked for, an id may be given instead,
and what is held is answered by its newest id
(docs/semantics.md#host-ids-in-place-of-sequences)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, tool_call, tool_result, user
from tests.integration.harness import House, budget, problem, ref, texts

Change = t.RecordHostChangeRequest
SUMMARY = "They greeted each other."


async def talked(house: House, session: t.SessionRef, turns: int = 4) -> None:
    """Messages `m1`, `m2` … of so many turns."""
    said = [
        user(f"u{n} " * 40, id=f"m{n}") if n % 2 else assistant(f"a{n} " * 40, id=f"m{n}")
        for n in range(1, 2 * turns + 1)
    ]
    await house.client.ingest_batch(session, said)


async def held(house: House, session: t.SessionRef) -> str:
    """The newest id, as GetStatus and Bootstrap answer it, warm and cold."""
    answered = {(await house.client.get_status(session)).last_message_id}
    answered.add((await house.client.bootstrap(session)).last_message_id)
    house.forget()
    answered.add((await house.client.get_status(session)).last_message_id)
    answered.add((await house.client.bootstrap(session)).last_message_id)
    (only,) = answered
    return only


async def test_the_newest_host_id_is_answered(house: House) -> None:
    session = ref("held")
    assert (await house.client.bootstrap(session)).last_message_id == ""
    await talked(house, session)
    assert await held(house, session) == "m8"
    unnamed = t.IngestRequest(session=session, message=t.Message(role=t.ROLE_USER))
    unnamed.message.parts.add().text.text = "without an id"
    await house.stub.Ingest(unnamed)
    assert await held(house, session) == "m8"
    await house.client.record_host_change(session, rewind=Change.Rewind(after_message_id="m3"))
    assert await held(house, session) == "m3"
    await house.restart()
    assert await held(house, session) == "m3"
    await house.client.reset_session(session)
    assert await held(house, session) == ""


async def test_a_fork_and_a_continuation_hold_what_they_inherit(house: House) -> None:
    parent = ref("parent")
    await talked(house, parent)
    await house.client.bootstrap(ref("next"), continues=parent)
    assert await held(house, ref("next")) == "m8"
    await house.client.prepare_subagent_spawn(
        parent, ref("child"), context_mode=t.CONTEXT_MODE_FORK, fork_after_message_id="m5"
    )
    assert await held(house, ref("child")) == "m5"
    assert [row.sequence for row in await house.rows(ref("child"))] == [1, 2, 3, 4, 5]
    # Ids of what is inherited name it in the child as well.
    await house.client.ingest(ref("child"), user("on", id="c1"))
    await house.client.record_host_change(ref("child"), rewind=Change.Rewind(after_message_id="m5"))
    assert await held(house, ref("child")) == "m5"


@pytest.mark.parametrize("cold", [False, True])
async def test_an_id_rewinds_as_its_sequence_does(house: House, cold: bool) -> None:
    for name in ("by id", "by sequence"):
        await talked(house, ref(name))
    if cold:
        house.forget()
    by_id = await house.client.record_host_change(
        ref("by id"), rewind=Change.Rewind(after_message_id="m3")
    )
    by_sequence = await house.client.record_host_change(
        ref("by sequence"), rewind=Change.Rewind(after_sequence=3)
    )
    assert by_id == by_sequence
    shown = [
        texts((await house.client.assemble(ref(name))).items) for name in ("by id", "by sequence")
    ]
    assert shown[0] == shown[1]
    assert len(shown[0]) == 3


async def test_an_id_far_behind_the_window_is_found(house: House) -> None:
    session = ref("far")
    await talked(house, session, turns=200)
    house.forget()
    await house.client.assemble(session, budget=budget(500))
    done = await house.client.record_host_change(
        session, rewind=Change.Rewind(after_message_id="m4")
    )
    assert done.retired_count == 396


async def test_a_change_that_is_known_is_repeated_after_what_it_named_is_gone(
    house: House,
) -> None:
    session = ref("again")
    await talked(house, session)
    rewind = Change.Rewind(after_message_id="m5")
    first = await house.client.record_host_change(session, change_id="one", rewind=rewind)
    await house.client.record_host_change(session, rewind=Change.Rewind(after_message_id="m2"))
    again = await house.client.record_host_change(session, change_id="one", rewind=rewind)
    assert (again.recorded, again.revision) == (False, first.revision)


@pytest.mark.parametrize(
    "named",
    [
        {"first_message_id": "m1", "last_message_id": "m6"},
        {"first_sequence": 1, "last_message_id": "m6"},
        {"first_message_id": "m1", "first_kept_message_id": "m7"},
        {"first_kept_message_id": "m7"},
    ],
)
async def test_a_hosts_compaction_names_its_range_by_ids(
    house: House, named: dict[str, Any]
) -> None:
    await talked(house, ref("ids"))
    compacted = Change.HostCompaction(summary=SUMMARY, **named)
    done = await house.client.record_host_change(ref("ids"), compacted=compacted)
    assert (done.summary.first_sequence, done.summary.last_sequence) == (1, 6)
    items = (await house.client.assemble(ref("ids"))).items
    assert SUMMARY in texts(items)[0]
    assert [item.id for item in items[1:]] == ["m7", "m8"]
    # What the host keeps in its list begins with our item: its next compaction names that.
    await house.client.ingest_batch(
        ref("ids"), [user("more " * 40, id="m9"), assistant("and more " * 40, id="m10")]
    )
    again = Change.HostCompaction(
        summary="They talked.", first_message_id=items[0].id, last_message_id="m8"
    )
    done = await house.client.record_host_change(ref("ids"), compacted=again)
    assert (done.summary.first_sequence, done.summary.last_sequence) == (1, 8)


async def test_a_compaction_answers_the_id_that_is_kept_first(house: House) -> None:
    session = ref("kept")
    await talked(house, session, turns=30)
    reply = await house.client.compact(session, force=True, budget=budget(2_000))
    assert reply.compacted
    rows = {row.sequence: row.message.id for row in await house.rows(session)}
    assert reply.first_kept_message_id == rows[reply.first_kept_sequence]


async def test_a_delegation_names_its_range_by_ids(house: House) -> None:
    session = ref("delegated")
    await house.client.engines.assign(scope=session, engine_id="legacy")
    await house.client.bootstrap(
        session, host=t.HostInfo(host_id="h", capabilities=["compacts-transcript", "compact"])
    )
    await talked(house, session, turns=40)
    reply = await house.client.compact(session, force=True, budget=budget(2_000))
    asked = reply.delegation
    rows = {row.sequence: row.message.id for row in await house.rows(session)}
    assert (asked.first_message_id, asked.last_message_id) == (
        rows[asked.first_sequence],
        rows[asked.last_sequence],
    )
    done = await house.client.record_host_change(
        session,
        compacted=Change.HostCompaction(
            first_message_id=asked.first_message_id,
            last_message_id=asked.last_message_id,
            summary=SUMMARY,
        ),
    )
    assert done.summary.last_sequence == asked.last_sequence


def rewound(**fields: Any) -> Callable[[House], Awaitable[Any]]:
    return lambda house: house.client.record_host_change(ref("s"), rewind=Change.Rewind(**fields))


def compacted(**fields: Any) -> Callable[[House], Awaitable[Any]]:
    change = Change.HostCompaction(summary=SUMMARY, **fields)
    return lambda house: house.client.record_host_change(ref("s"), compacted=change)


def forked(**fields: Any) -> Callable[[House], Awaitable[Any]]:
    return lambda house: house.client.prepare_subagent_spawn(ref("s"), ref("child"), **fields)


BOTH, UNKNOWN, INVALID = (
    ("INVALID_ARGUMENT", "CONTRADICTORY_FIELDS"),
    ("NOT_FOUND", "ROW_NOT_FOUND"),
    ("INVALID_ARGUMENT", "INVALID_FIELD"),
)
FORK = {"context_mode": t.CONTEXT_MODE_FORK}
AFTER = ["rewind.after_sequence", "rewind.after_message_id"]
LAST = ["compacted.last_sequence", "compacted.last_message_id"]


@pytest.mark.parametrize(
    ("call", "wanted", "fields"),
    [
        (rewound(after_sequence=2, after_message_id="m2"), BOTH, AFTER),
        (rewound(after_message_id="gone"), UNKNOWN, [AFTER[1]]),
        (rewound(after_message_id="nobody's"), UNKNOWN, [AFTER[1]]),
        (rewound(after_message_id="m" * 300), INVALID, [AFTER[1]]),
        (compacted(first_sequence=1, last_sequence=2, last_message_id="m2"), BOTH, LAST),
        (
            compacted(first_sequence=1, first_message_id="m1", last_sequence=2),
            BOTH,
            ["compacted.first_sequence", "compacted.first_message_id"],
        ),
        (
            compacted(last_message_id="m2", first_kept_message_id="m3"),
            BOTH,
            ["compacted.last_message_id", "compacted.first_kept_message_id"],
        ),
        (compacted(first_kept_message_id="m1"), INVALID, ["compacted.first_kept_message_id"]),
        (
            compacted(first_message_id="m3", first_kept_message_id="m3"),
            INVALID,
            ["compacted.first_kept_message_id"],
        ),
        (
            compacted(first_message_id="nobody's", last_sequence=4),
            UNKNOWN,
            ["compacted.first_message_id"],
        ),
        (
            forked(fork_after_sequence=1, fork_after_message_id="m1", **FORK),
            BOTH,
            ["fork_after_sequence", "fork_after_message_id"],
        ),
        (forked(fork_after_message_id="gone", **FORK), UNKNOWN, ["fork_after_message_id"]),
        (forked(fork_after_message_id="m1"), BOTH, ["context_mode", "fork_after_message_id"]),
    ],
)
async def test_what_cannot_be_meant_is_said(
    house: House,
    call: Callable[[House], Awaitable[Any]],
    wanted: tuple[str, str],
    fields: list[str],
) -> None:
    await talked(house, ref("s"))
    await house.client.ingest(ref("s"), user("undone", id="gone"))
    await house.client.record_host_change(ref("s"), rewind=Change.Rewind(after_message_id="m8"))
    before = (await house.client.get_status(ref("s"))).revision
    with pytest.raises(ContextEngineError) as caught:
        await call(house)
    assert problem(caught.value) == (*wanted, fields)
    assert (await house.client.get_status(ref("s"))).revision == before


async def test_a_step_that_an_id_splits_stands_as_one_of_a_sequence_does(house: House) -> None:
    session = ref("step")
    calls = assistant(tool_calls=[tool_call("c1", "look"), tool_call("c2", "look")], id="a1")
    results = [tool_result("c1", "first", id="r1"), tool_result("c2", "second", id="r2")]
    await house.client.ingest_batch(session, [user("go", id="u1"), calls, *results])
    await house.client.record_host_change(session, rewind=Change.Rewind(after_message_id="r1"))
    shown = texts((await house.client.assemble(session)).items)
    assert "first" in shown
    assert "second" not in shown
