"""docs/pipeline.md names every option and event of Comis that the pipeline stands for, and the
options of ours have Comis's defaults and ranges."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from contextengine_server.config.schema import describe
from contextengine_server.engines.pipeline import PipelineOptions

TEXT = (Path(__file__).parents[3] / "docs" / "pipeline.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([^`]+)`", TEXT))

OPTIONS = {
    "evictionMinAge": (15, 3, 50),
    "historyTurns": (15, 3, 100),
    "observationKeepWindow": (25, 1, 50),
    "observationTriggerChars": (120_000, 50_000, 1_000_000),
    "observationDeactivationChars": (80_000, 20_000, 500_000),
    "ephemeralKeepWindow": (10, 1, 50),
    "compactionCooldownTurns": (5, 1, 50),
    "compactionPrefixAnchorTurns": (2, 0, 10),
}
"""The defaults and ranges of the Comis configuration."""
OTHERS = """
    enabled version historyTurnOverrides compactionModel thinkingKeepTurns replayDriftIdleMs
    outputEscalation.enabled outputEscalation.escalatedMaxTokens adaptiveCacheRetention
    cacheRetention contextThreshold freshTailTurns deferCompaction summarizerSpend summarizerBreaker
    context:pipeline context:masked context:evicted context:compacted context:overflow
    context:reread context:rehydrated
"""


@pytest.mark.parametrize("name", [*OPTIONS, *OTHERS.split()])
def test_the_page_names(name: str) -> None:
    assert name in NAMED


@pytest.mark.parametrize("name", OPTIONS)
def test_defaults_and_ranges_are_those_of_comis(name: str) -> None:
    default, least, most = OPTIONS[name]
    assert PipelineOptions().model_dump(by_alias=True)[name] == default
    for value in (least, most):
        assert (
            PipelineOptions.model_validate({name: value}).model_dump(by_alias=True)[name] == value
        )
    for value in (least - 1, most + 1):
        with pytest.raises(ValueError, match=name):
            PipelineOptions.model_validate({name: value})


def test_every_option_of_ours_is_named() -> None:
    assert {doc.path for doc in describe(PipelineOptions)} <= NAMED
