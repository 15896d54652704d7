"""What is written, within a transaction that the caller began: all of it or nothing.

Nothing here relies on a statement that fails, which would end the transaction: rows that may be
there are written where they are not, and counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from contextengine_server.context.scope import Scope
from contextengine_server.store.charges import SLOT_MS, SPENT_MS, Charge
from contextengine_server.store.errors import (
    DuplicateHostIds,
    DuplicateRequest,
    HasDependents,
    ParentGone,
    RevisionConflict,
    StoreError,
)
from contextengine_server.store.rows import Assignment, Commit, Deleted, StoredReply, SummaryRow
from contextengine_server.store.sql import columns
from contextengine_server.store.sql.columns import (
    MESSAGE,
    debt_values,
    head_values,
    message_values,
    reply_values,
    summary_values,
    updated_values,
)

from . import reads, texts
from .connections import Db
from .keys import home, life, named
from .statements import (
    ANSWER,
    APPEND,
    DELETE_INDEX,
    FACTS,
    INSERT_HEAD,
    LOCK_TO_DELETE,
    LOCK_TO_STAND,
    RETIRE_SUMMARIES,
    SQL,
    SUMMARIZE,
    UNLESS_THERE,
    UPDATE_HEAD,
)

_HOST_ID = MESSAGE.index("host_id")


def as_arrays(rows: Sequence[Sequence[Any]], *of_texts: int) -> list[list[Any]]:
    """Rows as one array for each column, those of texts as they are stored."""
    arrays = [list(column) for column in zip(*rows, strict=True)]
    for at in of_texts:
        arrays[at] = texts.all_written(arrays[at])
    return arrays


async def commit(db: Db, change: Commit) -> None:
    """Writes one commit. Raises DuplicateRequest, RevisionConflict, ParentGone, DuplicateHostIds or
    StoreError, in this order."""
    scope, head = change.head.scope, change.head
    own = {"home": home(scope), "life": life(scope, head.incarnation), "revision": head.revision}
    names = named(scope, revision=head.revision)
    if change.reply is not None:
        await _answer(db, change, change.reply)
    await _advance(db, change)
    if change.parent is not None:
        parent = await reads.head(db, change.parent.scope, LOCK_TO_STAND)
        if parent is None or parent.incarnation != change.parent.incarnation:
            raise ParentGone(change.parent.scope)
    if change.retire_after is not None:
        await db.met(SQL.messages.retire_after, {**names, "after": change.retire_after})
        if not change.keeps_facts:
            await db.met(SQL.memory.take_back, {**names, "after": change.retire_after})
    if change.retire_summaries:
        ids = list(change.retire_summaries)
        met = await db.met(RETIRE_SUMMARIES, {**own, "ids": ids})
        _require(met, len(ids), "no such live summary")
    for after, delta in change.shifts:
        await db.met(SQL.messages.shift, {**names, "after": after, "delta": delta})
        await db.met(SQL.summaries.shift, {**names, "after": after, "delta": delta})
    if change.facts:
        last = {fact.sequence: fact for fact in change.facts}
        rows = [(fact.sequence, fact.step, fact.start, fact.late_of) for fact in last.values()]
        met = await db.met(FACTS, (own["home"], own["life"], *as_arrays(rows)))
        _require(met, len(rows), "facts of a message that is not there")
    await put_rows(db, change)
    if change.bind_key:
        key = scope.tenant, scope.agent, head.session_key, scope.session
        await db.met(SQL.heads.bind_key, key)
    if change.settle_debt:
        await db.met(SQL.debts.settle, named(scope, kind=change.settle_debt))
    if change.debt is not None:
        await db.met(SQL.debts.add_or_hold, (*change.debt.scope, *debt_values(change.debt)))
    if change.charge is not None:
        await _charge(db, scope, change.charge)


async def put_rows(db: Db, change: Commit) -> None:
    """Adds the messages and summaries of a commit. Raises DuplicateHostIds or StoreError."""
    if change.messages:
        await _append(db, change)
    if change.summaries:
        await _summarize(db, change)


async def _answer(db: Db, change: Commit, answer: StoredReply) -> None:
    scope = change.head.scope
    row = (home(scope), *scope, *reply_values(answer), change.head.revision)
    if not await db.met(ANSWER, row):
        stored = await reads.reply(db, scope, answer.request_id)
        if stored is not None:
            raise DuplicateRequest(stored)


async def _advance(db: Db, change: Commit) -> None:
    """Brings the head from the expected revision to the next."""
    head, expected = change.head, change.expected_revision
    key = home(head.scope), life(head.scope, head.incarnation)
    if expected or change.adopts:
        row = (*updated_values(head), *key, expected, change.expected_commit)
        met = await db.met(UPDATE_HEAD, row)
    else:
        row = (*key, *head.scope, *head_values(head))
        met = await db.met(INSERT_HEAD, row)
        if not met:
            names, (messages, staged) = named(head.scope), SQL.heads.replace_staged
            await db.met(messages, names)
            if await db.met(staged, names):
                met = await db.met(INSERT_HEAD, row)
    if not met:
        raise await conflict(db, change)


async def conflict(db: Db, change: Commit) -> RevisionConflict:
    """Which race a commit lost."""
    scope = change.head.scope
    found = await reads.head(db, scope)
    actual = None if found is None else found.revision
    return RevisionConflict(scope, change.expected_revision, actual)


def _require(met: int, wanted: int, otherwise: str) -> None:
    if met != wanted:
        raise StoreError(f"{otherwise}: {wanted} rows were named, not all of them are stored")


async def _append(db: Db, change: Commit) -> None:
    scope, rows = change.head.scope, change.messages
    key = home(scope), life(scope, change.head.incarnation)
    arrays = as_arrays([message_values(row) for row in rows], _HOST_ID)
    if await db.met(APPEND, (*key, *arrays)) == len(rows):
        return
    # Some of the new rows are in the table by now. A host id is a duplicate where another row than
    # the new one has it, or where it comes twice among the new ones.
    times = Counter(row.host_id for row in rows if row.host_id)
    own = {row.sequence for row in rows}
    there = {
        row.host_id
        for row in await reads.messages_by_host_id(db, scope, list(times))
        if row.sequence not in own
    }
    duplicates = [id for id in times if times[id] > 1 or id in there]
    if duplicates:
        raise DuplicateHostIds(duplicates)
    raise StoreError(f"messages {min(own)} to {max(own)}: a sequence among them is stored already")


async def _summarize(db: Db, change: Commit) -> None:
    scope, rows = change.head.scope, change.summaries
    key = home(scope), life(scope, change.head.incarnation)
    for row in rows:
        if not await db.met(SUMMARIZE, (*key, *summary_values(row))):
            raise StoreError(
                f"summaries {', '.join(row.id for row in rows)}: an id among them is stored already"
            )


async def _charge(db: Db, scope: Scope, charged: Charge) -> None:
    """Adds a charge; what is older than a day goes."""
    oldest = (charged.time_ms - SPENT_MS) // SLOT_MS
    names = {"tenant": scope.tenant, "agent": scope.agent, "slot": oldest}
    await db.met(SQL.ledger.forget, names)
    await db.met(SQL.ledger.spend, columns.spent_values(scope, charged))
    await db.met(SQL.ledger.add, columns.costs_values(scope, charged))


async def mend(db: Db, scope: Scope, bodies: Sequence[tuple[int, bytes, bytes]]) -> int:
    return sum(
        [
            await db.met(
                SQL.messages.mend,
                named(scope, sequence=sequence, content_hash=content_hash, body=body),
            )
            for sequence, content_hash, body in bodies
        ]
    )


async def mend_summaries(db: Db, scope: Scope, rows: Sequence[SummaryRow]) -> int:
    return sum(
        [
            await db.met(
                SQL.summaries.mend,
                named(
                    scope,
                    id=row.id,
                    content_hash=row.content_hash,
                    text=row.text,
                    children=json.dumps(row.children),
                ),
            )
            for row in rows
        ]
    )


async def delete(db: Db, scope: Scope, expected_revision: int | None, cascade: bool) -> Deleted:
    """Erases sessions. Raises RevisionConflict, HasDependents."""
    head = await reads.head(db, scope, LOCK_TO_DELETE)
    if expected_revision is not None and (head is None or head.revision != expected_revision):
        raise RevisionConflict(scope, expected_revision, None if head is None else head.revision)
    if head is None:
        return Deleted()
    doomed = [scope]
    for each in doomed:  # grows as dependents of dependents are found
        standing = [one for one in await reads.dependents(db, each) if one not in doomed]
        if standing and not cascade:
            raise HasDependents([one.session for one in standing])
        for one in standing:
            if await reads.head(db, one, LOCK_TO_DELETE) is not None:
                doomed.append(one)
    gone = [await erase(db, each) for each in doomed]
    messages, summaries = (sum(counts) for counts in zip(*gone, strict=True))
    return Deleted(tuple(each.session for each in doomed), messages, summaries)


async def unstage(db: Db, scope: Scope, incarnation: str, above: int) -> None:
    names = named(scope, incarnation=incarnation)
    await db.met(SQL.heads.unstage_messages, {**names, "above": above})
    if not above:
        await db.met(SQL.heads.unstage, names)


async def erase(db: Db, scope: Scope) -> tuple[int, int]:
    """Erases a session with everything derived from it; answers how many messages and summaries
    went."""
    names = named(scope)
    for statement in DELETE_INDEX:
        await db.met(statement, names)
    messages = await db.met(SQL.heads.delete_messages, names)
    summaries = await db.met(SQL.heads.delete_summaries, names)
    for statement in SQL.heads.delete_rest:
        await db.met(statement, names)
    return messages, summaries


async def forget(db: Db, tenant: str, agent: str) -> int:
    """Erases what stands beside sessions; answers how many rows went."""
    statements = SQL.heads.forget_agent if agent else SQL.heads.forget_tenant
    names = {"tenant": tenant, "agent": agent}
    return sum([await db.met(statement, names) for statement in statements])


async def remember_of_agent(db: Db, scope: Scope, answer: StoredReply) -> None:
    """Keeps an answer that outlives the session that it is about; the first one under an id
    stays."""
    agent = scope._replace(session="")
    row = (home(agent), *agent, *reply_values(answer), 0)
    await db.met(SQL.replies.insert + UNLESS_THERE, row)


async def assign(db: Db, choice: Assignment) -> None:
    key = (choice.tenant, choice.agent, choice.session)
    if choice.engine_id or choice.options not in (b"", b"{}"):
        await db.met(SQL.assignments.assign, (*key, choice.engine_id, choice.options))
    else:
        await db.met(SQL.assignments.unassign, named(Scope(*key)))
