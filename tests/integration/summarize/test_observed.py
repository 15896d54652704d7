"""What operators see of summaries: spans and metrics of calls to models, and an event where a
summary is not what was hoped for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from contextengine import types as t
from contextengine.messages import user
from contextengine_server.telemetry.tracing import Span, Tracer

from ..harness import House, budget
from .lending import SECRET, attached, compacting, talk, until, written_by
from .provider import GOOD, Reply, answer, error
from .services import Served, served

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOWN = error(503)
TURN = "contextengine.v1.ContextEngine/AfterTurn"
COMPACT = "contextengine.v1.ContextEngine/Compact"
SPANS: list[Span] = []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "contextengine_server.app._tracer", lambda settings, stack: Tracer(1.0, SPANS.append)
        )
        async with served(tmp_path_factory.mktemp("shared"), "first", "second") as made:
            yield made


@pytest_asyncio.fixture(loop_scope="module")
async def on(shared: Served) -> Served:
    shared.replying()
    shared.clock.advance(86_400)
    SPANS.clear()
    return shared


def spans(name: str) -> list[Span]:
    return [span for span in SPANS if span.name == name]


def chain(span: Span) -> list[str]:
    """The names from a span up to its root."""
    known = {other.span_id: other for other in SPANS}
    names = []
    above: Span | None = span
    while above is not None:
        names.append(above.name)
        above = known.get(above.parent_id)
    return names


def counted(house: House, name: str) -> dict[str, float]:
    return {
        key: value for key, value in house.app.metrics.snapshot().items() if key.startswith(name)
    }


async def test_a_call_to_a_model_is_a_span_of_the_call_that_waits_for_it(on: Served) -> None:
    session = await on.compacted(await talk(on.at))
    (call,) = spans("chat first-small")
    assert chain(call) == ["chat first-small", "summarize", "compact", COMPACT]
    assert call.kind == "client"
    assert not call.error
    port = on.services["first"].port
    assert call.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "first",
        "gen_ai.request.model": "first-small",
        "gen_ai.request.max_tokens": call.attributes["gen_ai.request.max_tokens"],
        "gen_ai.response.model": "small-1",
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 700,
        "gen_ai.usage.output_tokens": 20,
        "server.address": "127.0.0.1",
        "server.port": port,
    }
    (made,) = spans("summarize")
    assert made.attributes["contextengine.summarizer"] == "first:first-small"
    assert made.attributes["contextengine.summary.fallback"] is False
    seen = str([span.attributes for span in SPANS])
    assert SECRET not in seen
    assert GOOD not in seen
    assert "build went on" not in seen
    assert await written_by(on.at, session) == ["first:first-small"]


async def test_a_call_that_fails_says_how(on: Served) -> None:
    on.replying(first=error(429), second=error(400, "x", "context_length_exceeded"))
    await on.compacted(await talk(on.at))
    (limited,) = spans("chat first-small")
    assert (limited.error, limited.attributes["error.type"]) == (True, "RateLimitError")
    assert "gen_ai.usage.input_tokens" not in limited.attributes
    assert [span.attributes["error.type"] for span in spans("chat second-small")] == [
        "BadRequestError"
    ] * 2


async def test_calls_are_measured(on: Served) -> None:
    model = "gen_ai.operation.name=chat,gen_ai.provider.name=first,gen_ai.request.model=first-small"
    took = f"gen_ai.client.operation.duration{{{model}}}.count"
    failed = f"gen_ai.client.operation.duration{{error.type=InternalServerError,{model}}}.count"
    given = f"gen_ai.client.token.usage{{{model},gen_ai.token.type=input}}.sum"
    taken = f"gen_ai.client.token.usage{{{model},gen_ai.token.type=output}}.sum"
    before = counted(on.at, "gen_ai")
    assert took in before, "exported from the start"
    await on.compacted(await talk(on.at))
    on.replying(first=DOWN)
    await on.compacted(await talk(on.at))
    after = counted(on.at, "gen_ai")
    grown = [after[name] - before.get(name, 0) for name in (took, failed, given, taken)]
    assert grown == [1, 1, 700, 20]


async def test_background_work_is_a_trace_of_its_own_linked_to_its_cause(on: Served) -> None:
    session = await talk(on.at)
    await on.assign(session, contextThreshold=0.1)
    SPANS.clear()
    await on.at.client.after_turn(session, [user("And now?")], budget=budget(4_000))
    await until(lambda: bool(spans("chat first-small") and spans("compact") and spans(TURN)))
    call = spans("chat first-small")[0]
    assert chain(call) == ["chat first-small", "summarize", "compact"]
    (turn,) = spans(TURN)
    root = next(span for span in spans("compact") if span.trace_id == call.trace_id)
    assert root.link is not None
    assert (root.link.trace_id, root.link.span_id) == (turn.trace_id, turn.span_id)


async def test_a_lent_model_is_seen_as_such(on: Served) -> None:
    session = await talk(on.at)
    async with attached(on.at) as harness, compacting(on.at, session):
        await harness.does(await harness.job(), model="claude-x", stop_reason="end_turn")
    (call,) = spans("chat")
    assert call.attributes["gen_ai.provider.name"] == "runtime"
    assert call.attributes["gen_ai.response.model"] == "claude-x"
    assert call.attributes["gen_ai.response.finish_reasons"] == ("end_turn",)
    assert "gen_ai.request.model" not in call.attributes


@asynccontextmanager
async def seen(on: Served, session: t.SessionRef) -> AsyncIterator[list[t.WatchResponse]]:
    """The events of a session within, but for the ordinary ones."""
    found: list[t.WatchResponse] = []
    on.clock.advance(1)  # what happened before is of another moment, whenever others hear of it
    stream = on.at.client.sessions.watch(agent_id=session.agent_id, session_id=session.session_id)
    async with stream:
        await stream._call.initial_metadata()
        yield found
        await on.at.client.reset_session(session)
        async for event in stream:
            if event.name == "session:reset":
                break
            if event.name != "context:dag_compacted":
                found.append(event)


def reasons(events: list[t.WatchResponse]) -> list[tuple[str, str]]:
    assert {event.name for event in events} <= {"context:dag_degraded"}
    return [(event.attributes["reason"], event.attributes["summarizer"]) for event in events]


def degraded(on: Served, reason: str) -> float:
    return counted(on.at, "contextengine.summaries.degraded")[
        f"contextengine.summaries.degraded{{reason={reason}}}"
    ]


async def test_a_good_summary_is_no_event(on: Served) -> None:
    session = await talk(on.at)
    async with seen(on, session) as events:
        await on.compacted(session)
    assert events == []


async def test_who_stands_in_is_told(on: Served) -> None:
    on.replying(first=DOWN)
    session, before = await talk(on.at), degraded(on, "summarizer_fallback")
    async with seen(on, session) as events:
        await on.compacted(session)
    assert reasons(events) == [("summarizer_fallback", "second:second-small")]
    assert events[0].counts["depth"] == 0
    assert "duration_ms" in events[0].counts
    assert degraded(on, "summarizer_fallback") == before + 1
    assert (await on.guards(session)).breaker_failures == 0


async def test_an_exhausted_chain_of_models_is_one_failure(on: Served) -> None:
    on.replying(first=DOWN, second=DOWN)
    session = await talk(on.at)
    async with seen(on, session) as events:
        await on.compacted(session)
    assert reasons(events) == [("summarizer_fallback", "extractive")]
    assert (await on.guards(session)).breaker_failures == 1


async def test_an_open_breaker_and_a_cap_are_told(on: Served) -> None:
    on.replying(first=DOWN, second=DOWN)
    hasty, capped = await talk(on.at), await talk(on.at)
    await on.assign(hasty, summarizerBreaker={"failureThreshold": 1})
    await on.assign(capped, summarizerSpend={"maxTokensPerTenantPerDay": 1})
    await on.compacted(await talk(on.at))
    async with seen(on, capped) as events:
        await on.compacted(capped)
    assert reasons(events) == [("spend_cap", "extractive")]
    await on.compacted(hasty)
    other = await talk(on.at)
    async with seen(on, other) as events:
        await on.compacted(other)
    assert reasons(events) == [("breaker_open", "extractive")]


NOTES = {
    "a model that fails": (DOWN, {}, ["summarizer_fallback", "summarizers_exhausted"]),
    "half a million characters": (
        answer("x" * 500_000),
        {},
        ["summarizer_fallback", "summarizers_exhausted"],
    ),
    "a tenant over its cap": (
        answer(),
        {"engine.dag.summarizerSpend.maxTokensPerTenantPerDay": 1},
        ["spend_cap", "summarizers_exhausted"],
    ),
}


@pytest.mark.parametrize(("reply", "settings", "told"), NOTES.values(), ids=NOTES.keys())
async def test_the_note_that_counts_always_fits_and_is_told(
    tmp_path: Path, reply: Reply, settings: dict[str, Any], told: list[str]
) -> None:
    models_alone: dict[str, Any] = {"summarizer.order": ["endpoints"], **settings}
    async with served(tmp_path, "first", **models_alone) as on:
        on.replying(first=reply)
        session = await talk(on.at)
        async with seen(on, session) as events:
            await on.compacted(session)
            (summary,) = (await on.at.export(session)).summaries
        assert reasons(events) == [(reason, "count-only") for reason in told]
        assert (summary.info.summarizer, summary.info.fallback) == ("count-only", True)
        assert summary.info.tokens < min(512, summary.info.source_tokens)
        assert bool(on.asked()) == ("spend_cap" not in told)


async def test_a_summary_in_another_language_is_told(on: Served) -> None:
    session = await talk(on.at, text="ビルドが失敗しました。設定を直してください。")
    async with seen(on, session) as events:
        await on.compacted(session)
    (asked,) = on.services["first"].requests
    assert "the language with the tag ja" in asked.system
    (told,) = events
    assert told.name == "context:summary_language_mismatch"
    assert dict(told.attributes) == {"expected": "ja", "summarizer": "first:first-small"}
    on.replying(first=answer("ビルドは --quick で直った。"))
    again = await talk(on.at, text="ビルドが失敗しました。設定を直してください。")
    async with seen(on, again) as events:
        await on.compacted(again)
    assert events == []


async def test_the_language_is_that_of_the_user_whatever_a_harness_says(on: Served) -> None:
    notice = "Go on with what is open, and say nothing of this. " * 20
    words = "ビルドが失敗しました。設定を直してください。"
    session = await talk(on.at, text=f"{words}\n<system-reminder>\n{notice}\n</system-reminder>")
    await on.compacted(session)
    (asked, *_) = on.services["first"].requests
    assert "the language with the tag ja" in asked.system
