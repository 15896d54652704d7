"""The servicers, each over the commands that it calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contextengine_server.api.context_engine import ContextEngineService
from contextengine_server.api.engines import EnginesService
from contextengine_server.api.messages import ReadLimits
from contextengine_server.api.projection import ProjectionService
from contextengine_server.api.projector import Projector
from contextengine_server.api.recall import RecallService
from contextengine_server.api.runtime import RuntimeService
from contextengine_server.api.sessions import SessionsService
from contextengine_server.api.treatment.context_engine import ContextEngineWithTreatment
from contextengine_server.commands.engines.quotas import Tenants
from contextengine_server.commands.turn.treatment import FindTreatment
from contextengine_server.health.checks import Examine
from contextengine_server.recall.archive import Archive
from contextengine_server.runtime.errands import Errands
from contextengine_server.summarize.guards.guarded import GuardStates
from contextengine_server.wiring.commands import (
    context_engine_commands,
    engines_commands,
    project_command,
    recall_commands,
    sessions_commands,
)
from contextengine_server.wiring.core import Core


def services_of(
    core: Core,
    archive: Archive,
    guards: GuardStates,
    examine: Examine,
    models: Sequence[str],
    errands: Errands,
    projector: Projector,
    tenants: Tenants,
) -> Mapping[str, object]:
    """The servicers by the names of their services."""
    rules = core.rules
    limits = ReadLimits(
        rules.max_batch_messages, rules.max_message_bytes, rules.max_session_messages
    )
    commands = context_engine_commands(core, archive, guards, errands)
    turns = ContextEngineService(commands, limits, projector, tenants.uses)
    if not rules.treatment.empty:
        turns = ContextEngineWithTreatment(
            commands,
            limits,
            projector,
            tenants.uses,
            FindTreatment(core.store, core.selection, rules.treatment),
        )
    return {
        f"{PACKAGE}.ContextEngine": turns,
        f"{PACKAGE}.Recall": RecallService(recall_commands(core, archive)),
        f"{PACKAGE}.Projection": ProjectionService(project_command(core), limits, projector),
        f"{PACKAGE}.Runtime": RuntimeService(errands.harnesses),
        f"{PACKAGE}.Sessions": SessionsService(sessions_commands(core), limits),
        f"{PACKAGE}.Engines": EnginesService(
            engines_commands(core, examine, models, tenants), core.addresses
        ),
    }


PACKAGE = "contextengine.v1"
