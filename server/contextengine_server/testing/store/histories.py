"""Random operations on sessions that share their names, each store beside the model: after every
one, both say the same."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import StoreError
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import (
    LINE,
    Commit,
    Facts,
    MessageRow,
    SessionHead,
    StoredReply,
)

from .case import StoreCase
from .model import ModelSession, StoreModel
from .rows import debt, message, summary

EXAMPLE = itertools.count()
SCOPES = [(tenant, agent, session) for tenant in "tu" for agent in "ab" for session in "xy"]

# What a new message is to the atoms: it begins one, joins the last, is shown nowhere, or comes late
# to an earlier one.
PLACES = st.sampled_from(["begins", "begins", "joins", "hidden", "late"])
NEW = st.tuples(PLACES, st.integers(0, 6), st.booleans())
WRITE = st.fixed_dictionaries(
    {
        "op": st.just("write"),
        "scope": st.integers(0, len(SCOPES) - 1),
        "new": st.lists(NEW, max_size=5),
        "skew": st.sampled_from([0] * 8 + [1, -1]),
        "stranger": st.sampled_from([False] * 9 + [True]),
        "retire": st.none() | st.none() | st.integers(0, 12),
        "summarize": st.booleans(),
        "unsummarize": st.integers(0, 2),
        "shift": st.none() | st.tuples(st.integers(0, 12), st.integers(1, 9)),
        "fact": st.none() | st.integers(0, 30),
        "request": st.none() | st.integers(0, 6),
        "key": st.sampled_from(["", "", "k1", "k2"]),
        "parent": st.sampled_from(["", "", "", "x", "y"]),
        "owe": st.none() | st.tuples(st.sampled_from(["compact", "memory"]), st.booleans()),
        "settle": st.sampled_from(["", "", "compact", "memory"]),
    }
)
DELETE = st.fixed_dictionaries(
    {"op": st.just("delete"), "scope": st.integers(0, len(SCOPES) - 1), "cascade": st.booleans()}
)
OPERATIONS = st.lists(st.one_of(WRITE, WRITE, WRITE, WRITE, WRITE, DELETE), min_size=1, max_size=25)


def new_messages(
    session: ModelSession | None, op: dict[str, Any], revision: int
) -> list[MessageRow]:
    """Rows whose facts are as a fold would have them."""
    live = [] if session is None else session.live()
    if op["retire"] is not None:
        live = [row for row in live if row.sequence <= op["retire"]]
    last = 0 if session is None else session.head.last_sequence
    rows = list(live)
    for place, id, pinned in op["new"]:
        last += 1
        begins = [row for row in rows if row.start is not None]
        step: int | None = max((row.step for row in rows if row.step is not None), default=-1)
        start = late_of = None
        if place == "begins" or (place in ("joins", "late") and not begins):
            step, start = (step or 0) + 1 if begins else 0, sum(row.tokens for row in rows)
        elif place == "hidden":
            step = None
        elif place == "late":
            to = begins[id % len(begins)]
            step, late_of = to.step, to.sequence
        row = message(
            last,
            revision,
            step=step,
            start=start,
            late_of=late_of,
            pinned=pinned,
            host_id=f"h{id}" if id else "",
        )
        rows.append(row)
    return rows[len(live) :]


def prepared(model: StoreModel, scope: Scope, op: dict[str, Any], time: int) -> Commit:
    """The commit that an operation stands for, in the state that the model is in."""
    session = model.sessions.get(scope)
    was = session.head if session else SessionHead(scope, f"life {time}", 0, 0, created_ms=time)
    revision = was.revision + 1
    new = new_messages(session, op, revision)
    last = new[-1].sequence if new else was.last_sequence
    head = replace(
        was,
        revision=revision,
        last_sequence=last,
        updated_ms=time // 2,
        session_key=op["key"] or was.session_key,
        parent_session=was.parent_session
        or (op["parent"] if op["parent"] != scope.session else ""),
        ended=bool(time % 3 == 0),
        state=b"state %d" % time,
        commit_id=b"commit %09d" % time,
        ancestors=(was.ancestors + was.commit_id)[-LINE:],
        incarnation="a stranger" if op["stranger"] and session else was.incarnation,
    )
    notes = session.live_summaries() if session else []
    facts: tuple[Facts, ...] = ()
    if op["fact"] is not None and session is not None and op["fact"] in session.messages:
        row = session.messages[op["fact"]]
        facts = (
            Facts(
                row.sequence, row.step, None if row.start is None else row.start + 1, row.late_of
            ),
        )
    return Commit(
        head,
        max(0, was.revision + op["skew"]),
        messages=new,
        retire_after=op["retire"],
        retire_summaries=[note.id for note in notes[: op["unsummarize"]]],
        summaries=[summary(f"s{time}", max(1, last - 3), max(1, last), revision)]
        if op["summarize"]
        else (),
        facts=facts,
        shifts=() if op["shift"] is None else (op["shift"], (op["shift"][0] + 1, 2)),
        reply=None
        if op["request"] is None
        else StoredReply(f"r{op['request']}", b"d%d" % time, b"a%d" % time),
        bind_key=bool(head.session_key) and time % 2 == 0,
        debt=None if op["owe"] is None else debt(scope, op["owe"][0], time, held=op["owe"][1]),
        settle_debt=op["settle"],
    )


def outcome_of(error: StoreError) -> tuple[type[StoreError], object]:
    return type(error), {
        name: value for name, value in vars(error).items() if not name.startswith("__")
    }


async def same(store: Store, model: StoreModel, scope: Scope) -> None:
    """All that can be read of a session is what the model says."""
    session = model.sessions.get(scope)
    if session is None:
        assert await store.head(scope) is None
        assert await store.changes(scope, 0) is None
        assert await store.messages(scope, retired=True) == []
        assert await store.summaries(scope, retired=True) == []
        assert await store.debts(scope) == []
        return
    rows = [row for _, row in sorted(session.messages.items())]
    assert await store.head(scope) == session.head
    assert await store.messages(scope, retired=True) == rows
    assert await store.messages(scope) == session.live()
    assert await store.messages(scope, 3, 7) == [
        row for row in session.live() if 3 <= row.sequence <= 7
    ]
    notes = list(session.summaries.values())
    for revision in range(session.head.revision + 1):
        assert await store.messages(scope, as_of=revision) == session.live(revision)
        assert await store.summaries(scope, as_of=revision) == session.live_summaries(revision)
        changes = await store.changes(scope, revision)
        assert changes is not None
        assert changes.head == session.head
        assert list(changes.messages) == [
            row
            for row in rows
            if revision < row.created_revision or revision < row.retired_revision
        ]
        assert {note.id for note in changes.summaries} == {
            note.id
            for note in notes
            if revision < note.created_revision or revision < note.retired_revision
        }
    ids = [f"h{n}" for n in range(1, 7)]
    assert await store.messages_by_host_id(scope, ids) == [
        row for row in session.live() if row.host_id
    ]
    for name in range(7):
        assert await store.reply(scope, f"r{name}") == session.replies.get(f"r{name}")
    assert {owed.kind: owed for owed in await store.debts(scope)} == session.debts
    assert await store.dependents(scope) == model.dependents(scope)
    begins = sorted(
        (row for row in session.live() if row.start is not None),
        key=lambda row: (row.start, row.sequence),
    )
    for start in {0, 7, 40, *(row.start or 0 for row in begins)}:
        found = next((row for row in begins if (row.start or 0) >= start), None)
        assert await store.atom_from(scope, start) == found
    atoms = session.atoms()
    for row in rows:
        holding = [atom for atom in atoms.values() if row in atom]
        assert await store.atom_of(scope, row.sequence) == (holding[0] if holding else [])
    for before in (1, 4, 99):
        pinned = [
            atoms[first]
            for first in sorted(atoms)
            if first < before and any(row.pinned for row in atoms[first])
        ]
        assert await store.pinned_atoms(scope, before) == pinned


async def same_lists(store: Store, model: StoreModel, tenant: str) -> None:
    sessions = [one for scope, one in model.sessions.items() if scope.tenant == tenant]
    heads = sorted(
        (one.head for one in sessions),
        key=lambda head: (head.updated_ms, *head.scope[1:]),
        reverse=True,
    )
    listed = await store.list_sessions(tenant, limit=2)
    while listed and (
        page := await store.list_sessions(
            tenant, limit=2, after=(listed[-1].updated_ms, *listed[-1].scope[1:])
        )
    ):
        listed += page
    assert listed == heads
    assert [
        head.scope
        for head in await store.list_sessions(tenant, agent="a", session_key="k1", limit=99)
    ] == [head.scope for head in heads if head.scope.agent == "a" and head.session_key == "k1"]
    idle = [
        head.scope for head in await store.idle_sessions(9, 10**6) if head.scope.tenant == tenant
    ]
    assert sorted(idle) == sorted(
        head.scope for head in heads if not head.ended and head.updated_ms < 9
    )
    for agent in "ab":
        for key in ("k1", "k2"):
            assert await store.current_session(tenant, agent, key) == model.keys.get(
                (tenant, agent, key)
            )
    assert await store.counts(tenant) == {
        "sessions": len(sessions),
        "messages": sum(len(one.messages) for one in sessions),
        "summaries": sum(len(one.summaries) for one in sessions),
        "debts": sum(len(one.debts) for one in sessions),
        "agent_facts": 0,
    }


class HistoryCases(StoreCase):
    """Random operations, each store beside the model: after every one, both say the same."""

    @given(OPERATIONS)
    @settings(
        max_examples=40,
        deadline=None,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.differing_executors,
        ],
    )
    async def test_the_store_is_the_model(
        self, store: Store, operations: list[dict[str, Any]]
    ) -> None:
        example, model = next(EXAMPLE), StoreModel()
        scopes = [Scope(f"{tenant}{example}", agent, session) for tenant, agent, session in SCOPES]
        try:
            for time, op in enumerate(operations, 1):
                scope = scopes[op["scope"]]
                expected: object = None
                actual: object = None
                if op["op"] == "write":
                    change = prepared(model, scope, op, time)
                    try:
                        model.commit(change)
                    except StoreError as error:
                        expected = outcome_of(error)
                    try:
                        await store.commit(change)
                    except StoreError as error:
                        actual = outcome_of(error)
                else:
                    try:
                        expected = model.delete(scope, op["cascade"])
                    except StoreError as error:
                        expected = outcome_of(error)
                    try:
                        actual = await store.delete(
                            scope, expected_revision=None, cascade=op["cascade"]
                        )
                    except StoreError as error:
                        actual = outcome_of(error)
                assert actual == expected
                await same(store, model, scope)
            for scope in scopes:
                await same(store, model, scope)
            for tenant in {scope.tenant for scope in scopes}:
                await same_lists(store, model, tenant)
        finally:
            for scope in scopes:
                await store.delete(scope, expected_revision=None, cascade=True)
        assert set((await store.counts()).values()) == {0}
