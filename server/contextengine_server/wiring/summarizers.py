"""Who writes summaries: the models and their guards, and what comes behind them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from contextengine_server.compaction.originals import OriginalMessages
from contextengine_server.config.settings import Settings
from contextengine_server.runtime.guard_states import StoredStates
from contextengine_server.session.policies import policy_of
from contextengine_server.store.protocols import Store
from contextengine_server.summarize import (
    ExtractiveSummarizer,
    Summarizer,
    SummarizerChain,
    WorkerPool,
)
from contextengine_server.summarize.chain.models import Models, ModelSource
from contextengine_server.summarize.models.openai import Endpoint, EndpointSource
from contextengine_server.summarize.models.runtime import NAME as RUNTIME
from contextengine_server.summarize.models.runtime import Lender, RuntimeSource
from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.tokens import TokenCounter


def endpoints_of(settings: Settings) -> list[Endpoint]:
    """Where models are asked."""
    return [
        Endpoint(**{**endpoint.model_dump(), "timeout": endpoint.timeout.total_seconds()})
        for endpoint in settings.summarizer.endpoints
    ]


def models_of(
    settings: Settings,
    lender: Lender,
    states: StoredStates,
    clock_ms: Callable[[], int],
    pool: WorkerPool,
    counter: TokenCounter,
    metrics: Metrics,
) -> Models:
    """The models that may be asked, in the configured order, behind their guards."""
    encoding, count = settings.tokens.encoding, counter.count_text
    sources: dict[str, ModelSource] = {}
    for kind in settings.summarizer.order:
        if kind == "runtime":
            sources[RUNTIME] = RuntimeSource(lender, pool, encoding, count, metrics)
        elif kind == "endpoints":
            for endpoint in endpoints_of(settings):
                sources[endpoint.name] = EndpointSource(endpoint, pool, encoding, count, metrics)
    return Models(
        sources,
        states,
        clock_ms,
        policy_of(settings.summarizer),
        count,
        settings.summarizer.attempts,
    )


def chain_of(
    settings: Settings, models: Models, pool: WorkerPool, counter: TokenCounter, store: Store
) -> SummarizerChain:
    """The models; then extraction, where it is wanted; then the note that counts."""
    chain: list[Summarizer] = [models]
    if "extractive" in settings.summarizer.order:
        originals = OriginalMessages(store)
        chain.append(ExtractiveSummarizer(pool, settings.tokens.encoding, originals))
    return SummarizerChain(chain, counter.count_text)


def longest_summary_s(settings: Settings) -> float:
    """How long one summary may take where every model hangs and who is asked last writes it. A
    job's deadline must not cut that off: the next in the order would never be asked."""
    summarizer = settings.summarizer
    runtime = summarizer.runtime.timeout if "runtime" in summarizer.order else timedelta()
    endpoints = sum((one.timeout * (one.retries + 1) for one in summarizer.endpoints), timedelta())
    return (runtime + endpoints + 2 * summarizer.deadline).total_seconds()
