"""How the rooms of the core are put together: each part is made once, of what it names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import msgspec

from contextengine_server.api.context_engine import ContextEngineService
from contextengine_server.api.engines import EnginesService
from contextengine_server.api.messages import ReadLimits
from contextengine_server.api.projection import ProjectionService
from contextengine_server.api.projector import Projector
from contextengine_server.api.recall import RecallService
from contextengine_server.api.runtime import RuntimeService
from contextengine_server.api.sessions import SessionsService
from contextengine_server.api.treatment.context_engine import ContextEngineWithTreatment
from contextengine_server.commands.compaction.commit_compaction import CommitCompaction
from contextengine_server.commands.compaction.compact import Compact
from contextengine_server.commands.context_engine import ContextEngineCommands
from contextengine_server.commands.engines.assign import Assign
from contextengine_server.commands.engines.doctor import Doctor
from contextengine_server.commands.engines.get import GetEngine
from contextengine_server.commands.engines.list import ListEngines
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
from contextengine_server.commands.services import EnginesCommands, RecallCommands, SessionsCommands
from contextengine_server.commands.sessions.delete import Delete
from contextengine_server.commands.sessions.export import Export
from contextengine_server.commands.sessions.get import GetSession
from contextengine_server.commands.sessions.import_ import Import
from contextengine_server.commands.sessions.list import ListSessions
from contextengine_server.commands.sessions.watch import Watch
from contextengine_server.commands.subagents.end_subagent import EndSubagent
from contextengine_server.commands.subagents.prepare_subagent_spawn import (
    PrepareSubagentSpawn,
    SpawnRules,
)
from contextengine_server.commands.subagents.rollback_subagent_spawn import RollbackSubagentSpawn
from contextengine_server.commands.tools.call_tool import CallTool
from contextengine_server.commands.tools.list_tools import ListTools
from contextengine_server.commands.turn.after_turn import AfterTurn
from contextengine_server.commands.turn.assemble import Assemble
from contextengine_server.commands.turn.bootstrap import Bootstrap
from contextengine_server.commands.turn.ingest import Ingest
from contextengine_server.commands.turn.reply_cache import ReplyCache
from contextengine_server.commands.turn.report_usage import ReportUsage
from contextengine_server.commands.turn.treatment import FindTreatment, TreatmentRules
from contextengine_server.commands.turn.update_model import UpdateModel
from contextengine_server.compaction.compactor import Compactor
from contextengine_server.compaction.host_summary import HostSummaries
from contextengine_server.compaction.proposal import Proposals
from contextengine_server.compaction.queue import CompactionQueue
from contextengine_server.compaction.remake import Remake
from contextengine_server.compaction.summary_request import SummaryRequests
from contextengine_server.compaction.undo import Undo
from contextengine_server.engines.registry import Registry
from contextengine_server.health.checks import Examine
from contextengine_server.health.integrity import Integrity
from contextengine_server.recall.archive import Archive
from contextengine_server.runtime.broker import Harnesses
from contextengine_server.session.address import Addresses
from contextengine_server.session.append import Appender
from contextengine_server.session.assembly.alignment import Aligner
from contextengine_server.session.assembly.assembler import Assembler
from contextengine_server.session.assembly.budget import BudgetDefaults
from contextengine_server.session.assembly.live_store import LiveStore
from contextengine_server.session.assembly.plan import Planner
from contextengine_server.session.change import Editor
from contextengine_server.session.children import ChildSessions
from contextengine_server.session.encoding import Encodings
from contextengine_server.session.lifecycle import Lifecycle
from contextengine_server.session.policies import Policies
from contextengine_server.session.selection import Selection
from contextengine_server.session.sessions import SessionCache, Sessions
from contextengine_server.store.protocols import Store
from contextengine_server.summarize import Summarizer, SummaryRequest
from contextengine_server.summarize.guards.guarded import GuardStates
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.meters import Meters
from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.tokens import TokenCounter


class Rules(msgspec.Struct, frozen=True):
    """What the core keeps to, from the settings."""

    max_id_bytes: int
    max_batch_messages: int
    max_session_messages: int
    max_message_bytes: int
    cache_bytes: int
    budgets: BudgetDefaults
    spawns: SpawnRules
    default_engine: str
    falls_back: bool
    """True where another engine stands in for one that fails."""
    treatment: TreatmentRules
    remakes: bool
    """True where summaries that stand in for better ones are made again in the background."""


class CoreDependencies(msgspec.Struct, frozen=True):
    """What the core stands on: whatever does I/O, tells the time or is chosen by settings."""

    store: Store
    counter: TokenCounter
    registry: Registry
    policies: Policies
    summarizer: Summarizer
    model_capacity: Callable[[SummaryRequest, int], int | None]
    """The tokens of messages that the model asked first takes at once, beside a previous summary of
    so many."""
    attached: Callable[[str], int]
    """How many harnesses of a tenant lend their models now."""
    metrics: Metrics
    clock_ms: Callable[[], int]
    new_id: Callable[[], str]
    process_id: str
    """Names this run of the server."""
    full: Mapping[str, tuple[int, int]] = {}
    """Tenants that take more of the disk than they may: the bytes, and how many they may."""


class Core(msgspec.Struct, frozen=True):
    """The parts of the core that more than one command uses, and those that the server runs."""

    store: Store
    rules: Rules
    clock_ms: Callable[[], int]
    addresses: Addresses
    cache: SessionCache
    encodings: Encodings
    sessions: Sessions
    selection: Selection
    events: Events
    meters: Meters
    appender: Appender
    aligner: Aligner
    lists: LiveStore
    editor: Editor
    lifecycle: Lifecycle
    children: ChildSessions
    planner: Planner
    assembler: Assembler
    summaries: SummaryRequests
    compactor: Compactor
    proposals: Proposals
    queue: CompactionQueue
    replies: ReplyCache
    attached: Callable[[str], int]


def core_of(rules: Rules, at: CoreDependencies) -> Core:
    """The core over its surroundings."""
    store, clock_ms = at.store, at.clock_ms
    encodings = Encodings(at.counter)
    cache = SessionCache(rules.cache_bytes, encodings.default)
    events = Events(at.process_id, clock_ms)
    sessions = Sessions(store, cache, encodings, clock_ms, at.new_id, events)
    addresses = Addresses(store, rules.max_id_bytes)
    meters = Meters(at.metrics)
    selection = Selection(
        at.registry,
        at.policies,
        store,
        rules.default_engine,
        events,
        clock_ms,
        falls_back=rules.falls_back,
        cache=cache,
    )
    appender = Appender(sessions, store, events, meters, cache, rules.max_session_messages, at.full)
    editor = Editor(sessions, store, events)
    planner = Planner(sessions, selection, meters)
    summaries = SummaryRequests(
        at.summarizer, selection, events, meters, clock_ms, at.model_capacity
    )
    aligner, lists = Aligner(), LiveStore(sessions, appender, events)
    compactor = Compactor(sessions, store, selection, events, meters, summaries, rules.remakes)
    return Core(
        store=store,
        rules=rules,
        clock_ms=clock_ms,
        addresses=addresses,
        cache=cache,
        encodings=encodings,
        sessions=sessions,
        selection=selection,
        events=events,
        meters=meters,
        appender=appender,
        aligner=aligner,
        lists=lists,
        editor=editor,
        lifecycle=Lifecycle(sessions, editor, events),
        children=ChildSessions(store, cache, events, meters, selection, clock_ms),
        planner=planner,
        assembler=Assembler(
            sessions, store, selection, appender, aligner, lists, planner, rules.budgets
        ),
        summaries=summaries,
        compactor=compactor,
        proposals=Proposals(sessions, store, compactor, clock_ms, at.new_id),
        queue=CompactionQueue(store, cache, clock_ms, asyncio.Event()),
        replies=ReplyCache(store, selection, rules.cache_bytes),
        attached=at.attached,
    )


def context_engine_commands(
    core: Core, archive: Archive, guards: GuardStates
) -> ContextEngineCommands:
    """The commands of service ContextEngine."""
    addresses, sessions, store, editor = core.addresses, core.sessions, core.store, core.editor
    selection, budgets = core.selection, core.rules.budgets
    grants = grants_of(core)
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
            core.meters,
            budgets,
            core.queue,
            core.compactor,
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
        ),
        commit_compaction=CommitCompaction(addresses, sessions, core.proposals),
        record_host_change=RecordHostChange(
            addresses, sessions, core.lifecycle, HostSummaries(sessions, editor)
        ),
        maintain=Maintain(addresses, selection, store),
        report_usage=ReportUsage(addresses, sessions, editor, core.meters),
        update_model=UpdateModel(addresses, sessions, editor),
        get_status=GetStatus(addresses, sessions, store, selection, budgets, guards, core.attached),
        reset_session=ResetSession(addresses, sessions, core.lifecycle),
        end_session=EndSession(addresses, sessions, core.lifecycle),
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
        list_tools=ListTools(addresses, selection),
        call_tool=CallTool(grants, selection, store, archive, core.events),
    )


def grants_of(core: Core) -> RecallGrants:
    """What opens parents to their children."""
    return RecallGrants(core.addresses, core.store, core.children, core.meters, core.clock_ms)


def recall_commands(core: Core, archive: Archive) -> RecallCommands:
    """The commands of service Recall."""
    grants = grants_of(core)
    return RecallCommands(
        Search(core.sessions, grants, archive),
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
        Import(addresses, sessions, store, core.appender),
        Export(addresses, sessions, store),
        delete_command(core),
        Watch(core.events),
    )


def engines_commands(core: Core, examine: Examine, models: Sequence[str]) -> EnginesCommands:
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
    )


def project_command(core: Core) -> Project:
    """The command of service Projection."""
    return Project(core.addresses, core.sessions, core.assembler)


def services_of(
    core: Core,
    archive: Archive,
    guards: GuardStates,
    examine: Examine,
    models: Sequence[str],
    harnesses: Harnesses,
    projector: Projector,
) -> Mapping[str, object]:
    """The servicers by the names of their services."""
    rules = core.rules
    limits = ReadLimits(
        rules.max_batch_messages, rules.max_message_bytes, rules.max_session_messages
    )
    commands = context_engine_commands(core, archive, guards)
    turns = ContextEngineService(commands, limits, projector)
    if not rules.treatment.empty:
        turns = ContextEngineWithTreatment(
            commands,
            limits,
            projector,
            FindTreatment(core.store, core.selection, rules.treatment),
        )
    return {
        f"{PACKAGE}.ContextEngine": turns,
        f"{PACKAGE}.Recall": RecallService(recall_commands(core, archive)),
        f"{PACKAGE}.Projection": ProjectionService(project_command(core), limits, projector),
        f"{PACKAGE}.Runtime": RuntimeService(harnesses),
        f"{PACKAGE}.Sessions": SessionsService(sessions_commands(core), limits),
        f"{PACKAGE}.Engines": EnginesService(
            engines_commands(core, examine, models), core.addresses
        ),
    }


PACKAGE = "contextengine.v1"
