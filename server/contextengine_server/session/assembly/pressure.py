"""What a harness measured, compared with what is counted here
(docs/semantics.md#cells-and-thresholds).

A harness measures its whole prompt: system prompt and tools, which are no messages, and messages
that it may count otherwise. What is known to stand outside the messages is taken off; the rest
says how much more than we count there is. That much is added to whatever is counted later, too: a
compaction takes messages away and none of it.
"""

from __future__ import annotations

from contextengine_server.context.budget import ModelTokens, ReferenceTokens
from contextengine_server.context.view import View
from contextengine_server.engines.contract import Engine
from contextengine_server.session.assembly.budget import BudgetSpec, Outside
from contextengine_server.session.session import Session
from contextengine_server.session.state import ModelFacts
from contextengine_server.tokens.calibration import MAX_FACTOR

NONE = ReferenceTokens(0)


def messages_in(
    measured: ModelTokens, outside: Outside, model: ModelFacts, factor: float
) -> ReferenceTokens:
    """The messages of a measured prompt. `factor` is the model's tokens per token of the reference
    encoding.

    What a request leaves unnamed of the rest is known where bills were reported: what they held
    besides the messages that they were for.
    """
    rest = outside.given + outside.counted * factor
    bill = model.newest_bill
    if not outside.complete and bill is not None and bill.named == outside.named:
        rest += max(0.0, bill.billed - bill.sent * model.learned)
    return ReferenceTokens(max(0, round((measured - rest) / factor)))


def uncounted(
    measured: ReferenceTokens | None, view: View, engine: Engine, available: ReferenceTokens
) -> ReferenceTokens:
    """How much more there is than is counted here, of messages that a harness measured. 0 where
    nothing was measured, and where no compaction could help: what would have to be left is less
    than what stays in any case, or so little that what was measured are not messages."""
    if measured is None:
        return NONE
    more = measured - view.view_tokens()
    goal = available * (engine.threshold or 1.0)
    least = max(_fixed(view, engine.declared.tail_steps), goal / MAX_FACTOR)
    return ReferenceTokens(more) if 0 < more <= goal - least else NONE


def uncounted_in(
    measured: ModelTokens | None,
    session: Session,
    engine: Engine,
    spec: BudgetSpec,
    available: ReferenceTokens,
    view: View | None = None,
) -> ReferenceTokens:
    """The same of a whole prompt for the session's own model. `view`: what the prompt was made of;
    None: the session's."""
    if measured is None:
        return NONE
    model = session.state.model
    messages = messages_in(measured, spec.outside, model, model.factor)
    return uncounted(messages, view or session.view, engine, available)


def with_uncounted(view: View, more: ReferenceTokens) -> ReferenceTokens | None:
    """The view's tokens as the harness would measure them; None: it counts as we do."""
    return ReferenceTokens(view.view_tokens() + more) if more else None


def _fixed(view: View, tail_steps: int) -> int:
    """The tokens of what no compaction takes away: the tail, and what law 4 keeps before it."""
    tail = max(view.tail_from(tail_steps), view.base)
    newest = view.total - view.atom(tail).start if tail < view.steps else 0
    return newest + sum(view.atom(step).tokens for step in view.must_stay() if step < tail)
