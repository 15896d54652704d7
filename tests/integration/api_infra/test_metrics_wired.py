"""Metrics of every room reach the exporter: it starts when all of them are registered."""

from __future__ import annotations

from pathlib import Path

from contextengine import types as t
from tests.integration.harness import house, ref


async def test_what_sessions_do_is_counted(tmp_path: Path) -> None:
    async with house(tmp_path) as running:
        message = t.Message(
            id="m1", role=t.Role.ROLE_USER, parts=[t.Part(text=t.TextPart(text="hello"))]
        )
        budget = t.Budget(message_tokens=1_000)
        await running.stub.Assemble(
            t.AssembleRequest(session=ref("s"), ingest=[message], budget=budget)
        )
        counted = running.app.metrics.snapshot()
    stored = [
        value for name, value in counted.items() if name.startswith("contextengine.messages.stored")
    ]
    fits = [
        value
        for name, value in counted.items()
        if name.startswith("contextengine.assemblies") and "fits" in name
    ]
    assert stored == [1]
    assert fits == [1]
