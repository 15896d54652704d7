"""What the options of every engine are.

In a file both the published name (`freshTailTurns`) and the Python name (`fresh_tail_turns`) are
understood.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Options(BaseModel):
    """Options of one engine: immutable, closed, published in camel case. Each has a default."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        allow_inf_nan=False,
    )
