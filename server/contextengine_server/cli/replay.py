"""`replay`: a transcript driven through a server turn by turn, and the table of what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from contextengine_server.cli.connection import Missing, Where, connected
from contextengine_server.cli.imports.files import read_sessions
from contextengine_server.cli.items import print_assembly, print_decisions
from contextengine_server.cli.output import (
    Advance,
    CommandFailed,
    plain,
    print_json,
    print_table,
    progress,
    size,
)

if TYPE_CHECKING:
    from contextengine import AsyncClient, SessionRef
    from contextengine.formats import Transcript
    from contextengine.types import Item
    from contextengine_server.cli.harness import Cost, Step


class ReplayPlan(msgspec.Struct, frozen=True):
    """How to replay."""

    agent: str
    session: str
    budget: int | None
    engine: str
    way: str
    limit: int | None
    """Turns of a session."""
    sessions: int | None
    explain: bool


@dataclass(slots=True)
class Row:
    """A turn as it went. Tokens are the model's for `before` and `after`, the reference encoding's
    for the rest.

    `masked`, `evicted` and `summarized` count messages of the last context: shown in another form,
    not shown, covered by a summary that is shown.
    """

    turn: int
    messages: int
    steps: int = 0
    before: int = 0
    utilization: float = 0.0
    after: int = 0
    masked: int = 0
    evicted: int = 0
    summarized: int = 0
    causes: list[str] = field(default_factory=list)
    sent_tokens: int = 0
    prefix_tokens: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    calls: int = 0
    ms: float = 0.0
    compactions: int = 0
    over_budget: int = 0
    context_hash: str = ""

    def take(self, step: Step, known: int) -> None:
        """Adds a step that knew so many messages; what is said of the context is the last
        step's."""
        reply = step.reply
        self.steps += 1
        self.before, self.after = (
            round(reply.budget.utilization * reply.budget.available),
            reply.estimated_tokens,
        )
        self.utilization = reply.budget.utilization
        self.masked = sum(1 for item in step.items if item.form in _masks())
        self.summarized = sum(
            item.summary.message_count for item in step.items if item.HasField("summary")
        )
        self.evicted = known - self.summarized - shown_messages(step.items)
        self.sent_tokens += step.tokens
        self.prefix_tokens += step.prefix
        self.compactions += step.compactions
        self.over_budget += reply.outcome == reply.OUTCOME_OVER_BUDGET
        self.context_hash = reply.context_hash.hex()
        cause = _cause(step.cause)
        if cause and cause not in self.causes:
            self.causes.append(cause)

    def spend(self, cost: Cost) -> None:
        """Adds what calls cost."""
        self.bytes_sent += cost.sent
        self.bytes_received += cost.received
        self.calls += cost.calls
        self.ms += cost.ms


def shown_messages(items: Iterable[Item]) -> int:
    """How many messages a list shows, in whatever form."""
    return len(
        {item.origin.sequence for item in items if item.origin.WhichOneof("kind") == "sequence"}
    )


@dataclass(slots=True)
class Replayed:
    """A session as it went."""

    session_id: str
    rows: list[Row]
    last: Step | None = None

    def totals(self) -> dict[str, Any]:
        """The sums over the turns."""
        return totals([self])


def totals(replayed: list[Replayed]) -> dict[str, Any]:
    """The sums over sessions."""
    rows = [row for session in replayed for row in session.rows]

    def total(name: str) -> int:
        return sum(getattr(row, name) for row in rows)

    sent, prefix = total("sent_tokens"), total("prefix_tokens")
    return {
        "sessions": len(replayed),
        "turns": len(rows),
        "messages": sum(session.rows[-1].messages for session in replayed if session.rows),
        "model_calls": total("steps"),
        "tokens_sent": sent,
        "tokens_of_unchanged_prefix": prefix,
        "cache_share": round(prefix / sent, 4) if sent else 0.0,
        "rpcs": total("calls"),
        "bytes_sent": total("bytes_sent"),
        "bytes_received": total("bytes_received"),
        "forced_compactions": total("compactions"),
        "over_budget": total("over_budget"),
        "ms": round(sum(row.ms for row in rows), 1),
    }


async def replay_file(where: Where, file: Path, plan: ReplayPlan, json: bool) -> None:
    """Replays the sessions of a file and prints a table for each, then the totals."""
    done: list[Replayed] = []
    async with connected(where, Missing.CREATE) as client:
        with progress("replaying") as advance:
            for transcript in read_sessions(file):
                if plan.sessions is not None and len(done) >= plan.sessions:
                    break
                if plan.session and done:
                    raise CommandFailed(
                        f"{file} holds several sessions, and --session names one: add --sessions 1",
                        2,
                    )
                done.append(await replay(client, transcript, plan, advance))
                if not json:
                    print_session(done[-1], plan)
    if json:
        print_json(
            {"sessions": [_as_json(session, plan) for session in done], "totals": totals(done)}
        )
    elif len(done) > 1:
        print_totals(totals(done), f"All {len(done)} sessions")


