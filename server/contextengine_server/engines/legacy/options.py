"""Options of legacy's built-in compaction."""

from __future__ import annotations

from pydantic import Field

from contextengine_server.config.schema import Whole

from ..options import Options


class LegacyOptions(Options):
    """Options of the legacy engine's built-in compaction, which runs where the harness does not
    compact itself.

    Defaults are those of the runtime whose compaction this stands for: 20,000 tokens kept, a
    summary of at most 16,000 characters.
    """

    keep_recent_tokens: Whole = Field(
        20_000,
        ge=1_000,
        le=1_000_000,
        description="The newest tokens that stay verbatim; never more than half of the budget.",
    )
    summary_max_tokens: Whole = Field(
        4_000, ge=96, le=16_000, description="The target size of the one summary."
    )
