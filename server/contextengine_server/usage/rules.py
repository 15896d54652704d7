"""What is done about the usage of model calls, from the settings."""

from __future__ import annotations

import msgspec

from .caps import Caps
from .deferral import DeferralRules
from .retention import RetentionRules


class UsageRules(msgspec.Struct, frozen=True):
    """What is done about the usage of model calls."""

    rates: str = ""
    """The file of the catalogue of rates; empty: ours."""
    caps: Caps = Caps()
    guarded: tuple[str, ...] = ()
    """The engines whose sessions the caps hold for; `*`: every one."""
    deferral: DeferralRules = DeferralRules()
    retention: RetentionRules = RetentionRules()
    escalated_output: int = 0
    """The output that is suggested after a compaction or a stop for length; 0: none is."""
