"""docs/dag.md names every option, tool and event of the two systems that the dag engine stands for,
and every option of ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from contextengine_server.config.policy import FORMER, PolicySettings
from contextengine_server.config.schema import describe
from contextengine_server.engines.dag import DagOptions
from contextengine_server.recall.model_tools.definitions import TOOLS

TEXT = (Path(__file__).parents[3] / "docs" / "dag.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([^`]+)`", TEXT))

COMIS = """
    enabled version contextThreshold freshTailTurns leafChunkTokens leafTargetTokens
    condensedMinFanout condensedMinFanoutHard
    condensedTargetTokens deferCompaction compactionModel compaction.summarizerFallbackProviders
    summarizerSpend.maxTokensPerTenantPerHour summarizerSpend.maxTokensPerTenantPerDay
    summarizerBreaker.failureThreshold
    summarizerBreaker.resetTimeoutMs summarizerBreaker.halfOpenTimeoutMs leafMinFanout
    incrementalMaxDepth maxExpandTokens
    maxRecallsPerDay recallTimeoutMs largeFileTokenThreshold annotationKeepWindow
    annotationTriggerChars summaryModel
    summaryProvider budget.effectiveContextCapSmall budget.effectiveContextCapNano
    budget.minVisibleOutputTokens
    compaction.preferEvictionByCapability compaction.strongerSummarizerModel compactPrompt.enabled
    compactPrompt.targetTokens
    memory.distillFromLcd relevance.firstByDefault postBatchContinuation ctx_search ctx_inspect
    ctx_expand ctx_recall
    context:dag_compacted context:dag_expanded context:dag_degraded context:integrity
    context:budget_computed context:evicted
    context:summary_language_mismatch context:thinking_downshifted context:mode_switched
    context:script_zero_hit
    breaker_open spend_cap fail_closed_rollover serialized_wait live_store_divergence
    leaf_window_divergence
    condense_window_divergence session_rebase assembly_coverage_shortfall
""".split()  # noqa: SIM905
LOSSLESS_CLAW = """
    enabled databasePath largeFilesDir hostFallbackMode ignoreSessionPatterns
    statelessSessionPatterns skipStatelessSessions
    contextThreshold contextThresholdOverrides freshTailCount freshTailMaxTokens
    promptAwareEviction stubLargeToolPayloads
    newSessionRetainDepth leafMinFanout condensedMinFanout condensedMinFanoutHard sweepMaxDepth
    leafChunkTokens leafTargetTokens
    condensedTargetTokens summaryPrefixTargetTokens summaryMaxOverageFactor fallbackMaxTokens
    maxSweepIterations sweepDeadlineMs
    compactUntilUnderDeadlineMs proactiveThresholdCompactionMode bootstrapMaxTokens
    maxAssemblyTokenBudget maxExpandTokens
    largeFileThresholdTokens summaryModel summaryProvider largeFileSummaryModel
    largeFileSummaryProvider expansionModel
    expansionProvider fallbackProviders delegationTimeoutMs summaryTimeoutMs summaryCallWindowMs
    summaryMaxCallsPerWindow
    summarySpendBackoffMs circuitBreakerThreshold circuitBreakerCooldownMs
    replayFloodThresholdExternal
    replayFloodThresholdInternal customInstructions enableSummaryThinking stripInjectedContextTags
    timezone pruneHeartbeatOk
    transcriptGcEnabled autoRotateSessionFiles independentLogFile cacheAwareCompaction
    dynamicLeafChunkTokens lcm_grep lcm_describe
    lcm_expand lcm_expand_query
""".split()  # noqa: SIM905


@pytest.mark.parametrize(
    "names", [COMIS, LOSSLESS_CLAW, list(TOOLS)], ids=["comis", "lossless-claw", "tools"]
)
def test_nothing_is_passed_over(names: list[str]) -> None:
    assert [name for name in names if name not in NAMED] == []


def test_every_option_of_ours_is_named() -> None:
    fields = DagOptions.model_fields
    for name, field in fields.items():
        inner = getattr(field.annotation, "model_fields", {})
        for path in [f"{field.alias}.{one.alias}" for one in inner.values()] or [str(field.alias)]:
            assert path in NAMED, name


def test_what_is_the_same_has_the_same_default_and_range() -> None:
    """The row of an option says its default, then its limits: those of our options."""
    policy = {doc.path: doc for doc in describe(PolicySettings)}
    ours = {doc.path: doc for doc in describe(DagOptions)} | {
        former: policy[path] for former, path in FORMER.items()
    }
    rows = re.findall(r"^\| `([\w.]+)` \| ([^|]+) \| the same", TEXT, re.MULTILINE)
    assert len(rows) >= 10
    for name, said in rows:
        option = ours[name]
        default = {"empty": ('""', "[]"), "true": ("true",)}.get(said, ())
        if default:
            assert option.default in default, name
            continue
        numbers = [
            number.replace(",", "")
            for number in re.findall(r"\d[\d,]*(?:\.\d+)?", said.replace(", ", "; "))
        ]
        limits = (
            [option.minimum, option.maximum]
            if " to " in said
            else ["0"]
            if "0 is off" in said
            else []
        )
        assert numbers == [option.default, *limits], name
        assert "0 is off" not in said or option.minimum == "0", name


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (Path(__file__).parents[3] / "docs" / target).exists(), target


def test_no_line_outgrows_its_reader() -> None:
    """Rows of tables are lines of their own length; prose is not."""
    long = [line for line in TEXT.splitlines() if len(line) > 134 and not line.startswith("|")]
    assert long == []
