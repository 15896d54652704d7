"""Summarizers, and what guards them. Light to import: worker processes load it as well."""

from contextengine_server.summarize.chain.chain import SummarizerChain, accept, unacceptable
from contextengine_server.summarize.chain.count_only import MAX_TOKENS as COUNT_ONLY_MAX_TOKENS
from contextengine_server.summarize.chain.count_only import count_only
from contextengine_server.summarize.chain.escalation import EscalatingSummarizer
from contextengine_server.summarize.extractive.summarizer import ExtractiveSummarizer, extract
from contextengine_server.summarize.guards.breaker import Breaker, BreakerLimits
from contextengine_server.summarize.guards.guarded import (
    Failover,
    GuardedSummarizer,
    GuardState,
    GuardStates,
    GuardStatus,
    MeteredSummarizer,
)
from contextengine_server.summarize.guards.spend import Spend, SpendLimits
from contextengine_server.summarize.request import (
    Cause,
    NobodyThere,
    SourceMessage,
    Summarizer,
    SummarizerFailed,
    SummaryPolicy,
    SummaryRequest,
    SummaryResult,
    TooLong,
    Unacceptable,
)
from contextengine_server.summarize.workers.pool import WorkerFailed, WorkerPool

__all__ = [
    "COUNT_ONLY_MAX_TOKENS",
    "Breaker",
    "BreakerLimits",
    "Cause",
    "EscalatingSummarizer",
    "ExtractiveSummarizer",
    "Failover",
    "GuardState",
    "GuardStates",
    "GuardStatus",
    "GuardedSummarizer",
    "MeteredSummarizer",
    "NobodyThere",
    "SourceMessage",
    "Spend",
    "SpendLimits",
    "Summarizer",
    "SummarizerChain",
    "SummarizerFailed",
    "SummaryPolicy",
    "SummaryRequest",
    "SummaryResult",
    "TooLong",
    "Unacceptable",
    "WorkerFailed",
    "WorkerPool",
    "accept",
    "count_only",
    "extract",
    "unacceptable",
]
