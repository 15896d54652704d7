"""A server with an endpoint in its settings: its summaries are the model's, and what the model
reads is harmless."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contextengine import types as t

from ..harness import House, budget, house, ref, texts
from .provider import GOOD, Provider, answer, error, provider

SECRET = "hunter2hunter2"
FOCUS = "dwell on what was decided about the billing tables"


def served(made: Provider, **more: Any) -> dict[str, Any]:
    endpoint = {
        "name": "local",
        "base_url": made.base_url,
        "model": "small",
        "retries": 0,
        "timeout": 60,
    }
    return {"summarizer.endpoints": [endpoint], "engine.dag.freshTailTurns": 1, **more}


async def talk(at: House) -> t.SessionRef:
    session = ref()
    said = [
        t.Message(
            id=f"m{n}",
            role=t.ROLE_ASSISTANT if n % 2 else t.ROLE_USER,
            parts=[
                t.Part(
                    text=t.TextPart(
                        text=f"Step {n}: DB_PASSWORD={SECRET}. " + "The build went on. " * 60
                    )
                )
            ],
        )
        for n in range(8)
    ]
    await at.client.ingest_batch(session=session, messages=said)
    return session


async def compacted(at: House, session: t.SessionRef) -> t.CompactResponse:
    return await at.client.compact(session=session, budget=budget(2_000), force=True, focus=FOCUS)


async def test_a_compaction_is_written_by_the_model(tmp_path: Path) -> None:
    async with provider(answer()) as made, house(tmp_path, **served(made)) as at:
        session = await talk(at)
        assert (await compacted(at, session)).summaries
        summaries = (await at.export(session)).summaries
        assert summaries
        assert {summary.info.summarizer for summary in summaries} == {"local:small"}
        shown = texts((await at.client.assemble(session=session, budget=budget(4_000))).items)
        assert any(GOOD in text for text in shown)
        assert not any(FOCUS in text for text in shown)
        for request in made.requests:
            assert SECRET.encode() not in request.raw
            assert "[redacted]" in request.user
            assert FOCUS in request.user
            assert FOCUS not in request.system
        # What is stored is what came in.
        assert SECRET in texts(await at.rows(session))[0]


@pytest.mark.parametrize("status", [401, 500])
async def test_without_the_model_summaries_are_extracted(tmp_path: Path, status: int) -> None:
    async with provider(error(status)) as made, house(tmp_path, **served(made)) as at:
        session = await talk(at)
        assert (await compacted(at, session)).summaries
        summaries = (await at.export(session)).summaries
        assert {summary.info.summarizer for summary in summaries} == {"extractive"}
        assert made.requests


async def test_over_the_cap_the_model_is_not_asked(tmp_path: Path) -> None:
    cap = {"engine.dag.summarizerSpend.maxTokensPerTenantPerHour": 1}
    async with provider(answer()) as made, house(tmp_path, **served(made, **cap)) as at:
        session = await talk(at)
        assert (await compacted(at, session)).summaries
        assert made.requests == []
