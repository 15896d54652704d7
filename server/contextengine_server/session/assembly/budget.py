"""What a request's budget comes to: the window that binds, its parts, and the factor to the
reference encoding."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from contextengine_server.context.budget import (
    DEFAULT_WINDOW,
    Budget,
    BudgetRules,
    ImpossibleBudget,
    ModelTokens,
    ReferenceTokens,
    in_model,
    window_budget,
)
from contextengine_server.errors import (
    BudgetImpossible,
    DomainError,
    FieldViolation,
    InvalidField,
)
from contextengine_server.session.encoding import Encoding
from contextengine_server.session.session import Session
from contextengine_server.session.state import SessionState
from contextengine_server.store.rows import SessionHead
from contextengine_server.tokens import profile


class BudgetDefaults(msgspec.Struct, frozen=True):
    """What holds for budgets where a request says nothing. Windows are in the model's tokens."""

    window: int = DEFAULT_WINDOW
    window_cap: int | None = None
    rules: BudgetRules = BudgetRules()


SYSTEM, TOOLS = 1, 2
"""Flags of what a request says of the prompt outside the messages."""


class Outside(msgspec.Struct, frozen=True):
    """What a request says of the prompt outside the messages."""

    given: ModelTokens = ModelTokens(0)
    """Its counts."""
    counted: ReferenceTokens = ReferenceTokens(0)
    """What was counted here."""
    named: int = 0
    """SYSTEM and TOOLS, where it says something of them."""

    @property
    def complete(self) -> bool:
        """True where nothing is left to be guessed."""
        return self.named == SYSTEM | TOOLS


class BudgetSpec(msgspec.Struct, frozen=True):
    """What a request says. Tokens are the model's, but for `*_counted`."""

    message_tokens: int | None = None
    window: int | None = None
    system_prompt: int = 0
    system_texts: tuple[str, ...] = ()
    """The system prompt, where it is to be counted."""
    system_counted: ReferenceTokens = ReferenceTokens(0)
    tools: int = 0
    tool_texts: tuple[str, ...] = ()
    """The definitions of tools, where they are to be counted."""
    tools_counted: ReferenceTokens = ReferenceTokens(0)
    tools_sent: bool = False
    """True where these are the definitions that the model may see."""
    named: int = 0
    """What was given of system prompt and tools, as flags; a count of 0 counts as given."""
    output_reserve: int | None = None
    safety_margin: int | None = None
    rot_buffer: int | None = None
    strict_prompt: bool = False
    """True: a newest user message that exceeds the cell is not shortened."""

    @property
    def outside(self) -> Outside:
        """What stands outside the messages, once its texts are counted."""
        counted = ReferenceTokens(self.system_counted + self.tools_counted)
        return Outside(ModelTokens(self.system_prompt + self.tools), counted, self.named)


class BudgetModel(msgspec.Struct, frozen=True):
    """The model that a budget is for."""

    model: str
    provider: str
    factor: float
    max_output: int | None
    window: int
    """Known of the model; 0: nothing."""
    served: int = 0
    """The window that its provider was seen to serve; 0: not seen."""
    least_cached: int = 1_024
    """Its provider's cache keeps no shorter prefix of its tokens."""


async def counted_spec(spec: BudgetSpec, encoding: Encoding) -> BudgetSpec:
    """What a request says, with its texts counted."""
    if not spec.system_texts and not spec.tool_texts:
        return spec
    return replace(
        spec,
        system_counted=ReferenceTokens(await encoding.texts(spec.system_texts)),
        tools_counted=ReferenceTokens(await encoding.texts(spec.tool_texts)),
    )


def target(
    head: SessionHead | None, state: SessionState, model: str = "", provider: str = ""
) -> BudgetModel:
    """The model of a request, or the session's. What usage taught holds for the session's own model
    only."""
    own = head.model if head is not None else ""
    if not model or model == own:
        known = profile(own)
        return BudgetModel(
            own,
            provider or (head.provider if head is not None else "") or known.provider,
            state.model.factor,
            state.model.max_output or known.max_output,
            state.model.window,
            state.model.served_window,
            known.least_cached,
        )
    known = profile(model)
    return BudgetModel(
        model,
        provider or known.provider,
        known.factor,
        known.max_output,
        known.window or 0,
        least_cached=known.least_cached,
    )


def budget_of(
    spec: BudgetSpec, aim: BudgetModel, defaults: BudgetDefaults, field: str = "budget"
) -> Budget:
    """The algebra over what was given. Raises InvalidField, BudgetImpossible."""
    for name in (
        "message_tokens",
        "window",
        "system_prompt",
        "tools",
        "output_reserve",
        "safety_margin",
        "rot_buffer",
    ):
        value = getattr(spec, name)
        if value is not None and value < 0:
            raise InvalidField(f"{field}.{name}", f"is {value}: tokens cannot be negative")
    if spec.message_tokens is not None:
        if spec.message_tokens == 0:
            raise BudgetImpossible(
                f"{field}.message_tokens: is 0, which leaves nothing for messages: give at least 1",
                violations=[FieldViolation(f"{field}.message_tokens", "must be positive")],
            )
        return Budget(ModelTokens(spec.message_tokens), factor=aim.factor)
    window, source, assumed = window_source(spec, aim, defaults)
    try:
        return window_budget(
            window,
            source=source,
            assumed=assumed,
            system_prompt=spec.system_prompt + in_model(spec.system_counted, aim.factor),
            tools=spec.tools + in_model(spec.tools_counted, aim.factor),
            output_reserve=spec.output_reserve,
            max_output=aim.max_output,
            safety_margin=spec.safety_margin,
            rot_buffer=spec.rot_buffer,
            factor=aim.factor,
            rules=defaults.rules,
        )
    except ImpossibleBudget as error:
        raise BudgetImpossible(
            f"{field}.window: {error}: give a larger window or smaller parts",
            violations=[FieldViolation(f"{field}.window", str(error))],
        ) from error


def first_room(
    spec: BudgetSpec, head: SessionHead | None, model: str, provider: str, defaults: BudgetDefaults
) -> ReferenceTokens:
    """What a request's budget comes to for a session of which nothing but its head was read. 1
    where it is refused, which is said once the session is there."""
    state = SessionState() if head is None else SessionState.decode(head.state)
    try:
        budget = budget_of(spec, target(head, state, model, provider), defaults)
    except DomainError:
        return ReferenceTokens(1)
    return ReferenceTokens(max(1, budget.reference))


def window_source(
    spec: BudgetSpec, aim: BudgetModel, defaults: BudgetDefaults
) -> tuple[int, str, bool]:
    """The window that binds, what bound it, and whether it was assumed: the smallest of what was
    given, the configured cap and what the provider was seen to serve."""
    if spec.window is not None:
        if spec.window == 0:
            raise InvalidField("budget.window.window", "is 0: a window has at least one token")
        window, source, assumed = spec.window, "request", False
    elif aim.window:
        window, source, assumed = aim.window, "model", False
    else:
        window, source, assumed = defaults.window, "default", True
    if defaults.window_cap is not None and defaults.window_cap < window:
        window, source = defaults.window_cap, "cap"
    if aim.served and aim.served < window:
        window, source = aim.served, "served"
    return window, source, assumed


def available_of(
    session: Session, defaults: BudgetDefaults, spec: BudgetSpec | None = None
) -> ReferenceTokens:
    """What a budget leaves for messages; by default the session's own window. Raises InvalidField,
    BudgetImpossible."""
    aim = target(session.head, session.state)
    return ReferenceTokens(max(1, budget_of(spec or BudgetSpec(), aim, defaults).reference))
