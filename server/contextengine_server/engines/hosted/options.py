"""The options of every hosted engine, beside those that its plugin declares."""

from __future__ import annotations

from pydantic import Field

from contextengine_server.config.schema import Ratio, Whole

from ..options import Options


class HostedOptions(Options):
    """Options of a hosted engine."""

    threshold: Ratio = Field(
        0.0,
        ge=0,
        le=1,
        description="The share of the budget at which it is asked to compact. 0: as it says.",
    )
    timeout_seconds: float = Field(
        120.0,
        gt=0,
        le=3600,
        description="How long it may take to compact. What it answers later is not taken.",
    )
    live_sessions: Whole = Field(
        64,
        ge=1,
        le=1024,
        description="Sessions that it is kept in memory for, each with a thread of its own.",
    )
