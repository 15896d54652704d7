"""The composition root: rooms are made and wired here, and nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

import msgspec

from contextengine_server import metric_readers
from contextengine_server.api.pipeline.certificates import TlsFiles
from contextengine_server.api.pipeline.server import Server, ServerOptions, traffic_of
from contextengine_server.api.projection_cache import CACHE_SHARE, ProjectionCache
from contextengine_server.api.projector import Projector
from contextengine_server.archive.cold_room import ColdRoom
from contextengine_server.commands.engines.quotas import Tenants
from contextengine_server.commands.subagents.prepare_subagent_spawn import SpawnRules
from contextengine_server.commands.turn.treatment import TreatmentRules
from contextengine_server.compaction.jobs import DEADLINE_S, Background
from contextengine_server.compaction.memory_flush import FlushRules
from contextengine_server.config.policy import MILLISECOND
from contextengine_server.config.settings import Settings
from contextengine_server.engines.catalogue import FALLBACK
from contextengine_server.engines.registry import Registry
from contextengine_server.health.archive import archive_checks
from contextengine_server.health.certificates import certificate_checks
from contextengine_server.health.checks import ServerChecks
from contextengine_server.health.interpreter import hurry
from contextengine_server.health.lenders import Lenders
from contextengine_server.health.memory import MemoryGuard, give_back_large_blocks
from contextengine_server.health.readiness import ReadinessProbe
from contextengine_server.health.scrub import Scrub
from contextengine_server.health.servers import Servers
from contextengine_server.plugins.stores import kind_of
from contextengine_server.plugins.targets import installed_targets
from contextengine_server.recall.archive import Archive
from contextengine_server.recall.index import Indexer
from contextengine_server.recall.score.questions import Questions
from contextengine_server.recall.snippets import TurnBeginnings
from contextengine_server.runtime.errands import Errands
from contextengine_server.runtime.guard_states import StoredStates
from contextengine_server.runtime.wanted import WantedJobs
from contextengine_server.session.assembly.budget import BudgetDefaults
from contextengine_server.session.children import ChildSweeper
from contextengine_server.session.load import inherits
from contextengine_server.session.policies import Policies
from contextengine_server.session.session import SESSION_OVERHEAD
from contextengine_server.session.sessions import now_ms
from contextengine_server.session.staged.leftovers import LeftoverSweeper
from contextengine_server.session.sweeper import IdleSweeper, Lead, Sweeper
from contextengine_server.store.kinds import store_of
from contextengine_server.store.protocols import Store
from contextengine_server.summarize import (
    WorkerPool,
)
from contextengine_server.summarize.redaction import redact_all
from contextengine_server.telemetry.logs import get_logger
from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.telemetry.tracing import Tracer
from contextengine_server.tokens import TokenCounter, profile
from contextengine_server.wiring.archive import archive_sweepers, with_archive
from contextengine_server.wiring.callers import certificates_of, issuers_of, tokens_of
from contextengine_server.wiring.core import Core, CoreDependencies, Rules, core_of
from contextengine_server.wiring.harnesses import harnesses_of, hearing
from contextengine_server.wiring.limits import measuring, quotas_of, retention_sweepers
from contextengine_server.wiring.memory import bytes_in_flight_of, memory_limit_of
from contextengine_server.wiring.replicas import exchange_of
from contextengine_server.wiring.services import services_of
from contextengine_server.wiring.summarizers import chain_of, longest_summary_s, models_of
from contextengine_server.wiring.warm_up import warm_up

log = get_logger("contextengine.app")


class App(msgspec.Struct, frozen=True):
    """A running service."""

    settings: Settings
    server: Server
    core: Core
    store: Store
    archive: ColdRoom
    background: Background
    registry: Registry
    metrics: Metrics
    address: str
    """Where it listens, with the port that was bound."""
    scraped: str
    """Where Prometheus finds the metrics, with the port that was bound; empty: nowhere."""


def new_id() -> str:
    """A name that no other thing has."""
    return uuid4().hex


def registry_of(settings: Settings) -> Registry:
    """The engines with their configured options."""
    catalogue, configured = settings.engine.catalogue(), settings.engine.configured()
    return Registry(catalogue, configured, settings.context_pruning.rules)


@asynccontextmanager
async def running(
    settings: Settings, *, clock_ms: Callable[[], int] | None = None, ends: bool = False
) -> AsyncIterator[App]:
    """Opens the store, wires the rooms and serves; drains and closes at the end, all but the port
    where the process `ends` then."""
    async with contextlib.AsyncExitStack() as stack:
        metrics = Metrics()
        memory = MemoryGuard(memory_limit_of(settings), metrics)
        give_back_large_blocks()
        tracer = _tracer(settings, stack)
        registry = registry_of(settings)
        registry.configured(settings.engine.default)
        for refused in registry.unusable():
            log.warning(
                "engine_unavailable",
                engine=refused.id,
                owner=refused.owner,
                why=str(refused.why),
            )
        counter = TokenCounter(settings.tokens.encoding)
        stack.callback(counter.close)
        kind = kind_of(settings.store.url)
        store = store_of(
            kind,
            settings.store.url,
            eased=settings.store.durability != "full",
            warm=settings.sessions.cache_bytes // SESSION_OVERHEAD,
        )
        if not kind.durable:
            log.warning("nothing that is stored survives a restart", store=settings.store.url)
        warming = asyncio.create_task(counter.warm())
        profile("")  # the table of models is read now, and not by the first call
        try:
            await store.open()
        finally:
            await warming
        stack.push_async_callback(store.close)
        # Servers that share a store go by its clock.
        clock_ms = clock_ms or (store.clock_ms if kind.shared else now_ms)
        store, room = with_archive(settings.archive, store, clock_ms)
        quotas = quotas_of(settings)
        pool = WorkerPool(
            settings.summarizer.workers,
            settings.summarizer.nice,
            deadline=settings.summarizer.deadline.total_seconds(),
            weight=quotas.weight,
        )
        stack.push_async_callback(pool.close)
        draining = asyncio.Event()
        harnesses = harnesses_of(settings, store, clock_ms, new_id)
        wanted = WantedJobs(harnesses, store.model_leases, clock_ms, new_id, draining.is_set)
        guards = StoredStates(store.guards)
        models = models_of(settings, wanted, guards, clock_ms, pool, counter, metrics)
        stack.push_async_callback(models.close)
        process_id = new_id()[:12]
        full: dict[str, tuple[int, int]] = {}
        core = core_of(
            rules_of(settings),
            CoreDependencies(
                store,
                counter,
                registry,
                Policies(settings.summarizer),
                chain_of(settings, models, pool, counter, store),
                models.capacity,
                harnesses.count,
                metrics,
                clock_ms,
                new_id,
                process_id,
                full,
                pool.run,
            ),
        )
        stack.callback(core.encodings.close)
        projector = _projector(core.rules.cache_bytes)
        metric_readers.watch(core, projector.cache, metrics)
        memory.watch([core.cache, projector.cache])
        background = Background(
            core.sessions,
            store,
            core.selection,
            core.compactor,
            core.queue,
            core.events,
            core.rules.budgets,
            process_id,
            workers=settings.summarizer.parallel,
            deadline_s=max(DEADLINE_S, longest_summary_s(settings)),
            tracer=tracer,
            weight=quotas.weight,
        )
        indexer = Indexer(store, alone=not kind.shared)
        leftovers = LeftoverSweeper(store, clock_ms, shared=kind.shared)
        sweepers: list[Sweeper] = [ChildSweeper(core.children), leftovers]
        idle_ms = _idle_ms(settings)
        if idle_ms is not None:
            sweepers.append(IdleSweeper(core.sessions, store, core.lifecycle, idle_ms))
        sweepers += retention_sweepers(settings, core, full, lambda: quotas.servers)
        sweepers += archive_sweepers(settings, core, room, metrics)
        scrub = _scrub(settings, core, metrics)
        sweepers += [] if scrub is None else [scrub]
        archive = Archive(
            store,
            indexer,
            inherits,
            redact_all,
            TurnBeginnings(redact_all),
            Questions(),
            counter.count_text_async,
        )
        indexer.gone = archive.forget

        examine = ServerChecks(
            settings,
            registry,
            core.selection,
            store,
            certificate_checks,
            scrub,
            partial(archive_checks, room),
        )
        errands = Errands(harnesses, store.model_leases, clock_ms)
        options = server_options(settings)
        traffic = traffic_of(options, metrics, quotas, lambda: memory.pressed, hurry)
        tenants = Tenants(quotas, store.quotas, traffic, core.events)
        await tenants.load()
        services = services_of(
            core, archive, guards, examine, models.names, errands, projector, tenants
        )
        server = Server(
            options, services, tracer=tracer, metrics=metrics, draining=draining, traffic=traffic
        )
        if kind.shared:
            servers = Servers(store.leases, process_id, quotas.shared)
            await servers.sweep()  # before the first call is admitted
            lenders = Lenders(store.leases, process_id, harnesses)
            await lenders.sweep()
            sweepers += [servers, lenders]
        sweepers += [memory, ReadinessProbe(store, server.set_serving, memory.why_not_ready)]
        server.on_drain("background", background.stop)
        server.on_drain("search index", indexer.stop)
        for sweeper in sweepers:
            server.on_drain(type(sweeper).__name__, sweeper.stop)
        for engine_id, dispose in _disposals(registry):
            server.on_drain(engine_id, dispose)
        metric_readers.beat(metrics, stack)
        await metric_readers.sample(settings, core, metrics, stack)
        scraped = metric_readers.scrape(settings, metrics, stack)
        if kind.shared:
            lent = hearing(harnesses, wanted, lenders)
            exchange = exchange_of(core, tenants, process_id, measuring(sweepers), lent)
            harnesses.elsewhere.share(core.events)
            stack.push_async_callback(exchange.stop)
            await exchange.start()
        port = await server.start()
        grace_s = settings.server.drain_grace.total_seconds()
        stack.push_async_callback(server.drain, grace_s, close=not ends)
        stack.callback(core.events.close)
        late = asyncio.create_task(asyncio.to_thread(warm_up), name="warm-up")
        stack.callback(late.cancel)
        background.start()
        indexer.start()
        lead = Lead(store.leases, process_id)
        for sweeper in sweepers:
            sweeper.start(lead)
        metric_readers.export(settings, metrics, stack)
        address = settings.server.address
        if port:
            address = f"{address.rpartition(':')[0]}:{port}"
        yield App(
            settings, server, core, store, room, background, registry, metrics, address, scraped
        )


def rules_of(settings: Settings) -> Rules:
    """What the core keeps to."""
    sessions, budget = settings.sessions, settings.budget
    flush = settings.summarizer.memory_flush
    return Rules(
        max_id_bytes=sessions.max_id_bytes,
        max_batch_messages=sessions.max_batch_messages,
        max_session_messages=sessions.max_session_messages,
        max_message_bytes=sessions.max_message_bytes,
        cache_bytes=sessions.cache_bytes,
        budgets=BudgetDefaults(budget.default_window, budget.window_cap, budget.rules),
        spawns=spawn_rules_of(settings),
        default_engine=settings.engine.default,
        falls_back=settings.engine.on_engine_failure == FALLBACK,
        treatment=TreatmentRules(
            [one.pattern for one in sessions.ignored], [one.pattern for one in sessions.stateless]
        ),
        usage=settings.usage.rules,
        flush=FlushRules(flush.soft_ratio, flush.hard_ratio),
        memory=settings.memory.rules if settings.memory.enabled else None,
        remakes=settings.summarizer.remake,
    )


def spawn_rules_of(settings: Settings) -> SpawnRules:
    """What children may do."""
    subagents = settings.subagents
    return SpawnRules(
        subagents.max_depth,
        subagents.max_children,
        subagents.ttl // MILLISECOND,
        subagents.max_fork_tokens,
        subagents.grant_tokens,
        subagents.grant_depth,
    )


def server_options(settings: Settings) -> ServerOptions:
    """How to serve."""
    server = settings.server
    tls = None
    if server.tls.enabled:
        authority = Path(server.tls.client_ca_file) if server.tls.client_ca_file else None
        tls = TlsFiles(Path(server.tls.cert_file), Path(server.tls.key_file), authority)
    everyone, each = bytes_in_flight_of(settings)
    return ServerOptions(
        address=server.address,
        transport=server.transport,
        tls=tls,
        tokens=tokens_of(settings.auth),
        issuers=issuers_of(settings.auth),
        certificates=certificates_of(settings.auth),
        owners=settings.auth.owners,
        insecure=server.insecure,
        max_message_bytes=server.max_message_bytes,
        max_bytes_in_flight=everyone,
        max_tenant_bytes_in_flight=each,
        max_concurrent_rpcs=server.max_concurrent_rpcs,
        max_working_rpcs=server.max_working_rpcs,
        max_wait_s=server.max_wait.total_seconds(),
        max_long_rpcs=server.max_long_rpcs,
        max_long_lived_rpcs=server.max_long_lived_rpcs,
        max_waiting_reads=server.max_waiting_reads,
        max_streams_per_connection=server.max_streams_per_connection,
        keepalive_s=server.keepalive.time.total_seconds(),
        keepalive_timeout_s=server.keepalive.timeout.total_seconds(),
        min_client_ping_s=server.keepalive.min_client_interval.total_seconds(),
    )


def _projector(session_bytes: int) -> Projector:
    """Projects into every target that is installed; says which cannot be used."""
    found = installed_targets()
    for why in found.broken:
        log.warning("target_unavailable", target=why.name, package=why.package, why=str(why))
    return Projector(found.targets, ProjectionCache(session_bytes // CACHE_SHARE))


def _tracer(settings: Settings, stack: contextlib.AsyncExitStack) -> Tracer:
    traces = settings.telemetry.traces
    if not traces.endpoint:
        return Tracer()
    from contextengine_server.telemetry.export import OtlpOptions, start_tracing

    tracer, end = start_tracing(
        traces.sample_ratio, OtlpOptions(traces.endpoint), parent_based=traces.parent_based
    )
    stack.push_async_callback(asyncio.to_thread, end)
    return tracer


def _scrub(settings: Settings, core: Core, metrics: Metrics) -> Scrub | None:
    """What reads everything that is stored, where that is wanted."""
    rate = settings.store.scrub_rate
    return Scrub(core.store, rate, core.events, metrics) if rate else None


def _idle_ms(settings: Settings) -> int | None:
    idle = settings.sessions.idle_end
    return None if idle is None else idle // MILLISECOND


def _disposals(registry: Registry) -> list[tuple[str, Callable[[], Awaitable[None]]]]:
    """One hook that disposes of every engine made by then, once each, side by side."""

    async def dispose() -> None:
        await asyncio.gather(
            *(engine.dispose() for engine in registry.instances()), return_exceptions=True
        )

    return [("engines", dispose)]
