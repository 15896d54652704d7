"""The shipped engines pass the suite that everyone's do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from msgspec.structs import replace

from contextengine_server.engines import compressor, dag, layered, legacy, pipeline
from contextengine_server.engines.pruned import PrunedEngine, PruningRules
from contextengine_server.engines.registration import Registration
from contextengine_server.testing.engine import EngineSuite, RealSessionCases
from contextengine_server.testing.engine.laws import LawCases
from contextengine_server.testing.oracle.pairs import ViewRow
from tests.integration.replay.playing import EVERYTHING

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
    variants = (
        {},
        {"keep_recent_tokens": 1_000},
        {"history_limit": 2, "hide_heartbeats": True},
    )


class TestPipeline(EngineSuite):
    registration = pipeline.ENGINE
    variants = (
        {},
        {"history_turns": 3, "compaction_prefix_anchor_turns": 0, "eviction_min_age": 3},
        {
            "observation_trigger_chars": 50_000,
            "observation_deactivation_chars": 45_000,
            "observation_keep_window": 1,
            "ephemeral_keep_window": 1,
        },
    )


def _pruned(registration: Registration) -> Registration:
    """The engine under session pruning that leaves little as it is."""
    rules = PruningRules(
        on=True, ttl_ms=60_000, keep_last_assistants=1, soft_trim_ratio=0.05,
        hard_clear_ratio=0.2, min_prunable_chars=500, max_chars=100, head_chars=30, tail_chars=30,
        picture_turns=2,
    )  # fmt: skip
    return replace(registration, make=lambda o: PrunedEngine(registration.make(o), rules))


class TestPrunedDag(LawCases, RealSessionCases):
    registration = _pruned(dag.ENGINE)
    variants = ({"fresh_tail_turns": 1},)


class TestPrunedLegacy(LawCases, RealSessionCases):
    registration = _pruned(legacy.ENGINE)


class TestPrunedPipeline(LawCases, RealSessionCases):
    registration = _pruned(pipeline.ENGINE)
    variants = (TestPipeline.variants[2],)


class TestCompressor(EngineSuite):
    registration = compressor.ENGINE
    variants = (
        {},
        {"tail_mode": "legacy", "protect_first_n": 0, "protect_last_n": 0},
        {"threshold": 0.95, "threshold_tokens": 1_500, "min_tail_user_messages": 3},
    )


class TestPrunedCompressor(LawCases, RealSessionCases):
    registration = _pruned(compressor.ENGINE)
    variants = (TestCompressor.variants[2],)


class TestLayered(EngineSuite):
    registration = layered.ENGINE
    variants = (
        {},
        {"compaction": {"strategy": "linear"}},
        {"compaction": {"strategy": "hybrid", "max_tokens": 3_000, "reserve_ratio": 0.6}},
        {"layers": {"important": {"strategy": "keep"}, "transient": {"strategy": "summarize"}}},
    )


class TestPrunedLayered(LawCases, RealSessionCases):
    registration = _pruned(layered.ENGINE)
    variants = (TestLayered.variants[2],)


class ManySessions(RealSessionCases):
    """Every third session, the longest among them; each engine begins with another. The soak takes
    all."""

    files = FILES
    begins: ClassVar[int]

    def sessions(self) -> Iterator[tuple[str, list[ViewRow]]]:
        *short, longest = super().sessions()
        yield from short if EVERYTHING else short[self.begins :: 3]
        yield longest


class TestDagOverManySessions(ManySessions):
    registration = dag.ENGINE
    begins = 0


class TestLegacyOverManySessions(ManySessions):
    registration = legacy.ENGINE
    begins = 1


class TestPipelineOverManySessions(ManySessions):
    registration = pipeline.ENGINE
    begins = 2


class TestCompressorOverManySessions(ManySessions):
    registration = compressor.ENGINE
    begins = 0


class TestLayeredOverManySessions(ManySessions):
    registration = layered.ENGINE
    begins = 1
