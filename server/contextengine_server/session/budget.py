"""What a request's budget comes to: the window that binds, its parts, and the factor to the
reference encoding."""

from __future__ import annotations

from contextengine_server.context.budget import Budget, ImpossibleBudget, window_budget
from contextengine_server.context.value import value
from contextengine_server.errors import BudgetImpossible, InvalidField, Violation
from contextengine_server.session.cache import Session
from contextengine_server.session.core import Defaults
from contextengine_server.tokens import profile


@value
class BudgetSpec:
    """What a request says. Texts are counted by the time they get here: tokens are in the reference
    encoding where `*_counted`, else in the model's."""

    message_tokens: int | None = None
    window: int | None = None
    system_prompt: int = 0
    system_counted: int = 0
    tools: int = 0
    tools_counted: int = 0
    output_reserve: int | None = None
    safety_margin: int | None = None
    rot_buffer: int | None = None


@value
class Target:
    """The model that a budget is for."""

    model: str
    provider: str
    factor: float
    max_output: int | None
    window: int
    """Known of the model; 0: nothing."""
    served: int = 0
    """The window that its provider was seen to serve; 0: not seen."""


def target(session: Session, model: str, provider: str) -> Target:
    """The model of a request, or the session's. What usage taught holds for the session's own model
    only."""
    head, state = session.head, session.state
    own = head.model if head is not None else ""
    if not model or model == own:
        known = profile(own)
        return Target(
            own,
            provider or (head.provider if head is not None else "") or known.provider,
            state.model.factor,
            state.model.max_output or known.max_output,
            state.model.window,
            state.model.served_window,
        )
    known = profile(model)
    return Target(
        model, provider or known.provider, known.factor, known.max_output, known.window or 0
    )


def budget_of(spec: BudgetSpec, aim: Target, defaults: Defaults, field: str = "budget") -> Budget:
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
                violations=[Violation(f"{field}.message_tokens", "must be positive")],
            )
        return Budget(spec.message_tokens, factor=aim.factor)
    window, source, assumed = _window(spec, aim, defaults)
    try:
        return window_budget(
            window,
            source=source,
            assumed=assumed,
            system_prompt=spec.system_prompt + round(spec.system_counted * aim.factor),
            tools=spec.tools + round(spec.tools_counted * aim.factor),
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
            violations=[Violation(f"{field}.window", str(error))],
        ) from error


def _window(spec: BudgetSpec, aim: Target, defaults: Defaults) -> tuple[int, str, bool]:
    """The smallest of what was given, the configured cap and what the provider was seen to
    serve."""
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
