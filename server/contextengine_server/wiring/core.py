"""How the rooms of the core are put together: each part is made once, of what it names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from contextengine_server.commands.subagents.prepare_subagent_spawn import (
    SpawnRules,
)
from contextengine_server.commands.turn.reply_cache import ReplyCache
from contextengine_server.commands.turn.treatment import TreatmentRules
from contextengine_server.compaction.compactor import Compactor
from contextengine_server.compaction.companions import Companions
from contextengine_server.compaction.memory_flush import FlushRules, Memory, MemoryFlush
from contextengine_server.compaction.originals import OriginalMessages
from contextengine_server.compaction.proposal import Proposals
from contextengine_server.compaction.queue import CompactionQueue
from contextengine_server.compaction.summary_request import SummaryRequests
from contextengine_server.engines.registry import Registry
from contextengine_server.memory.keeper import FoundNotes, Keeper, RunInWorker
from contextengine_server.memory.rules import MemoryRules
from contextengine_server.memory.shown import ShownMemory
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
from contextengine_server.session.usage.parts import UsageParts, usage_parts
from contextengine_server.store.protocols import Store
from contextengine_server.summarize import Summarizer, SummaryRequest
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.meters import Meters
from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.tokens import TokenCounter
from contextengine_server.usage.rules import UsageRules


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
    usage: UsageRules
    flush: FlushRules
    """When the facts of what is summarized go to memory."""
    memory: MemoryRules | None
    """What agents remember; None: nothing more."""
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
    in_worker: RunInWorker | None = None
    """Where facts are looked for; None: nowhere."""
    memory: Memory | None = None
    """What keeps facts of agents, in the place of ours."""


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
    usage: UsageParts
    lifecycle: Lifecycle
    companions: Companions
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
        sessions=sessions,
        falls_back=rules.falls_back,
    )
    appender = Appender(sessions, store, events, meters, cache, rules.max_session_messages, at.full)
    editor = Editor(sessions, store, events)
    planner = Planner(
        sessions, selection, meters, rules.usage.escalated_output, rules.usage.retention
    )
    usage = usage_parts(
        rules.usage, at.registry.ids, rules.budgets, store, clock_ms, events, meters
    )
    summaries = SummaryRequests(
        at.summarizer,
        selection,
        events,
        meters,
        clock_ms,
        at.model_capacity,
        OriginalMessages(store),
    )
    aligner, lists = Aligner(), LiveStore(sessions, appender, events)
    kept = at.memory
    if kept is None and rules.memory is not None and at.in_worker is not None:
        notes = FoundNotes(events, meters)
        kept = Keeper(store.memory, rules.memory, at.in_worker, clock_ms, notes.tell)
    companions = Companions(sessions, selection)
    memory = MemoryFlush(kept, store, meters, rules.flush)
    compactor = Compactor(
        sessions, store, selection, events, meters, summaries, memory, rules.remakes
    )
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
        usage=usage,
        lifecycle=Lifecycle(sessions, editor, events, kept is not None, companions.leaving),
        companions=companions,
        children=ChildSessions(store, cache, events, meters, selection, clock_ms),
        planner=planner,
        assembler=Assembler(
            sessions,
            store,
            selection,
            appender,
            aligner,
            lists,
            planner,
            rules.budgets,
            usage.guard,
            usage.tools,
            ShownMemory(store.memory, rules.memory if kept is not None else None),
        ),
        summaries=summaries,
        compactor=compactor,
        proposals=Proposals(sessions, store, compactor, clock_ms, at.new_id),
        queue=CompactionQueue(store, cache, clock_ms, asyncio.Event()),
        replies=ReplyCache(store, selection, rules.cache_bytes),
        attached=at.attached,
    )
