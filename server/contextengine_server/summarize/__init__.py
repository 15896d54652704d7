"""Summarizers, and what guards them. Light to import: worker processes load it as well."""

from contextengine_server.summarize.chain import SummarizerChain, unacceptable
from contextengine_server.summarize.count_only import MAX_TOKENS as COUNT_ONLY_MAX_TOKENS
from contextengine_server.summarize.count_only import count_only
from contextengine_server.summarize.extractive import ExtractiveSummarizer, extract
from contextengine_server.summarize.request import (
    SourceMessage,
    Summarizer,
    SummarizerFailed,
    SummaryRequest,
    SummaryResult,
)
from contextengine_server.summarize.workers import WorkerFailed, WorkerPool

__all__ = [
    "COUNT_ONLY_MAX_TOKENS",
    "ExtractiveSummarizer",
    "SourceMessage",
    "Summarizer",
    "SummarizerChain",
    "SummarizerFailed",
    "SummaryRequest",
    "SummaryResult",
    "WorkerFailed",
    "WorkerPool",
    "count_only",
    "extract",
    "unacceptable",
]
