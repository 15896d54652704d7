"""What every group of settings is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Group(BaseModel):
    """A group of settings: immutable, closed."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
