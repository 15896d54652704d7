"""Settings of what tenants may hold at once."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from contextengine_server.config.group import Group
from contextengine_server.config.schema import Ratio, Whole
from contextengine_server.fairness.quota import MOST, WEIGHTS

Share = Annotated[Ratio, Field(ge=WEIGHTS[0], le=WEIGHTS[1])]


def _held(what: str, kind: str = "at once") -> Any:
    return Field(None, ge=1, le=MOST, description=f"{what} {kind}. Without: the server's limit.")


class TenantQuotaSettings(Group):
    """What a tenant may hold at once, and what it weighs where tenants share."""

    tenant: str = Field(
        min_length=1,
        description=(
            "Whose, by a glob: `*` stands for anything but a colon, `**` for anything, `?` for one"
            " character."
        ),
    )
    weight: Share | None = Field(
        None,
        description=(
            "Its share beside others: a tenant of weight 2 comes twice as often as one of 1, which"
            " is what tenants weigh."
        ),
    )
    calls: Whole | None = _held("Calls, those that wait for their turn included,")
    long_calls: Whole | None = _held("Calls of Compact, Import and Export")
    streams: Whole | None = _held("Streams of Watch and Attach")
    waits: Whole | None = _held("Reads that wait for `at_least_revision`")
