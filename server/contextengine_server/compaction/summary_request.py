"""Asking for a summary of a session: the one place where a request to the summarizers is made.

Everything a summarizer may know of a session is put together here: what to summarize, whose spend
and breaker it counts for, the policy that an operator chose for this session, and the language that
its user writes in. What leaves the process is made from it by the summarizers, which take the
secrets out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

import msgspec
import structlog
from msgspec.structs import replace

from contextengine_server.compaction.retold import (
    Retold,
    fitted,
    joined,
    retold,
    shared,
)
from contextengine_server.context.message import Entry
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import Summary, View
from contextengine_server.context.work import Work, batches
from contextengine_server.engines.contract import CompactionStep, Engine, Said, event_name, unread
from contextengine_server.engines.teller import teller_of
from contextengine_server.memory.extraction.days import day_of_ms
from contextengine_server.notices import parted
from contextengine_server.session.selection import Selection
from contextengine_server.slices import in_slices
from contextengine_server.summarize import (
    Cause,
    SourceMessage,
    SummarizerFailed,
    SummaryRequest,
    SummaryResult,
)
from contextengine_server.summarize.extractive.tools import file_names
from contextengine_server.summarize.language import language_of, written_in
from contextengine_server.summarize.request import (
    MAX_FOCUS,
    Handoff,
    SourceCall,
    SourceResult,
    Steering,
    Summarizer,
)
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.meters import Meters
from contextengine_server.telemetry.tracing import CURRENT, under
from contextengine_server.wire.bounded import marked
from contextengine_server.wire.message import texts_of
from contextengine_server.wire.privacy import said

log = structlog.get_logger("contextengine.summarize")

_REASONS: dict[Cause, str] = {
    "breaker_open": "breaker_open",
    "spend_cap": "spend_cap",
    "failed": "summarizer_fallback",
}
EXHAUSTED = "summarizers_exhausted"
"""Why a summary is not by the summarizer that was to be asked first; the last: by none, so that the
note that counts stands in. The first two are Comis's (docs/dag.md#events)."""

_ROLES = {1: "user", 2: "assistant", 3: "tool", 4: "system", 5: "developer", 6: "custom"}


class SummaryRequests(msgspec.Struct):
    """Asks the summarizers for the summaries of sessions."""

    summarizer: Summarizer
    selection: Selection
    events: Events
    meters: Meters
    clock_ms: Callable[[], int]
    model_capacity: Callable[[SummaryRequest, int], int | None]
    originals: Callable[[SummaryRequest], Awaitable[Sequence[SourceMessage]]] | None = None
    """Reads the messages below the summaries of a request, of which facts are taken again."""

    def capacity(self, scope: Scope, engine: Engine, view: View) -> int | None:
        """The tokens of messages that a summary of this session may be made of at once: what the
        window of the model that is asked first leaves beside the prompt, the answer and the
        previous summary. None: as many as wanted."""
        request = SummaryRequest(
            (),
            0,
            engine.summary_tokens,
            tenant=scope.tenant,
            agent=scope.agent,
            session=scope.session,
            policy=self.selection.policy(scope),
        )
        return self.model_capacity(
            request, max((summary.tokens for summary in view.summaries), default=0)
        )

    async def write(
        self,
        scope: Scope,
        engine: Engine,
        step: CompactionStep,
        entries: Sequence[Entry],
        gain: int,
        steering: Steering,
        *,
        frame: int,
        count: Callable[[str], int],
        children: Sequence[Summary] = (),
        asked: Sequence[Entry] = (),
        resting: bool = False,
        better_than: str = "",
    ) -> SummaryResult:
        """The summary of a compaction's step. Only cancellation is raised; with `better_than`, who
        wrote the one that it is to take the place of, SummarizerFailed where nobody better did.

        `entries` are the messages that it stands for; with `children`, summaries of lesser depth,
        it is one deeper than the deepest of them. `gain` is the tokens that leave the view with it;
        `frame` what it costs there besides its text; `count` counts in the session's encoding;
        `asked` is what the user said last, oldest first; `resting`: no model is asked.
        """
        requesting = self.request(
            scope,
            engine,
            step,
            entries,
            gain,
            steering,
            frame=frame,
            children=children,
            asked=asked,
        )
        request = await in_slices(requesting)
        request = replace(request, better_than=better_than, resting=resting)
        parts = await self._retold(engine, request)
        room, most = shared(engine, request.target_tokens)
        facts = fitted(parts.lines, room, count)
        told: SummaryResult | None = None
        if parts.read or not request.messages:
            left = request.target_tokens - (count(facts) if facts else 0)
            request = replace(
                request,
                messages=parts.read,
                target_tokens=max(1, min(most, left)),
                passed_over=parts.passed_over,
            )
            told = await self._asked(scope, engine, request)
        elif better_than:
            raise SummarizerFailed("there is nothing for a summarizer to read", asked=False)
        return joined(facts, told, count)

    async def _retold(self, engine: Engine, request: SummaryRequest) -> Retold:
        """What of a request is told of, and how. The facts of what earlier summaries stand for are
        taken from its messages again."""
        parts = await in_slices(retold(engine, request.messages))
        summaries = any(source.role == "summary" for source in request.messages)
        if not (summaries and teller_of(engine) and self.originals):
            return parts
        whole = await in_slices(retold(engine, await self.originals(request)))
        return replace(parts, lines=whole.lines, passed_over=whole.passed_over)

    async def _asked(self, scope: Scope, engine: Engine, request: SummaryRequest) -> SummaryResult:
        """The summarizers' answer, which is measured and reported."""
        began_ms = self.clock_ms()
        with CURRENT.get().span("summarize") as span:
            with under(span):
                result = await self.summarizer.summarize(request)
            span.set("contextengine.summarizer", result.summarizer)
            span.set("contextengine.summary.depth", request.depth)
            span.set("contextengine.summary.source_tokens", request.source_tokens)
            span.set("contextengine.summary.tokens", result.tokens)
            span.set("contextengine.summary.fallback", result.fallback)
        self._report(scope, engine, request, result, self.clock_ms() - began_ms)
        return result

    def _report(
        self,
        scope: Scope,
        engine: Engine,
        request: SummaryRequest,
        result: SummaryResult,
        duration_ms: int,
    ) -> None:
        """Says where a summary is not what was hoped for: somebody else stood in, nobody did, or it
        is in another language."""
        reasons = [_REASONS[cause] for cause in result.causes] + (
            [EXHAUSTED] if result.fallback else []
        )
        for reason in reasons:
            self.meters.degraded[reason].value += 1
            self.events.emit(
                event_name(engine.id, "degraded"),
                *scope,
                counts={
                    "duration_ms": duration_ms,
                    "depth": request.depth,
                    "tokens": result.tokens,
                },
                attributes={"reason": reason, "summarizer": result.summarizer},
            )
        if reasons:
            refused = [f"{name}: {why}" for name, why in result.refused]
            log.warning(
                "degraded",
                session=scope.session,
                reasons=reasons,
                by=result.summarizer,
                refused=refused,
            )
        if not result.fallback and not written_in(result.text, request.language):
            self.events.emit(
                "context:summary_language_mismatch",
                *scope,
                attributes={"expected": request.language, "summarizer": result.summarizer},
            )

    def request(
        self,
        scope: Scope,
        engine: Engine,
        step: CompactionStep,
        entries: Sequence[Entry],
        gain: int,
        steering: Steering,
        *,
        frame: int,
        children: Sequence[Summary] = (),
        asked: Sequence[Entry] = (),
    ) -> Work[SummaryRequest]:
        """What the summarizers are asked; see `write`."""
        sources = [*map(source_summary, children)]
        for some in batches(entries):
            sources += map(source_message, some)
            yield
        handoff = None
        if engine.declared.handoff:
            asks = (words for one in reversed(sources) if (words := _words(one)).strip())
            task = next(asks, "")
            said = tuple(_words(source_message(entry)) for entry in asked)
            handoff = Handoff(self._today(), said, task)
        return SummaryRequest(
            messages=tuple(sorted(sources, key=lambda source: source.sequence)),
            source_tokens=max(1, gain - frame),
            target_tokens=max(1, step.target_tokens - frame),
            focus=steering.focus[:MAX_FOCUS],
            memory_context=steering.memory_context,
            previous_summary=step.previous,
            depth=0 if step.update else max((child.depth + 1 for child in children), default=0),
            language=_language(sources, step.previous),
            tenant=scope.tenant,
            agent=scope.agent,
            session=scope.session,
            policy=self.selection.policy(scope),
            handoff=handoff,
            named=_named(asked) if step.quoted_tokens else (),
            quoted_tokens=step.quoted_tokens,
        )

    def _today(self) -> str:
        """The date alone: a time would make every prompt another."""
        return datetime.fromtimestamp(self.clock_ms() / 1_000, UTC).strftime("%Y-%m-%d")


