"""Settings of children."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from contextengine_server.config.group import Group
from contextengine_server.config.schema import Duration, Whole


class SubagentSettings(Group):
    """Children that inherit context: how many, how deep, for how long, and how much of their parent
    they see."""

    max_depth: Whole = Field(
        5,
        ge=0,
        le=100,
        description=(
            "How deep children may spawn children: 1 allows children of sessions that are none. 0:"
            " no children."
        ),
    )
    max_children: Whole = Field(32, ge=1, le=100_000, description="Live children of one parent.")
    ttl: Duration = Field(
        timedelta(days=1),
        ge=timedelta(seconds=1),
        le=timedelta(days=365),
        description=(
            "How long a prepared child is waited for, and a started one without a write, where the"
            " host does not say."
        ),
    )
    max_fork_tokens: Whole = Field(
        100_000, ge=0, description="A fork of a parent whose view has more tokens starts isolated."
    )
    grant_tokens: Whole = Field(
        4_000,
        ge=1,
        description=(
            "How many tokens of its parent a child may recall where the grant does not say."
        ),
    )
    grant_depth: Whole = Field(
        3,
        ge=1,
        le=10,
        description=(
            "How many levels of summaries it may open at once where the grant does not say."
        ),
    )
