"""What governs the summaries of a tenant, whichever engine asks for them: models, spend, breaker.

An operator may set it for a tenant, an agent or a session. The names are those below `summarizer`;
those that the dag had for the same before are understood in the block of any engine.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from typing import Any

from pydantic import BaseModel, Field
from pydantic.alias_generators import to_snake

from contextengine_server.config.group import Group
from contextengine_server.config.schema import Duration, Whole, merge
from contextengine_server.config.schema.problems import Problem

GROUP = "summarizer"
"""What the policy's names stand below, in settings and in what an operator assigns."""

MILLISECOND = timedelta(milliseconds=1)


class SpendSettings(Group):
    """What a tenant's summaries may cost: tokens of prompts and answers. Deterministic summaries
    cost none."""

    max_tokens_per_tenant_per_hour: Whole = Field(
        500_000,
        ge=0,
        description="In any hour; beyond it summaries are made without a model. 0: no limit.",
    )
    max_tokens_per_tenant_per_day: Whole = Field(
        5_000_000,
        ge=0,
        description="In any day; beyond it summaries are made without a model. 0: no limit.",
    )


class BreakerSettings(Group):
    """When a tenant's failing models are let be for a while."""

    failure_threshold: Whole = Field(
        5,
        ge=1,
        description=(
            "Summaries in a row for which every model failed; then none is asked for a while."
        ),
    )
    reset_timeout: Duration = Field(
        timedelta(seconds=60),
        ge=MILLISECOND,
        description="How long none is asked; then one summary is the trial.",
    )
    half_open_timeout: Duration = Field(
        timedelta(seconds=30),
        ge=MILLISECOND,
        description="How long that trial may take; else it has failed.",
    )


class PolicySettings(Group):
    """Which models are asked for summaries, and how much of them."""

    model: str = Field(
        "",
        description=(
            "The model asked first for a summary, as `endpoint:model`, or the name of one of"
            " `summarizer.endpoints` for its own model; `runtime`, or `runtime:model`, for one that"
            " a harness lends. Empty: as `summarizer.order` says."
        ),
    )
    fallbacks: tuple[str, ...] = Field(
        (),
        description=(
            "The models asked when the first fails, in order, each in the same form as `model`."
            " Empty: the others in their order."
        ),
    )
    spend: SpendSettings = SpendSettings()
    breaker: BreakerSettings = BreakerSettings()

    def models_named(self) -> list[tuple[str, str]]:
        """The settings that name models, each with one that it names: (path, `endpoint:model` or an
        endpoint)."""
        named = [(f"{GROUP}.model", self.model)] if self.model else []
        return [*named, *((f"{GROUP}.fallbacks", model) for model in self.fallbacks)]


FORMER = {
    "compactionModel": "model",
    "compaction.summarizerFallbackProviders": "fallbacks",
    "summarizerSpend.maxTokensPerTenantPerHour": "spend.max_tokens_per_tenant_per_hour",
    "summarizerSpend.maxTokensPerTenantPerDay": "spend.max_tokens_per_tenant_per_day",
    "summarizerBreaker.failureThreshold": "breaker.failure_threshold",
    "summarizerBreaker.resetTimeoutMs": "breaker.reset_timeout",
    "summarizerBreaker.halfOpenTimeoutMs": "breaker.half_open_timeout",
}
"""The names that an engine's block had for the policy, as Comis's dag has them, and ours."""

_OURS = {to_snake(former): ours for former, ours in FORMER.items()}
_GROUPS = {former.partition(".")[0] for former in _OURS}


def names_in(model: type[BaseModel]) -> set[str]:
    """The names that a model's options may be given by."""
    fields = model.model_fields
    return {*fields, *(field.alias for field in fields.values() if field.alias)}


class Renamed:
    """An engine's block without the policy's former names, and what stood under those."""

    def __init__(
        self, options: Mapping[str, Any], path: str = "", own: Collection[str] = ()
    ) -> None:
        """`path`: where the block stands, for problems; `own`: the names of the engine's options,
        which are no former names."""
        self.rest: dict[str, Any] = {}
        self.policy: dict[str, Any] = {}
        """By our names, nested as PolicySettings is."""
        self.given: dict[str, str] = {}
        """Our path of each setting, and the one under which it was given."""
        self.problems: list[Problem] = []
        for key, value in options.items():
            if to_snake(key) in _GROUPS and key not in own:
                for former, leaf in _leaves(key, value):
                    self._take(former, f"{path}.{former}" if path else former, leaf)
            else:
                self.rest[key] = value

    def _take(self, former: str, where: str, value: Any) -> None:
        ours = _OURS.get(to_snake(former))
        if ours is None:
            known = ", ".join(FORMER)
            self.problems.append(Problem(where, f"is not a known name; known here: {known}"))
            return
        known_as = self.given.setdefault(f"{GROUP}.{ours}", where)
        if known_as != where:
            self.problems.append(Problem(where, f"is given twice, also as {known_as}; keep one"))
        group, _, name = ours.rpartition(".")
        if former.lower().endswith("ms"):
            value = _milliseconds(value)
        (self.policy.setdefault(group, {}) if group else self.policy)[name] = value

    def over(self, given: Any) -> Any:
        """What stands under our names, and over it what stood under the former ones; a name under
        both is a problem."""
        if not isinstance(given, Mapping) or not self.policy:
            return given or self.policy
        twice = {f"{GROUP}.{path}" for path, _ in _leaves_of(given)} & self.given.keys()
        self.problems += [
            Problem(path, f"is given twice, also as {self.given[path]}; keep one")
            for path in sorted(twice)
        ]
        return merge(given, self.policy)

    def as_given(self, problem: Problem) -> Problem:
        """A problem of the policy under the name that was given."""
        path = next(
            (
                former + problem.path.removeprefix(ours)
                for ours, former in self.given.items()
                if problem.path == ours or problem.path.startswith(f"{ours}[")
            ),
            problem.path,
        )
        return Problem(path, problem.text)


def _leaves_of(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        yield from _leaves(str(key), value)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in _leaves_of(value):
            yield f"{path}.{key}", inner
    else:
        yield path, value


def _milliseconds(value: Any) -> Any:
    """A number of milliseconds as a duration; what is no such number is left for validation."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
        return timedelta(milliseconds=number)
    except (TypeError, ValueError, OverflowError):
        return value
