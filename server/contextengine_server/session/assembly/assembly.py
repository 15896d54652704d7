"""An assembly: what it is wanted for, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_proto.v1.budget_pb2 import ToolDefinition
from contextengine_server.context.budget import Budget, ModelTokens, ReferenceTokens
from contextengine_server.context.plan import Listed, Plan
from contextengine_server.context.prefix import JoinedList
from contextengine_server.context.view import View
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.failure import EngineBroken
from contextengine_server.memory.prompt import NO_MEMORY, MemoryPrompt
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.budget import BudgetModel, BudgetSpec
from contextengine_server.session.assembly.treatment import Treatment
from contextengine_server.session.assembly.whereabouts import NOTHING_SAID, Whereabouts
from contextengine_server.session.receipt import Stored
from contextengine_server.session.rehydration.reminders import BroughtBack
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
    takes_back: bool = False
    """The list ends where the conversation does: what is stored behind that was taken back."""
    request_id: str = ""
    budget: BudgetSpec = BudgetSpec()
    model: str = ""
    provider: str = ""
    prompt: Prompt | None = None
    """This turn's prompt, where it is sent along."""
    prompt_tokens: ReferenceTokens = ReferenceTokens(0)
    """What the prompt and the preamble come to, once their texts are counted."""
    preamble: str = ""
    """What is put before the user's message of this turn."""
    memory: MemoryPrompt = NO_MEMORY
    """What the request says of memory."""
    memory_texts: tuple[str, ...] = ()
    """What may be said of memory in the addition to the system prompt, the longest first."""
    preamble_tokens: ReferenceTokens = ReferenceTokens(0)
    """Of `prompt_tokens`."""
    cache_retention: int = 0
    """How long the provider is asked to keep the prefix, by the wire's numbers; 0: not said."""
    cache_broke: bool = False
    """True where the host saw the newest call break the provider's cache."""
    current_message_id: str = ""
    bound_id: str = ""
    """The host id of the last message that a native thread has seen; empty: not said."""
    whereabouts: Whereabouts = NOTHING_SAID
    """What the host says of where the session is held; noted with the session."""
    objective: str = ""
    """What is to be kept in sight behind summaries; empty: what was said at the spawn."""
    measured: ModelTokens | None = None
    at_least_revision: int = 0
    whole: bool = False
    """Hold the whole view (explain)."""
    tools: Sequence[ToolDefinition] = ()
    """The definitions that the model sees: all that the caller sent and that may be called, until
    some are deferred."""
    deferred_tokens: ReferenceTokens = ReferenceTokens(0)
    """What deferring them saves."""
    treatment: Treatment = Treatment.KEPT
    trace: Trace = NO_TRACE


class Allowance(msgspec.Struct, frozen=True):
    """What a call may take, once its session is held."""

    target: BudgetModel
    """The model that the budget is for."""
    budget: Budget
    broken: EngineBroken | None = None
    """How the engine failed before it was asked for a plan."""
    bound: int = 0
    """The sequence of the call's `bound_id`, where it was stored before."""


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
    """Of this turn's prompt and the preamble."""
    preamble: str
    preamble_tokens: ReferenceTokens
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
    tools: Sequence[ToolDefinition]
    """The definitions that the model sees."""
    deferred_tokens: ReferenceTokens
    """What deferring others saved."""
    cache_retention: int
    """How long the provider should keep the prefix, by the wire's numbers; 0: no suggestion."""
    breakpoints: tuple[int, ...]
    """Behind which items breakpoints stand best."""
    bootstraps_threads: bool
    """False where the session's host said that it projects with every turn alone."""
    listed: Sequence[Listed]
    """What the list is made of, in order: the plan's segments, and what comes back between them."""
    rehydrated: BroughtBack
    """What comes back behind the summaries; its tokens are not among `tokens`."""
    bound: int = 0
    """The sequence of the call's `bound_id`, where it was stored before; 0: it was not, or none was
    given."""
    longer_output: int = 0
    """The maximum output that is suggested for this call, in the model's tokens; 0: none."""
