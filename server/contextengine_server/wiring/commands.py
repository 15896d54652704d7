"""The commands of each service, made of the core."""

from __future__ import annotations

from collections.abc import Sequence

from contextengine_server.commands.compaction.commit_compaction import CommitCompaction
from contextengine_server.commands.compaction.compact import Compact
from contextengine_server.commands.compaction.live_list import LiveLists
from contextengine_server.commands.compaction.should_compact import ShouldCompact
from contextengine_server.commands.context_engine import ContextEngineCommands
from contextengine_server.commands.engines.assign import Assign
from contextengine_server.commands.engines.doctor import Doctor
from contextengine_server.commands.engines.get import GetEngine
from contextengine_server.commands.engines.list import ListEngines
from contextengine_server.commands.engines.quotas import Tenants
from contextengine_server.commands.lifecycle.dispose_session import DisposeSession
from contextengine_server.commands.lifecycle.end_session import EndSession
from contextengine_server.commands.lifecycle.get_status import GetStatus
from contextengine_server.commands.lifecycle.maintain import Maintain
from contextengine_server.commands.lifecycle.record_host_change import RecordHostChange
from contextengine_server.commands.lifecycle.reset_session import ResetSession
from contextengine_server.commands.project import Project
from contextengine_server.commands.recall.expand import Expand
from contextengine_server.commands.recall.grant import RecallGrants
from contextengine_server.commands.recall.inspect import Inspect
from contextengine_server.commands.recall.search import Search
from contextengine_server.commands.recall.search_memory import SearchMemory
from contextengine_server.commands.services import EnginesCommands, RecallCommands, SessionsCommands
from contextengine_server.commands.sessions.delete import Delete
from contextengine_server.commands.sessions.erase import Erase, erasing_all
from contextengine_server.commands.sessions.export import Export
from contextengine_server.commands.sessions.get import GetSession
from contextengine_server.commands.sessions.import_ import Import
from contextengine_server.commands.sessions.list import ListSessions
from contextengine_server.commands.sessions.watch import Watch
from contextengine_server.commands.subagents.end_subagent import EndSubagent
from contextengine_server.commands.subagents.prepare_subagent_spawn import (
    PrepareSubagentSpawn,
)
from contextengine_server.commands.subagents.rollback_subagent_spawn import RollbackSubagentSpawn
from contextengine_server.commands.tools.call_tool import CallTool
from contextengine_server.commands.tools.discover_tools import DiscoverTools
from contextengine_server.commands.tools.list_tools import ListTools
from contextengine_server.commands.turn.after_turn import AfterTurn
from contextengine_server.commands.turn.assemble import Assemble
from contextengine_server.commands.turn.bootstrap import Bootstrap
from contextengine_server.commands.turn.ingest import Ingest
from contextengine_server.commands.turn.report_usage import ReportUsage
from contextengine_server.commands.turn.update_model import UpdateModel
from contextengine_server.compaction.host_summary import HostSummaries
from contextengine_server.compaction.memory_job import MemoryJob
from contextengine_server.compaction.remake import Remake
from contextengine_server.compaction.undo import Undo
from contextengine_server.health.checks import Examine
from contextengine_server.health.integrity import Integrity
from contextengine_server.recall.archive import Archive
from contextengine_server.runtime.errands import Errands
from contextengine_server.summarize.guards.guarded import GuardStates
from contextengine_server.wiring.core import Core


