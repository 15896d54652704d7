"""The `legacy` engine: pass-through assembly, compaction delegated to the host or built in."""

from collections.abc import Iterator

from ..registration import Finding, Registration, Surroundings
from .engine import LegacyEngine
from .options import LegacyOptions

__all__ = ["ENGINE", "LegacyEngine", "LegacyOptions"]


def findings(options: LegacyOptions, beside: Surroundings) -> Iterator[Finding]:
    """Whether the one summary leaves room for anything else."""
    if options.summary_max_tokens * 2 > beside.available:
        yield Finding(
            "engine.legacy.summaryMaxTokens",
            f"the summary may take {options.summary_max_tokens:,} of {beside.available:,} tokens",
            "Set it to at most half of what the default window leaves for messages.",
        )


ENGINE = Registration("legacy", LegacyOptions, LegacyEngine, findings=findings)
