"""Real sessions at several budgets in every form: the rules find nothing.

A sample; with CONTEXTENGINE_ALL_PROJECTIONS=1 every session at thirty budgets (two minutes).
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from contextengine import assistant, user
from contextengine import types as t
from contextengine.errors import ProjectionImpossible
from contextengine.formats import read_transcript
from tests.integration.harness import House, budget, ref
from tests.integration.projection.asking import TARGETS, judged, project

DATA = Path("tests/data")
ALL = bool(os.environ.get("CONTEXTENGINE_ALL_PROJECTIONS"))
BUDGETS: Sequence[int] = (
    [round(400 * 1.27**step) for step in range(30)] if ALL else [1_000, 6_000, 40_000]
)
WAYS: dict[str, list[dict[str, Any]]] = {
    "codex": [
        {},
        {"inject_items": True},
        {"renderer": "openclaw"},
        {"renderer": "openclaw", "mode": t.PROJECTION_MODE_THREAD_BOOTSTRAP},
    ]
}
MODELS = {"gemini": "gemini-3-pro", "anthropic": "claude-opus-4-8"}


def airline() -> Iterator[list[t.Message]]:
    return (
        transcript.messages for transcript in read_transcript(DATA / "airline_transcripts.jsonl")
    )


def coding() -> Iterator[list[t.Message]]:
    return (transcript.messages for transcript in read_transcript(DATA / "coding_session.pi.jsonl"))


def memory() -> Iterator[list[t.Message]]:
    """Sessions of one user's messages each, with a short answer to every one."""
    for file in sorted((DATA / "bfcl_memory").glob("memory_*.json")):
        for line in file.read_text(encoding="utf-8").splitlines():
            asked = [entry["content"] for turn in json.loads(line)["question"] for entry in turn]
            yield [message for text in asked for message in (user(text), assistant("Noted."))]


SOURCES = {"airline": airline, "coding": coding, "memory": memory}


@pytest.mark.parametrize("source", SOURCES)
async def test_every_rule_holds(house: House, source: str) -> None:
    judgements, refused = 0, Counter[tuple[str, int]]()
    for number, messages in enumerate(islice(SOURCES[source](), None if ALL else 3)):
        session = ref(f"s{number}")
        await house.client.ingest_batch(session, messages)
        for size in BUDGETS:
            for target in TARGETS:
                model = MODELS.get(target, "")
                for way in WAYS.get(target, [{}]):
                    try:
                        reply = await project(
                            house, session, target, budget=budget(size), model=model, **way
                        )
                    except ProjectionImpossible:
                        refused[target, size] += 1
                        continue
                    assert judged(reply, target, model) == [], (source, number, size, target, way)
                    judgements += 1
    assert judgements > 8 * len(BUDGETS) * 0.8
    # Codex takes no context that had to be cut within what may not be cut: budgets below a
    # session's own instructions.
    assert all(target == "codex" and size < 3_000 for target, size in refused), refused
