"""Settings of retention: which sessions are erased when they are old or many, and how much of the
disk a tenant may take."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, Field

from contextengine_server.config.group import Group
from contextengine_server.config.schema import Duration, Size, Whole
from contextengine_server.config.schema.types import off

_GLOB = "by a glob: `*` stands for anything but a colon, `**` for anything, `?` for one character."


class RetentionRuleSettings(Group):
    """How long and how many sessions are kept of whom. What is not said sets no limit."""

    tenant: str = Field("**", min_length=1, description=f"Whose sessions, {_GLOB}")
    agent: str = Field("**", min_length=1, description=f"Of which agents, {_GLOB}")
    session: str = Field("**", min_length=1, description=f"Which sessions by their ids, {_GLOB}")
    max_age: Duration | None = Field(
        None,
        ge=timedelta(seconds=1),
        description="A session goes when nobody wrote to it for so long.",
    )
    max_sessions: Whole | None = Field(
        None,
        ge=1,
        description="Of each agent so many stay, those that were written to last.",
    )
    max_bytes: Size | None = Field(
        None,
        ge=1024,
        description=(
            "Of each agent so many bytes stay in the store, of the sessions that were written to"
            " last; the newest always does."
        ),
    )
    keep_pinned: bool = Field(
        True, description="A session stays while it shows a message that is labelled `pinned`."
    )


class TenantCap(Group):
    """How much of the disk a tenant's sessions may take."""

    tenant: str = Field("**", min_length=1, description=f"Whose, {_GLOB}")
    max_bytes: Size = Field(
        ge=1024,
        description=(
            "Once the tenant's sessions take more than this, writes are answered"
            " RESOURCE_EXHAUSTED until some are deleted. Counted as `GetStatus` does."
        ),
    )


class RetentionSettings(Group):
    """What is erased by rule, and what tenants may take of the disk. Without rules and caps nothing
    is erased and nothing refused."""

    interval: Annotated[Duration | None, BeforeValidator(off)] = Field(
        None,
        ge=timedelta(seconds=1),
        description=(
            "How often the server erases what the rules let go. Off: only `contextengine prune`"
            " does."
        ),
    )
    dry_run: bool = Field(
        False, description="Say in the log what the rules let go, and erase nothing."
    )
    rules: tuple[RetentionRuleSettings, ...] = Field(
        (),
        description=(
            "Which sessions are kept for how long. The first rule that names a session is its own;"
            " one that no rule names stays."
        ),
    )
    caps: tuple[TenantCap, ...] = Field(
        (),
        description=(
            "What tenants may take of the disk. The first cap that names a tenant is its own."
        ),
    )