async def replay(
    client: AsyncClient,
    transcript: Transcript,
    plan: ReplayPlan,
    advance: Advance,
) -> Replayed:
    """Replays one session."""
    from contextengine import SessionRef, new_id, with_ids
    from contextengine.types import Budget
    from contextengine_server.cli.harness import SimulatedHarness, spent, turns_of, without_ids

    session_id = plan.session or f"{transcript.session_id}-{new_id()[-8:]}"
    ref = SessionRef(agent_id=plan.agent, session_id=session_id)
    await _must_be_new(client, ref)
    if plan.engine:
        await client.engines.assign(scope=ref, engine_id=plan.engine)
    messages = list(
        without_ids(transcript.messages) if plan.way == "live" else with_ids(transcript.messages)
    )
    budget = None if plan.budget is None else Budget(message_tokens=plan.budget)
    harness = SimulatedHarness(client, ref, plan.way, budget)
    updates = list(transcript.updates)
    if transcript.model or transcript.provider:
        await client.update_model(ref, model=transcript.model, provider=transcript.provider)
    turns = turns_of(messages)[: plan.limit]
    replayed = Replayed(session_id, [])
    for number, turn in enumerate(turns, 1):
        row = Row(number, turn.last)
        for known in turn.calls:
            while updates and updates[0].index <= known:
                update = updates.pop(0)
                await client.update_model(ref, model=update.model, provider=update.provider)
            final = plan.explain and number == len(turns) and known == turn.calls[-1]
            replayed.last = await harness.step(messages[:known], explain=final)
            row.take(replayed.last, known)
        await harness.end_turn(messages[: turn.last])
        row.spend(spent(harness))
        replayed.rows.append(row)
        advance(session_id, turn.last - turn.first)
    return replayed


async def _must_be_new(client: AsyncClient, ref: SessionRef) -> None:
    from contextengine.errors import SessionNotFound

    try:
        await client.sessions.get(ref)
    except SessionNotFound:
        return
    raise CommandFailed(
        f"session {ref.session_id!r} of agent {ref.agent_id!r} exists: replay under another"
        f" --session, or erase it with `contextengine sessions delete {ref.session_id} --agent"
        f" {ref.agent_id}`"
    )


def print_session(replayed: Replayed, plan: ReplayPlan) -> None:
    """The table of a session, its totals and, when asked for, what became of every message."""
    rows = [
        (
            row.turn,
            row.messages,
            row.steps,
            f"{row.before:,} ({row.utilization:.0%})",
            row.after,
            row.masked or "",
            row.evicted or "",
            row.summarized or "",
            ", ".join(row.causes) + (", over budget" if row.over_budget else ""),
            size(row.bytes_sent + row.bytes_received),
            f"{row.ms:,.0f} ms",
        )
        for row in replayed.rows
    ]
    columns = (
        "#turn",
        "#messages",
        "#steps",
        "#tokens before",
        "#after",
        "#masked",
        "#evicted",
        "#summarised",
        "new epoch",
        "#on the wire",
        "#time",
    )
    budget = f"{plan.budget:,} tokens" if plan.budget else "the session's window"
    title = f"{plan.agent}/{replayed.session_id}: way {plan.way}, budget {budget}"
    print_table(columns, rows, title=title)
    print_totals(replayed.totals(), "Total")
    print()
    if plan.explain and replayed.last is not None:
        print_assembly(replayed.last.items, replayed.last.reply)
        print_decisions(replayed.last.reply.decisions)


def print_totals(sums: dict[str, Any], title: str) -> None:
    """The sums in words."""
    wire = sums["bytes_sent"] + sums["bytes_received"]
    forced = sums["forced_compactions"]
    compactions = f"; {forced} compaction{'s' * (forced > 1)} forced by overflow" if forced else ""
    over = f"; {sums['over_budget']} contexts over budget" if sums["over_budget"] else ""
    print(
        f"{title}: {sums['turns']:,} turns, {sums['messages']:,} messages, {sums['model_calls']:,}"
        f" model calls; {sums['tokens_sent']:,} tokens for the model, {sums['cache_share']:.1%} of"
        f" them an unchanged prefix; {sums['rpcs']:,} rpcs, {size(wire)} on the wire"
        f" ({size(wire // max(1, sums['rpcs']))} each), {sums['ms'] / 1000:.1f}"
        f" s{compactions}{over}"
    )


def _as_json(replayed: Replayed, plan: ReplayPlan) -> dict[str, Any]:
    from dataclasses import asdict

    found = {
        "agent_id": plan.agent,
        "session_id": replayed.session_id,
        "way": plan.way,
        "turns": [asdict(row) for row in replayed.rows],
        "totals": replayed.totals(),
    }
    if plan.explain and replayed.last is not None:
        found["decisions"] = [plain(decision) for decision in replayed.last.reply.decisions]
    return found


def _masks() -> tuple[int, ...]:
    from contextengine.types import FORM_HEAD_TAIL, FORM_PLACEHOLDER

    return FORM_PLACEHOLDER, FORM_HEAD_TAIL


def _cause(number: int) -> str:
    from contextengine.types import EpochCause

    if not number:
        return ""
    return EpochCause.Name(number).removeprefix("EPOCH_CAUSE_").lower().replace("_", " ")
