"""The guard over an agent's tokens: a call that would pass a cap is refused before anything is
stored or spent (docs/semantics.md#the-token-guard)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from contextengine_server.context.budget import in_model
from contextengine_server.context.scope import Scope
from contextengine_server.errors import BudgetSpent
from contextengine_server.session.assembly.assembly import Allowance, AssembleCall
from contextengine_server.session.session import Session
from contextengine_server.session.state import SessionState
from contextengine_server.store.protocols import Store
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.meters import Meters
from contextengine_server.usage.caps import DAY_MS, HOUR_MS, Caps, Refusal, SpentAt, within


class GuardUse(msgspec.Struct, frozen=True):
    """How much of the caps is used."""

    caps: Caps
    execution: int
    hour: int
    day: int


class TokenGuard(msgspec.Struct, frozen=True):
    """Watches over what agents spend. What is spent is what was reported."""

    caps: Caps
    engines: frozenset[str]
    """Whose sessions it watches over."""
    output_reserve: int
    """The answer's tokens where a request says nothing of them."""
    store: Store
    clock_ms: Callable[[], int]
    events: Events
    meters: Meters

    async def admit(
        self, call: AssembleCall, session: Session, allowance: Allowance, *, begins: bool
    ) -> None:
        """Raises BudgetSpent where the call that is assembled for would pass a cap. `begins`: it
        brings what a user says next, so another execution."""
        scope, now_ms = session.scope, self.clock_ms()
        execution = 0 if begins else spent_in_turn(session.state)
        spent = await self._spent(scope)
        estimate = self._estimate(call, session, allowance)
        refusal = self.caps.refusal(execution, spent, estimate, now_ms)
        if refusal is None:
            return
        self.meters.refused[refusal.scope].value += 1
        self.events.emit(
            "budget:refused",
            *scope,
            revision=session.revision,
            counts={"used": refusal.used, "cap": refusal.cap, "estimated": estimate},
            attributes={"scope": refusal.scope},
        )
        raise _refused(refusal, estimate)

    async def use(self, session: Session) -> GuardUse:
        """How much of the caps a session's agent has used."""
        spent, now_ms = await self._spent(session.scope), self.clock_ms()
        hour, day = (within(spent, window, now_ms) for window in (HOUR_MS, DAY_MS))
        return GuardUse(self.caps, spent_in_turn(session.state), hour, day)

    async def _spent(self, scope: Scope) -> SpentAt:
        found = await self.store.ledger.spent(scope.tenant, scope.agent)
        return [(one.last_ms, one.tokens) for one in found]

    def _estimate(self, call: AssembleCall, session: Session, allowance: Allowance) -> int:
        """About what the call takes, in the model's tokens, and no less: no assembly is larger than
        what there is of messages, and than the budget."""
        budget, factor = allowance.budget, allowance.budget.factor
        viewed = session.view.view_tokens()
        brought = sum(message.tokens for message in call.ingest if message.id not in session.ids)
        if call.live is not None:
            viewed = max(viewed, sum(message.tokens for message in call.live))
        messages = in_model(viewed + brought + call.prompt_tokens, factor)  # type: ignore[arg-type]
        outside = call.budget.outside
        aim = allowance.target
        reserve = budget.output_reserve or min(
            self.output_reserve, aim.max_output or self.output_reserve
        )
        sent = min(messages, budget.available)
        return sent + outside.given + in_model(outside.counted, factor) + reserve


def spent_in_turn(state: SessionState) -> int:
    """The tokens that were billed since the newest user message."""
    return state.usage.turn_tokens if state.usage.turn == state.view.user_first else 0


def _refused(refusal: Refusal, estimate: int) -> BudgetSpent:
    if refusal.scope == "per-execution":
        advice = "end the turn: the next user message begins another execution"
    elif refusal.wait_ms is None:
        advice = "no waiting helps: send less, or let the operator raise the cap"
    else:
        advice = f"send the call again in {refusal.wait_ms / 1000:.0f} s"
    metadata = {
        "scope": refusal.scope,
        "used": str(refusal.used),
        "cap": str(refusal.cap),
        "estimated": str(estimate),
    }
    if refusal.wait_ms is not None:
        metadata["wait_ms"] = str(refusal.wait_ms)
    return BudgetSpent(
        f"the agent's {refusal.scope} cap of {refusal.cap:,} tokens leaves no room:"
        f" {refusal.used:,} are spent and the call would take about {estimate:,}; {advice}."
        " Nothing was stored",
        metadata=metadata,
        retry_after_ms=refusal.wait_ms,
    )
