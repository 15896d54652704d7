"""The shipped engines pass the suite that everyone's do."""

from __future__ import annotations

from pathlib import Path

from contextengine_server.engines import dag, legacy
from contextengine_server.testing.engine import EngineSuite, RealSessionCases

DATA = Path(__file__).parent.parent / "data"
FILES = (DATA / "airline_transcripts.jsonl", DATA / "coding_session.pi.jsonl")


class TestDag(EngineSuite):
    registration = dag.ENGINE
    variants = (
        {},
        {"fresh_tail_turns": 1},
        {"fresh_tail_turns": 3, "leaf_chunk_tokens": 1_000, "leaf_target_tokens": 120},
        {"fresh_tail_turns": 50, "condensed_min_fanout": 2},
    )


class TestLegacy(EngineSuite):
    registration = legacy.ENGINE
    variants = ({}, {"keep_recent_tokens": 1_000})


class TestDagOverManySessions(RealSessionCases):
    registration = dag.ENGINE
    files = FILES


class TestLegacyOverManySessions(RealSessionCases):
    registration = legacy.ENGINE
    files = FILES
