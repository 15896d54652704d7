"""A longer answer once a turn: after a compaction, and after a model stopped for length
(docs/semantics.md#longer-answers)."""

from __future__ import annotations

from contextengine_server.context.budget import Budget, ModelTokens
from contextengine_server.session.state import SessionState

_LENGTH = frozenset({"length", "maxtokens", "maxoutputtokens", "maxlength", "outputlength"})


def stopped_for_length(reason: str) -> bool:
    """Whether a provider's word says that the answer was cut off: `length`, `max_tokens`,
    `MAX_TOKENS`, `maxTokens`, `max_output_tokens`."""
    return reason.strip().lower().replace("_", "").replace("-", "") in _LENGTH


def escalates(state: SessionState) -> bool:
    """Whether the next answer may be longer: the turn has not had a longer one, and a compaction
    was committed since the newest report, or that stopped for length in this turn. A host that
    reports nothing would be told so for ever, and is told nothing."""
    usage, turn = state.usage, state.view.user_first
    if not usage.reports or usage.escalated == turn:
        return False
    stopped = usage.length_stop and usage.turn == turn
    return stopped or state.compactions != usage.compactions


def longer_output(
    state: SessionState,
    wanted: int,
    budget: Budget,
    sent: ModelTokens,
    max_output: int | None,
) -> int:
    """The output that is suggested, in the model's tokens; 0: none. No more than the model can
    give, and than the window leaves beside what is sent; no suggestion where that is no more than
    the reserve."""
    if not wanted or not escalates(state):
        return 0
    room = wanted if max_output is None else min(wanted, max_output)
    if budget.window:
        room = min(room, budget.window - budget.system_prompt - budget.tools - sent)
    return room if room > budget.output_reserve else 0
