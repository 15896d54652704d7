"""An assembly: what it is wanted for, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.context.budget import Budget, ModelTokens, ReferenceTokens
from contextengine_server.context.plan import Plan
from contextengine_server.context.prefix import JoinedList
from contextengine_server.context.view import View
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.failure import EngineBroken
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.budget import BudgetModel, BudgetSpec
from contextengine_server.session.assembly.treatment import Treatment
from contextengine_server.session.receipt import Stored
from contextengine_server.session.selection import Selected
from contextengine_server.telemetry.tracing import NO_TRACE, Trace
from contextengine_server.wire.message import Incoming

FITS, OVER_BUDGET, DEGRADED = 1, 2, 3
"""Outcomes, by the wire's numbers."""


class Prompt(msgspec.Struct, frozen=True):
    """A prompt to be counted as a message of its own."""

    texts: tuple[str, ...]
    fixed_tokens: int
    """What is estimated otherwise: framing, images, files."""


class AssembleCall(msgspec.Struct, frozen=True):
    """What an assembly is wanted for, read from the request."""

    tenant: str
    ref: Ref
    ingest: Sequence[Incoming] = ()
    live: Sequence[Incoming] | None = None
    store_new: bool = False
    request_id: str = ""
    budget: BudgetSpec = BudgetSpec()
    model: str = ""
    provider: str = ""
    prompt: Prompt | None = None
    """This turn's prompt, where it is sent along."""
    prompt_tokens: ReferenceTokens = ReferenceTokens(0)
    """What the prompt comes to, once its texts are counted."""
    current_message_id: str = ""
    measured: ModelTokens | None = None
    at_least_revision: int = 0
    whole: bool = False
    """Hold the whole view (explain)."""
    treatment: Treatment = Treatment.KEPT
    trace: Trace = NO_TRACE


class Allowance(msgspec.Struct, frozen=True):
    """What a call may take, once its session is held."""

    target: BudgetModel
    """The model that the budget is for."""
    budget: Budget
    broken: EngineBroken | None = None
    """How the engine failed before it was asked for a plan."""


class Assembly(msgspec.Struct, frozen=True):
    """An assembly, ready to be encoded. Tokens in the reference encoding unless said otherwise."""

    view: View
    plan: Plan
    joined: JoinedList
    tokens: ReferenceTokens
    estimated: ModelTokens
    """What is sent."""
    budget: Budget
    cell: ReferenceTokens
    addition: str
    addition_tokens: ReferenceTokens
    prompt_tokens: ReferenceTokens
    epoch: str
    settled_epoch: str
    """The epoch without the messages of the harness's own list behind the last stored one: what a
    native thread is bound to."""
    engine: Engine
    selected: Selected
    target: BudgetModel
    asked: BudgetSpec
    """What the request said of its budget, its texts counted."""
    another_model: bool
    """True where the request names another model than the session's."""
    outcome: int
    outcome_reason: str
    stored: Sequence[Stored]
    due: bool
    """True where the engine wants a compaction."""
    uncounted: ReferenceTokens
    """What the harness measured beyond what is counted here."""
    available: ReferenceTokens
    """What the budget leaves for items, before it is rounded to its cell."""
    method: str
    """How tokens were estimated."""
    bootstraps_threads: bool
    """False where the session's host said that it projects with every turn alone."""
