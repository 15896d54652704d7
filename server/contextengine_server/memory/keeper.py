"""Keeping facts: found in a worker process, beside what the agent knows, written with their
sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from contextengine_server.context.scope import Scope
from contextengine_server.memory.extraction.days import day_of_ms
from contextengine_server.memory.extraction.extract import ROLES, facts_in
from contextengine_server.memory.extraction.fact import FoundFact
from contextengine_server.memory.range import MemoryRange
from contextengine_server.memory.rules import MemoryRules
from contextengine_server.memory.supersession import SaidFact, forgotten, new_facts
from contextengine_server.store.agent_facts import FoundInSession
from contextengine_server.store.protocols import AgentMemory
from contextengine_server.summarize.redaction import MARK, redact
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.meters import Meters

INLINE_CHARS = 2_000
"""Texts that are read where they are: a ms of work, and a worker costs as much to be asked."""


class RunInWorker(Protocol):
    """Runs a module's function elsewhere, when it is the tenant's turn."""

    async def __call__(self, tenant: str, function: Callable[..., Any], /, *args: Any) -> Any: ...


class FoundNotes(msgspec.Struct, frozen=True):
    """Says that facts were found: in an event, and by counting."""

    events: Events
    meters: Meters

    def tell(self, scope: Scope, kinds: Counter[str]) -> None:
        """How many facts of which kinds were written."""
        for kind, count in kinds.items():
            self.meters.facts[kind].value += count
        self.events.emit("memory:found", *scope, counts=dict(kinds))


class Keeper(msgspec.Struct, frozen=True):
    """Keeps the facts of ranges: what compaction calls a memory."""

    store: AgentMemory
    rules: MemoryRules
    run: RunInWorker
    clock_ms: Callable[[], int]
    tell: Callable[[Scope, Counter[str]], None]
    """Is told how many facts of which kinds were written."""

    async def flush(self, given: MemoryRange) -> None:
        """Takes the facts of a range. The same range again changes nothing. Raises
        StoreUnavailable, WorkerFailed."""
        said = [
            (one.sequence, one.role, one.text, one.time_ms)
            for one in given.messages
            if one.role in ROLES
        ]
        if sum(len(text) for _, _, text, _ in said) <= INLINE_CHARS:
            facts = find(said, self.rules)
        else:
            facts = await self.run(given.scope.tenant, find, said, self.rules)
        if not facts:
            return
        now_ms = self.clock_ms()
        times = {one.sequence: one.time_ms for one in given.messages}
        placed = [
            SaidFact(fact, sequence, now_ms if (time := times[sequence]) is None else time)
            for sequence, fact in facts
        ]
        known = await self.store.facts(given.scope.tenant, given.scope.agent)
        new = new_facts(known, placed, given.scope, now_ms)[-self.rules.max_facts :]
        if not new:
            return
        making_room = forgotten(known, new, self.rules.max_facts)
        written = await self.store.add(
            FoundInSession(given.scope, given.incarnation, given.as_of, new, making_room)
        )
        if written:
            self.tell(given.scope, Counter(fact.kind for fact in new))


def find(
    said: Sequence[tuple[int, str, str, int | None]], rules: MemoryRules
) -> list[tuple[int, FoundFact]]:
    """The facts of (sequence, role, text, time in ms), in order. Secrets are taken out first: a
    fact that held one is none."""
    found = []
    for sequence, role, text, time_ms in said:
        for fact in facts_in(role, text, rules.max_message_chars, day_of_ms(time_ms)):
            if fact.kind not in rules.kinds or len(fact.value) > rules.max_fact_chars:
                continue
            kept = redact(fact.text)
            if MARK in redact(fact.line) or MARK in redact(fact.value):
                continue
            found.append((sequence, msgspec.structs.replace(fact, text=_cut(kept, rules))))
    return found


def _cut(text: str, rules: MemoryRules) -> str:
    return text if len(text) <= rules.max_fact_chars else f"{text[: rules.max_fact_chars - 1]}…"
