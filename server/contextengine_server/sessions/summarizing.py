"""Asking for a summary of a session: the one place where a request to the summarizers is made.

Everything a summarizer may know of a session is put together here: what to summarize, whose spend and breaker it counts for,
the policy that an operator chose for this session, and the language that its user writes in. What leaves the process is made
from it by the summarizers, which take the secrets out.
"""

from __future__ import annotations

from collections.abc import Sequence

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import Entry
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import Summary
from contextengine_server.engines.contract import CompactionStep, Engine
from contextengine_server.engines.options import DagOptions
from contextengine_server.summarize import (
    BreakerLimits,
    SourceMessage,
    SpendLimits,
    SummaryPolicy,
    SummaryRequest,
    SummaryResult,
)
from contextengine_server.wire.reading import texts_of

from .core import SessionCore

MAX_FOCUS = 800
"""Code points of a focus that are used (OpenClaw §4.7)."""

_ROLES = {1: "user", 2: "assistant", 3: "tool", 4: "system", 5: "developer", 6: "custom"}


def policy_of(options: DagOptions) -> SummaryPolicy:
    """Which models are asked for a summary, and how much of them, by the options of an engine."""
    spend, breaker = options.summarizer_spend, options.summarizer_breaker
    return SummaryPolicy(
        model=options.compaction_model,
        fallbacks=options.compaction.summarizer_fallback_providers,
        spend=SpendLimits(spend.max_tokens_per_tenant_per_hour, spend.max_tokens_per_tenant_per_day),
        breaker=BreakerLimits(
            breaker.failure_threshold, breaker.reset_timeout_ms, breaker.half_open_timeout_ms
        ),
    )


async def summarize(
    core: SessionCore,
    scope: Scope,
    engine: Engine,
    step: CompactionStep,
    entries: Sequence[Entry],
    gain: int,
    focus: str,
    *,
    children: Sequence[Summary] = (),
) -> SummaryResult:
    """The summary of a compaction's step. Only cancellation is raised.

    `entries` are the messages that it stands for; with `children`, summaries of lesser depth, it is one deeper than the
    deepest of them. `gain` is the tokens that leave the view with it.
    """
    request = summary_request(core, scope, engine, step, entries, gain, focus, children=children)
    return await core.summarizer.summarize(request)


def summary_request(
    core: SessionCore,
    scope: Scope,
    engine: Engine,
    step: CompactionStep,
    entries: Sequence[Entry],
    gain: int,
    focus: str,
    *,
    children: Sequence[Summary] = (),
) -> SummaryRequest:
    """What the summarizers are asked; see `summarize`."""
    sources = [*map(source_summary, children), *map(source_message, entries)]
    options = getattr(engine, "options", None)
    return SummaryRequest(
        messages=tuple(sorted(sources, key=lambda source: source.sequence)),
        source_tokens=max(1, gain - core.summary_overhead),
        target_tokens=max(1, step.target_tokens - core.summary_overhead),
        focus=focus[:MAX_FOCUS],
        previous_summary=step.previous,
        depth=max((child.depth + 1 for child in children), default=0),
        tenant=scope.tenant,
        policy=policy_of(options) if isinstance(options, DagOptions) else None,
    )


def source_message(entry: Entry) -> SourceMessage:
    """A message as a summarizer reads it."""
    message = pb.Message.FromString(entry.body)
    texts: list[str] = []
    texts_of(message.parts, texts)
    name = message.custom_role or message.name
    for part in message.parts:
        if part.WhichOneof("kind") == "tool_result" and part.tool_result.name:
            name = part.tool_result.name
    role = _ROLES.get(message.role, "custom")
    return SourceMessage(role, "\n".join(filter(None, texts)), entry.sequence, name, entry.time_ms)


def source_summary(child: Summary) -> SourceMessage:
    """A summary of lesser depth as a summarizer reads it."""
    return SourceMessage("summary", child.text, child.first_sequence, time_ms=child.start_ms)