def _words(source: SourceMessage) -> str:
    """What the user says in a message, without what a harness does. Empty: it is another's."""
    return parted(source.text)[0] if source.role == "user" else ""


def _named(asked: Sequence[Entry]) -> tuple[str, ...]:
    """The files that the user's newest message names: what is done for it is summarized apart."""
    said = (_words(source_message(entry)) for entry in reversed(asked))
    return tuple(file_names([next((words for words in said if words.strip()), "")]))


def _language(sources: Sequence[SourceMessage], previous: str) -> str:
    """The language that the user writes in; of a stretch without the user's words, that of the
    summary before it."""
    said = [
        source.text if source.role == "summary" else _words(source)
        for source in sources
        if source.role in ("user", "summary")
    ]
    return language_of(said or [previous])


def source_message(entry: Entry) -> SourceMessage:
    """A message as a summarizer reads it, which is without private reasoning."""
    message = marked(entry, entry.sequence)
    texts: list[str] = []
    calls: list[SourceCall] = []
    results: list[SourceResult] = []
    for part in said(message):
        kind = part.WhichOneof("kind")
        if kind == "tool_call":
            arguments = part.tool_call.arguments_json.decode("utf-8", "replace")
            calls.append(SourceCall(part.tool_call.call_id, part.tool_call.name, arguments))
        elif kind == "tool_result":
            answer: list[str] = []
            texts_of(part.tool_result.parts, answer)
            result = part.tool_result
            text = "\n".join(filter(None, answer))
            results.append(SourceResult(result.call_id, result.name, text, result.is_error))
        else:
            texts_of((part,), texts)
    return SourceMessage(
        role=_ROLES.get(message.role, "custom"),
        text="\n".join(filter(None, texts)),
        sequence=entry.sequence,
        name=message.custom_role or message.name or (results[-1].name if results else ""),
        time_ms=entry.time_ms,
        calls=tuple(calls),
        results=tuple(results),
    )


def source_summary(child: Summary) -> SourceMessage:
    """A summary of lesser depth as a summarizer reads it."""
    return SourceMessage(
        "summary",
        child.text,
        child.first_sequence,
        time_ms=child.start_ms,
        last=child.last_sequence,
    )


def words_of(entry: Entry) -> Said:
    """What a message says, as an engine reads it. Where what it carries decides, its words are not
    read."""
    known = unread(entry)
    if known.calls or known.results or known.role not in ("user", "assistant"):
        return known
    return replace(known, text=source_message(entry).text, said_on=day_of_ms(entry.time_ms))
