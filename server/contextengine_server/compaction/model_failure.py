"""What a model that fails means for a session's compactions, under an engine that goes by that
(docs/compressor.md#when-it-does-not-go-well)."""

from __future__ import annotations

from msgspec.structs import replace

from contextengine_server.engines.contract import Engine
from contextengine_server.session.state import SessionState
from contextengine_server.store.rows import SummaryRow
from contextengine_server.summarize.guards.attempts import ABORTS
from contextengine_server.summarize.request import Failure, SummaryResult


def goes_by_attempts(engine: Engine) -> bool:
    """True for an engine that does not simply have others stand in for models that fail."""
    return engine.declared.failing != "stand_in"


def blocked(engine: Engine, state: SessionState, now_ms: int) -> str:
    """Why no compaction begins by itself; empty: one may."""
    return state.attempts.blocked(now_ms) if goes_by_attempts(engine) else ""


def rests(engine: Engine, state: SessionState, now_ms: int) -> bool:
    """True while no model is asked for this session, since one failed."""
    return goes_by_attempts(engine) and state.attempts.cooling(now_ms) > 0


def aborted(engine: Engine, failure: Failure | None) -> bool:
    """True where nothing is compacted, since models failed in this way."""
    if failure is None or not goes_by_attempts(engine):
        return False
    return engine.declared.failing == "abort" or failure in ABORTS


def after_failure(
    engine: Engine, state: SessionState, failure: Failure, now_ms: int
) -> SessionState:
    """The state after models failed."""
    aborts = aborted(engine, failure)
    return replace(state, attempts=state.attempts.failed(failure, now_ms, aborts=aborts))


def after_summary(
    engine: Engine, state: SessionState, summary: SummaryResult, now_ms: int
) -> SessionState:
    """The state after a summary was written, whether or not it is committed."""
    if summary.failure is None or not goes_by_attempts(engine):
        return state
    return after_failure(engine, state, summary.failure, now_ms)


def after_commit(
    state: SessionState, rows: list[SummaryRow], limit: int, now_ms: int
) -> SessionState:
    """The state with which these summaries are committed, at this threshold; 0: the engine does not
    go by how they came about."""
    if not rows or not limit:
        return state
    stood_in = sum(row.message_count for row in rows if row.fallback or row.wanted)
    return replace(state, attempts=state.attempts.compacted(limit, now_ms, stood_in))