def context_engine_commands(
    core: Core, archive: Archive, guards: GuardStates, errands: Errands | None = None
) -> ContextEngineCommands:
    """The commands of service ContextEngine. `errands`: who serves harnesses that come by."""
    visits = errands.harnesses.visits if errands is not None else None
    addresses, sessions, store, editor = core.addresses, core.sessions, core.store, core.editor
    selection, budgets = core.selection, core.rules.budgets
    grants = grants_of(core)
    memory = MemoryJob(core.compactor, editor)
    return ContextEngineCommands(
        bootstrap=Bootstrap(
            addresses,
            sessions,
            store,
            selection,
            core.appender,
            editor,
            core.children,
            core.aligner,
            core.lists,
        ),
        ingest=Ingest(addresses, selection, sessions, core.appender),
        assemble=Assemble(
            addresses, core.assembler, core.replies, core.queue, core.events, core.meters
        ),
        after_turn=AfterTurn(
            addresses,
            sessions,
            selection,
            core.appender,
            core.usage.billing,
            budgets,
            core.queue,
            core.compactor,
            visits,
        ),
        compact=Compact(
            addresses,
            sessions,
            store,
            selection,
            budgets,
            core.compactor,
            core.proposals,
            Undo(sessions, editor, core.events),
            Remake(core.compactor),
            core.queue,
            LiveLists(sessions, core.assembler),
            visits,
        ),
        commit_compaction=CommitCompaction(addresses, sessions, core.proposals),
        should_compact=ShouldCompact(
            addresses,
            sessions,
            selection,
            budgets,
            core.compactor,
            LiveLists(sessions, core.assembler),
        ),
        record_host_change=RecordHostChange(
            addresses, sessions, store, core.lifecycle, HostSummaries(sessions, editor)
        ),
        maintain=Maintain(addresses, selection, store, core.cache, core.clock_ms, errands),
        report_usage=ReportUsage(addresses, sessions, editor, core.usage.billing),
        update_model=UpdateModel(addresses, sessions, editor),
        get_status=GetStatus(
            addresses,
            sessions,
            store,
            selection,
            budgets,
            guards,
            core.attached,
            core.usage.guard,
        ),
        reset_session=ResetSession(addresses, sessions, core.lifecycle, memory, core.companions),
        end_session=EndSession(addresses, sessions, core.lifecycle, memory, core.companions),
        dispose_session=DisposeSession(addresses, core.cache, core.replies),
        prepare_subagent_spawn=PrepareSubagentSpawn(
            addresses,
            sessions,
            store,
            core.events,
            core.meters,
            core.clock_ms,
            core.children,
            core.rules.spawns,
        ),
        rollback_subagent_spawn=RollbackSubagentSpawn(addresses, store, core.children),
        end_subagent=EndSubagent(addresses, sessions, store, core.children, core.lifecycle),
        list_tools=ListTools(
            addresses, selection, store, core.companions, core.lifecycle.remembers
        ),
        call_tool=CallTool(
            grants,
            selection,
            store,
            archive,
            core.events,
            DiscoverTools(sessions, selection, editor, core.usage.tools, archive),
            core.companions,
            core.lifecycle.remembers,
        ),
    )


def grants_of(core: Core) -> RecallGrants:
    """What opens parents to their children."""
    return RecallGrants(core.addresses, core.store, core.children, core.meters, core.clock_ms)


def recall_commands(core: Core, archive: Archive) -> RecallCommands:
    """The commands of service Recall."""
    grants = grants_of(core)
    return RecallCommands(
        Search(core.sessions, grants, archive),
        SearchMemory(core.addresses, core.sessions, core.store),
        Inspect(grants, archive),
        Expand(grants, core.selection, archive),
    )


def delete_command(core: Core) -> Delete:
    """The command that erases sessions."""
    return Delete(core.addresses, core.store, core.cache, core.events, core.selection)


def sessions_commands(core: Core) -> SessionsCommands:
    """The commands of service Sessions."""
    addresses, store, sessions = core.addresses, core.store, core.sessions
    return SessionsCommands(
        ListSessions(store),
        GetSession(addresses, store),
        Import(addresses, sessions, store, core.appender, core.lifecycle.remembers),
        Export(addresses, sessions, store),
        delete_command(core),
        Erase(store, erasing_all(delete_command(core)), core.selection.forget),
        Watch(core.events),
    )


def engines_commands(
    core: Core, examine: Examine, models: Sequence[str], tenants: Tenants
) -> EnginesCommands:
    """The commands of service Engines. `models`: the endpoints that options may name, and
    `runtime` where harnesses are asked."""
    listing = ListEngines(core.selection, core.cache)
    integrity = Integrity(core.sessions, core.store, core.editor, core.events)
    return EnginesCommands(
        listing,
        GetEngine(core.selection, listing),
        Assign(core.selection, core.events, models),
        Doctor(
            core.addresses,
            core.sessions,
            core.selection,
            integrity,
            Remake(core.compactor),
            examine,
        ),
        tenants,
    )


def project_command(core: Core) -> Project:
    """The command of service Projection."""
    return Project(core.addresses, core.sessions, core.assembler)
