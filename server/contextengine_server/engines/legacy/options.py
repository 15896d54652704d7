"""Options of legacy's built-in compaction."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from contextengine_server.config.schema import Whole

from ..options import Options

Turns = Annotated[Whole, Field(ge=0, le=10_000)]


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
    hide_heartbeats: bool = Field(
        False,
        description=(
            "Turns that are a heartbeat and its acknowledgement, HEARTBEAT_OK, and nothing else are"
            " not shown once the user goes on."
        ),
    )
    history_limit: Whole = Field(
        0,
        ge=0,
        le=10_000,
        description=(
            "How many of the newest turns are shown; 0: all. Nothing is left out up to one and a"
            " half times that, and then as many turns at a time, so that the beginning stays put"
            " between. Summaries and what comes before the first turn stay."
        ),
    )
    history_limit_overrides: dict[Annotated[str, Field(min_length=1, max_length=256)], Turns] = (
        Field(
            default={},
            description="The same for sessions on channels of a kind, by `channel_type`: {dm: 20}.",
        )
    )
