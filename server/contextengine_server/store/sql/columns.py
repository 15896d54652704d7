"""Rows as columns, and columns as rows: the one place that knows which column is which field.

A row's columns are its fields, in their order; those that name its session come first where the row
has a `scope`. A flag may come back as a number, since not every database has a type for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from msgspec.structs import fields

from contextengine_server.context.scope import Scope
from contextengine_server.store.agent_facts import AgentFact
from contextengine_server.store.archives import ArchivedObject
from contextengine_server.store.charges import SLOT_MS, Charge, Spent
from contextengine_server.store.chunks import Chunk, ChunkShelf
from contextengine_server.store.debts import Debt
from contextengine_server.store.model_jobs import ModelJob
from contextengine_server.store.rows import (
    Assignment,
    Costs,
    MessageRow,
    SessionHead,
    Spawn,
    StoredReply,
    SummaryRow,
)

Row = TypeVar("Row")
Values = Iterable[Any]

KEY = ("tenant", "agent", "session")
"""What names a session."""


def _names(row: type, *before: str) -> tuple[str, ...]:
    return (*before, *(field.name for field in fields(row) if field.name != "scope"))


HEAD = _names(SessionHead, *KEY)
MESSAGE = _names(MessageRow)
SUMMARY = _names(SummaryRow)
REPLY = _names(StoredReply)
DEBT = _names(Debt, *KEY)
ASSIGNMENT = _names(Assignment)
JOB = _names(ModelJob)
SPAWN = _names(Spawn)
SPENT = _names(Spent)
COSTS = _names(Costs)
FACT = _names(AgentFact, "tenant", "agent", "session")
SHELF = _names(ChunkShelf, *KEY)
CHUNK = _names(Chunk)
ARCHIVE = _names(ArchivedObject, *KEY)
UPDATED = tuple(name for name in HEAD if name not in (*KEY, "incarnation"))
"""What a commit changes of a head."""
EXPECTED = ("incarnation", "revision", "commit_id")
"""What a head must still be for a commit to change it."""


def named(scope: Scope, **more: Any) -> dict[str, Any]:
    """The parameters that name a session, and others."""
    return {"tenant": scope.tenant, "agent": scope.agent, "session": scope.session, **more}


# From rows to columns. What names the session is left out: it is put before them as it is. (Reading
# attributes is ten times as fast as `astuple`, which copies deeply.)


def _getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    return attrgetter(*(name for name in names if name not in KEY))


head_values = _getter(HEAD)
updated_values = _getter(UPDATED)
message_values = _getter(MESSAGE)
reply_values = _getter(REPLY)
debt_values = _getter(DEBT)
job_values: Callable[[ModelJob], tuple[Any, ...]] = attrgetter(*JOB)
spawn_values: Callable[[Spawn], tuple[Any, ...]] = attrgetter(*SPAWN)
_charge_values = attrgetter(*COSTS[4:])
_summary_values = _getter(SUMMARY)
_CHILDREN = SUMMARY.index("children")


def summary_values(row: SummaryRow) -> tuple[Any, ...]:
    """A summary's columns; its children as a JSON list."""
    values = list(_summary_values(row))
    values[_CHILDREN] = json.dumps(row.children)
    return tuple(values)


_fact_values = _getter(FACT)


def fact_values(fact: AgentFact) -> tuple[Any, ...]:
    """A fact's columns."""
    return (*fact.scope, *_fact_values(fact))


_chunk_values = attrgetter(*CHUNK)


def chunk_values(shelf: ChunkShelf, chunk: Chunk) -> tuple[Any, ...]:
    """A chunk's columns, after those of its shelf."""
    return (*shelf.scope, shelf.place, shelf.name, *_chunk_values(chunk))


_archive_values = _getter(ARCHIVE)


def archive_values(row: ArchivedObject) -> tuple[Any, ...]:
    """An object's columns."""
    return (*row.scope, *_archive_values(row))


