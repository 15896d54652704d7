"""What a long history costs: Assemble at a fixed budget over 1,000, 10,000 and 100,000 messages
(or a million), and the first one of a cold session.

As the messages came (nothing compacted: the debt is marked as another worker's), and after
background compaction has done all it would.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contextengine_server.app import running
from contextengine_server.config.load import load_settings
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.assembly import AssembleCall
from contextengine_server.session.assembly.budget import BudgetSpec

from ..bench import Bench, median, p50
from ..house import BenchError, Process
from ..load import SERIAL, Load, Slice, Step, drive
from ..report import Figure, of_rounds
from ..talk import AGENT, ENGINE, Talk, assemble, conversation

BUDGET = 16_000
"""Tokens; the shortest history has twice as many."""
SIZE = 130
"""Bytes of a message's text: short, so that 100,000 of them are stored in time."""
COUNTS = (1_000, 10_000, 100_000)
SCALE = (1_000, 100_000, 1_000_000)
COMPACTED_WITHIN_S = 300


def run(bench: Bench) -> None:
    """One server over three histories; a second one over the same file after the debts are marked
    as taken."""
    counts = SCALE if bench.scale else COUNTS[:2] if bench.quick else COUNTS
    directory = bench.directory / "history"
    with _serve(bench, directory) as server:
        talk = Talk(server.address)
        for count in counts:
            started = time.perf_counter()
            talk.fill(_name(count), list(conversation(count, SIZE)), batch=1_000)
            took = time.perf_counter() - started
            bench.add(
                Figure(
                    "history",
                    f"ingest a message, in batches, {count:,} in all",
                    took / count * 1e6,
                    "µs",
                )
            )
        talk.close()
    database = directory / "bench.db"
    _take_debts(database, counts)
    with _serve(bench, directory) as server:
        _measure(bench, server, counts, "as it came")
    bench.add(
        Figure(
            "history, as it came",
            f"rows read by the first Assemble, {counts[-1]:,}",
            _rows_read(database, counts[-1]),
            "rows",
        )
    )
    if bench.quick or bench.scale:
        return
    _free_debts(database)
    with _serve(bench, directory) as server:
        _compact(bench, server, counts)
        _measure(bench, server, counts, "compacted")


def _serve(bench: Bench, directory: Path) -> Process:
    return bench.serve(directory.name)


def _name(count: int) -> str:
    return f"history-{count}"


def _measure(bench: Bench, server: Process, counts: tuple[int, ...], state: str) -> None:
    talk = Talk(server.address)

    def side(count: int) -> Callable[[], Slice]:
        asked = assemble(_name(count), BUDGET)
        asked.known_epoch = SERIAL  # in ever other words: each answer is planned anew
        load = Load([Step(f"{ENGINE}/Assemble", [asked.SerializeToString()])], 1, 1)
        return lambda: drive(load, server, bench.seconds)

    slices = dict(zip(counts, bench.turns([side(count) for count in counts]), strict=True))
    shortest = slices[counts[0]]
    for count in counts[1:]:
        bench.add(
            of_rounds(
                f"history, {state}",
                f"Assemble p50 at {count:,} against {counts[0]:,}",
                [long.p50 / short.p50 for long, short in zip(slices[count], shortest, strict=True)],
                goal=1.2,
                more_is_better=False,
                floor=f"{counts[0]:,}: {median(shortest, p50) * 1e3:.2f} ms",
                ours=f"{median(slices[count], p50) * 1e3:.2f} ms",
            )
        )
    for count in counts:
        took = []
        for _ in range(bench.rounds + 1):
            talk.let_go(_name(count))
            started = time.perf_counter()
            talk.assemble(assemble(_name(count), BUDGET))
            took.append((time.perf_counter() - started) * 1e3)
        bench.add(
            of_rounds(
                f"history, {state}", f"first Assemble of a cold session of {count:,}", took[1:],
                unit="ms",
                goal=30 if count >= COUNTS[-1] else None, more_is_better=False,
            )
        )  # fmt: skip
    talk.close()


def _take_debts(database: Path, counts: tuple[int, ...]) -> None:
    """Marks the sessions' compaction as at work elsewhere, so that the history stays as it came."""
    with sqlite3.connect(database) as db:
        for count in counts:
            db.execute(
                "INSERT OR REPLACE INTO debts (tenant, agent, session, kind, queued_ms,"
                " not_before_ms, attempts, lease_owner, lease_until_ms, held, cause, last_error,"
                " payload) VALUES ('default', ?, ?, 'compact', 0, 0, 1, 'bench', ?, 0, '', '',"
                " x'7b7d')",
                (AGENT, _name(count), int(time.time() * 1000) + 86_400_000),
            )
    db.close()


def _free_debts(database: Path) -> None:
    with sqlite3.connect(database) as db:
        db.execute("DELETE FROM debts")
    db.close()


def _compact(bench: Bench, server: Process, counts: tuple[int, ...]) -> None:
    """Asks for the contexts, which queues what is due, until nothing is owed any more."""
    talk = Talk(server.address)
    started = time.perf_counter()
    before: dict[int, int] = {}
    while time.perf_counter() - started < COMPACTED_WITHIN_S:
        for count in counts:
            talk.assemble(assemble(_name(count), BUDGET))
        time.sleep(1)
        states = {count: talk.status(_name(count)) for count in counts}
        made = {count: int(state.summary_count) for count, state in states.items()}
        if made == before and not any(state.jobs for state in states.values()):
            break
        before = made
    else:
        raise BenchError(
            f"compaction is not done after {COMPACTED_WITHIN_S} s: {before} summaries so far"
        )
    took = time.perf_counter() - started
    summaries = ", ".join(f"{made:,}" for made in before.values())
    bench.add(
        Figure(
            "history, compacted", f"background compaction of all, {summaries} summaries", took, "s"
        )
    )
    talk.close()


def _rows_read(database: Path, count: int) -> int:
    """The message rows that the first Assemble of a cold session reads, counted in process."""

    async def counted() -> int:
        settings = load_settings(
            flags={"server.address": "127.0.0.1:0", "store.url": str(database)}, environ={}
        )
        rows = 0

        def counting(read: Callable[..., Any]) -> Callable[..., Any]:
            async def call(*args: Any, **named: Any) -> Any:
                nonlocal rows
                found = await read(*args, **named)
                if isinstance(found, list):
                    rows += sum(len(one) if isinstance(one, list) else 1 for one in found)
                else:
                    rows += found is not None
                return found

            return call

        async with running(settings) as app:
            for name in (
                "messages",
                "messages_by_host_id",
                "atom_from",
                "atom_of",
                "pinned_atoms",
                "summaries",
            ):
                setattr(app.store, name, counting(getattr(app.store, name)))
            call = AssembleCall("default", Ref(AGENT, _name(count)), budget=BudgetSpec(BUDGET))
            address = await app.core.addresses.find("default", call.ref)
            await app.core.assembler.assemble(call, address)
        return rows

    return asyncio.run(counted())
