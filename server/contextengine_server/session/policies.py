"""Which models are asked for a session's summaries and how much of them: the configuration, and
what an operator set for the tenant, the agent or the session, whichever engine serves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import orjson
from pydantic import BaseModel

from contextengine_server.config.policy import GROUP, PolicySettings, Renamed, names_in
from contextengine_server.config.schema import OptionsError, merge, parse
from contextengine_server.errors import InvalidField
from contextengine_server.summarize import BreakerLimits, SpendLimits, SummaryPolicy


class AssignedOptions(msgspec.Struct, frozen=True):
    """Options as they are assigned: an engine's own, and those of the policy. Each holds what was
    given and nothing else."""

    engine: dict[str, Any]
    policy: dict[str, Any]
    given: dict[str, str] = {}
    """The names under which settings of the policy were given, by their paths, where they are
    others."""


def policy_of(settings: PolicySettings) -> SummaryPolicy:
    """A policy as the summarizers read it."""
    spend, breaker = settings.spend, settings.breaker
    return SummaryPolicy(
        model=settings.model,
        fallbacks=settings.fallbacks,
        spend=SpendLimits(
            spend.max_tokens_per_tenant_per_hour, spend.max_tokens_per_tenant_per_day
        ),
        breaker=BreakerLimits(
            breaker.failure_threshold,
            round(breaker.reset_timeout.total_seconds() * 1000),
            round(breaker.half_open_timeout.total_seconds() * 1000),
        ),
    )


class Policies:
    """The configured policy, and what it comes to with what was assigned."""

    def __init__(self, configured: PolicySettings) -> None:
        self._configured = configured.model_dump(include=set(PolicySettings.model_fields))
        self._settings = lru_cache(maxsize=256)(self._merged)

    def settings(self, layers: Sequence[Mapping[str, Any]]) -> PolicySettings:
        """The policy where these were assigned, each over those before it."""
        return self._settings(orjson.dumps(layers))

    def policy(self, layers: Sequence[Mapping[str, Any]]) -> SummaryPolicy:
        """The same, as the summarizers read it."""
        return policy_of(self.settings(layers))

    def parted(self, options: Mapping[str, Any], model: type[BaseModel]) -> AssignedOptions:
        """What an operator gave as options, parted: the policy stands under `summarizer`, or under
        the names that the dag had for it before, unless the engine's model has such an option
        itself. Raises InvalidField where the policy's part is wrong; the engine's is not looked at.
        """
        renamed = Renamed(options, own=names_in(model))
        given = renamed.over(renamed.rest.pop(GROUP, {}))
        if not isinstance(given, Mapping):
            raise InvalidField("options_json", f"{GROUP}: must be a mapping of names to values")
        try:
            asked = parse(PolicySettings, given, GROUP)
        except OptionsError as error:
            renamed.problems += map(renamed.as_given, error.problems)
        if renamed.problems:
            raise InvalidField("options_json", str(OptionsError(renamed.problems)))
        policy = asked.model_dump(mode="json", exclude_unset=True)
        return AssignedOptions(renamed.rest, policy, renamed.given)

    def _merged(self, layers: bytes) -> PolicySettings:
        values: dict[str, Any] = self._configured
        for layer in orjson.loads(layers):
            values = merge(values, layer)
        return PolicySettings.model_validate(values)
