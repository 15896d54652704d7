"""Who reads the metrics: wired here, as `app` wires the rooms."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from importlib.metadata import version

from contextengine_server.api.pipeline.auth import ConfigurationError, split_address
from contextengine_server.api.pipeline.listener import cannot_listen
from contextengine_server.api.projection_cache import ProjectionCache
from contextengine_server.config.settings import Settings
from contextengine_server.health.gauges import Sampler
from contextengine_server.session.policies import policy_of
from contextengine_server.telemetry.logs import get_logger
from contextengine_server.telemetry.loop_watch import LoopWatch
from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.wiring.core import Core

log = get_logger("contextengine.metrics")


def watch(core: Core, projected: ProjectionCache, metrics: Metrics) -> None:
    """Registers what is in memory."""
    metrics.gauge(
        "contextengine.sessions.warm", lambda: len(core.cache), "Warm sessions", unit="{session}"
    )
    metrics.gauge(
        "contextengine.sessions.warm.size",
        lambda: core.cache.bytes,
        "Bytes of warm sessions, about",
        unit="By",
    )
    metrics.gauge(
        "contextengine.projection.kept.size",
        lambda: projected.bytes,
        "Bytes of messages in the forms of projections, about",
        unit="By",
    )


def beat(metrics: Metrics, stack: contextlib.AsyncExitStack) -> None:
    """Watches whether the loop comes round."""
    watch = LoopWatch(metrics)
    watch.start()
    stack.callback(watch.stop)


async def sample(
    settings: Settings, core: Core, metrics: Metrics, stack: contextlib.AsyncExitStack
) -> None:
    """Looks at the store for the gauges, where anybody reads them."""
    wanted = settings.telemetry.metrics
    sampler = Sampler(core.store, policy_of(settings.summarizer), core.clock_ms, metrics)
    if wanted.endpoint or wanted.prometheus.address:
        await sampler.look()
        sampler.start()
        stack.push_async_callback(sampler.stop)


def scrape(settings: Settings, metrics: Metrics, stack: contextlib.AsyncExitStack) -> str:
    """Opens the Prometheus endpoint where one is wanted; its address. Raises ConfigurationError
    where it cannot listen."""
    address = settings.telemetry.metrics.prometheus.address
    if not address:
        return ""
    from contextengine_server.telemetry.prometheus import serve_metrics

    name = "telemetry.metrics.prometheus.address"
    host, port = split_address(address)
    if port and settings.server.address.endswith(f":{port}"):
        raise ConfigurationError(
            f"{name}: {address} has the port of server.address {settings.server.address}, which"
            " speaks gRPC alone: choose another, such as 127.0.0.1:9464"
        )
    try:
        bound, end = serve_metrics(host, port, metrics, version("contextengine-server"))
    except OSError as error:
        raise cannot_listen(address, name) from error
    stack.push_async_callback(asyncio.to_thread, end)
    served = f"{address.rpartition(':')[0]}:{bound}"
    log.info("metrics_served", address=served)
    return served


def export(settings: Settings, metrics: Metrics, stack: contextlib.AsyncExitStack) -> None:
    """Sends metrics, once every room has registered its own."""
    wanted = settings.telemetry.metrics
    if wanted.endpoint:
        from contextengine_server.telemetry.export import OtlpOptions
        from contextengine_server.telemetry.metrics_export import start_metrics

        end = start_metrics(
            metrics, OtlpOptions(wanted.endpoint), wanted.interval // timedelta(milliseconds=1)
        )
        stack.push_async_callback(asyncio.to_thread, end)
