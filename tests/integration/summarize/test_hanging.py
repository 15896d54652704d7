"""A model that never answers: background compaction still ends, by who is asked last."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from contextengine_server.compaction import jobs

from ..harness import budget, house
from .provider import Request, provider
from .test_served import served, talk


async def hang(request: Request, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def test_a_job_waits_until_the_last_in_the_order_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline of a job is never shorter than a summary may take."""
    monkeypatch.setattr(jobs, "DEADLINE_S", 0.5)
    async with provider(hang) as made:
        options = served(made)
        options["summarizer.endpoints"][0] |= {"timeout": 1, "retries": 1}
        async with house(tmp_path, **options) as at:
            session = await talk(at)
            await at.client.assemble(session=session, budget=budget(1_200))
            async with asyncio.timeout(60):
                while not (status := await at.client.get_status(session=session)).generation:
                    await asyncio.sleep(0.1)
            assert status.summarizers.breaker_failures
            assert {s.info.summarizer for s in (await at.export(session)).summaries} == {
                "extractive"
            }
    assert made.requests
