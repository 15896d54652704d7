"""Assign: an operator chooses an engine, or options, for a tenant, an agent, a session, or sessions
by pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from contextengine_server.config.policy import PolicySettings
from contextengine_server.context.scope import Scope
from contextengine_server.engines.patterns import SessionPattern
from contextengine_server.engines.registration import InvalidEngine
from contextengine_server.errors import InvalidField
from contextengine_server.session.failures import engine_failed
from contextengine_server.session.policies import AssignedOptions
from contextengine_server.session.selection import Selected, Selection
from contextengine_server.telemetry.events import Events


class Assign(msgspec.Struct, frozen=True):
    """Keeps operators' choices."""

    selection: Selection
    events: Events
    models: Sequence[str]
    """The endpoints that options may name, and `runtime` where harnesses are asked."""

    async def run(
        self,
        scope: Scope,
        engine_id: str,
        options: Mapping[str, Any],
        *,
        clear: bool,
        pattern: SessionPattern | None = None,
    ) -> Selected:
        """What serves the scope from now on, or the sessions of a pattern in the scope's tenant. No
        engine id: the one that would serve anyway gets the options. Raises UnknownEngine,
        InvalidField, EngineFailed; nothing is kept then."""
        if pattern is not None:
            scope = Scope(scope.tenant, "", pattern.row)
        registry, target, parted = self.selection.registry, engine_id, AssignedOptions({}, {})
        if not clear:
            chosen = await self.selection.choose(scope, inherited=True)
            target = engine_id or chosen.engine_id
            try:
                parted = self.selection.policies.parted(options, registry.model(target))
                registry.engine(target, registry.options(target, parted.engine))
            except InvalidEngine as error:
                raise engine_failed(target, "load", error, "mend or remove its plugin") from error
            parted = replace(parted, engine=registry.named(target, parted.engine))
            self._check_models(parted)
        await self.selection.keep_for_turns(scope.tenant)
        await self.selection.assign(scope, engine_id, target, parted)
        if pattern is None:
            selected = await self.selection.engine_for(scope, next_turn=True)
        else:
            selected = await self.selection.by_pattern(scope.tenant, pattern)
        where = scope if pattern is None else Scope(scope.tenant, "", "")
        self.events.emit(
            "engine:assigned",
            *where,
            attributes={"engine": selected.engine.id, "source": selected.source},
        )
        return selected

    def _check_models(self, options: AssignedOptions) -> None:
        """Refuses a model that nobody could ask: summaries would fall through to the next in the
        chain without a word."""
        for option, model in PolicySettings.model_validate(options.policy).models_named():
            option = options.given.get(option, option)
            name = model.partition(":")[0]
            if name not in self.models:
                raise InvalidField(
                    "options_json",
                    f"{option}: names {name!r}, which is not a configured endpoint: name one of"
                    f" {', '.join(self.models) or '(none)'}, or add it to summarizer.endpoints",
                )
