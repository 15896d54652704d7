"""Sessions that are not kept as others are (docs/semantics.md#sessions-kept-apart)."""

from __future__ import annotations

from enum import StrEnum


class Treatment(StrEnum):
    """How a session is treated."""

    KEPT = ""
    IGNORED = "ignored"
    """Nothing of it is stored or read."""
    STATELESS = "stateless"
    """It is read and never written."""