def spent_values(scope: Scope, charge: Charge) -> tuple[Any, ...]:
    """What a charge adds to the tokens of its five minutes."""
    return (*scope[:2], charge.time_ms // SLOT_MS, charge.time_ms, charge.tokens)


def costs_values(scope: Scope, charge: Charge) -> tuple[Any, ...]:
    """What a charge adds to the costs of its model."""
    return (*scope[:2], charge.provider, charge.model, 1, *_charge_values(charge))


# From columns to rows.


def _rows(found: Iterable[Values], make: Callable[..., Row], *flags: int) -> list[Row]:
    made = []
    for columns in found:
        values = list(columns)
        for flag in flags:
            values[flag] = bool(values[flag])
        made.append(make(*values))
    return made


def _head(tenant: str, agent: str, session: str, *rest: Any) -> SessionHead:
    return SessionHead(Scope(tenant, agent, session), *rest)


def _debt(tenant: str, agent: str, session: str, *rest: Any) -> Debt:
    return Debt(Scope(tenant, agent, session), *rest)


def _summary(*values: Any) -> SummaryRow:
    columns = list(values)
    try:
        columns[_CHILDREN] = tuple(json.loads(columns[_CHILDREN]))
    except ValueError:
        columns[_CHILDREN] = ()  # its hash says that it is damaged
    return SummaryRow(*columns)


_ENDED, _PINNED = HEAD.index("ended"), MESSAGE.index("pinned")
_SUMMARY_FLAGS = (SUMMARY.index("asked_before"), SUMMARY.index("fallback"))
_HELD, _ANSWERED = DEBT.index("held"), JOB.index("answered")
_SPAWN_FLAGS = (SPAWN.index("fork"), SPAWN.index("started"))


def heads(found: Iterable[Values]) -> list[SessionHead]:
    """Heads from their columns."""
    return _rows(found, _head, _ENDED)


def messages(found: Iterable[Values]) -> list[MessageRow]:
    """Messages from their columns."""
    made = []
    for columns in found:  # spelled out: the one read of many rows on the way of a request
        values = list(columns)
        values[_PINNED] = bool(values[_PINNED])
        made.append(MessageRow(*values))
    return made


def summaries(found: Iterable[Values]) -> list[SummaryRow]:
    """Summaries from their columns."""
    return _rows(found, _summary, *_SUMMARY_FLAGS)


def debts(found: Iterable[Values]) -> list[Debt]:
    """Debts from their columns."""
    return _rows(found, _debt, _HELD)


def jobs(found: Iterable[Values]) -> list[ModelJob]:
    """Jobs from their columns."""
    return _rows(found, ModelJob, _ANSWERED)


def _fact(tenant: str, agent: str, session: str, *rest: Any) -> AgentFact:
    return AgentFact(Scope(tenant, agent, session), *rest)


def facts(found: Iterable[Values]) -> list[AgentFact]:
    """Facts of agents from their columns."""
    return _rows(found, _fact)


_COMPACTED = CHUNK.index("compacted")


def chunks(found: Iterable[Values]) -> list[Chunk]:
    """Chunks of plugins from their columns."""
    return _rows(found, Chunk, _COMPACTED)


def _archive(tenant: str, agent: str, session: str, *rest: Any) -> ArchivedObject:
    return ArchivedObject(Scope(tenant, agent, session), *rest)


_SHOWS_PINNED = ARCHIVE.index("pinned")


def archives(found: Iterable[Values]) -> list[ArchivedObject]:
    """Objects of the archive from their columns."""
    return _rows(found, _archive, _SHOWS_PINNED)


def spawns(found: Iterable[Values]) -> list[Spawn]:
    """Spawns from their columns."""
    return _rows(found, Spawn, *_SPAWN_FLAGS)


def assignments(found: Iterable[Values]) -> list[Assignment]:
    """Assignments from their columns."""
    return _rows(found, Assignment)


def spent(found: Iterable[Values]) -> list[Spent]:
    """What was spent, from its columns."""
    return _rows(found, Spent)


def costs(found: Iterable[Values]) -> list[Costs]:
    """Costs from their columns."""
    return _rows(found, Costs)


def replies(found: Iterable[Values]) -> list[StoredReply]:
    """Answers from their columns."""
    return _rows(found, StoredReply)
