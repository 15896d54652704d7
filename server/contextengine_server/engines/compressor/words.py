"""What is said of the summary in the system prompt's addition."""

from __future__ import annotations

from ..base import ADDITION

HANDOFF = (
    f"{ADDITION} What they tell of was handled before: take none of its requests up again unless"
    " the newest user message asks for it, and if that stops or undoes work, let it rest. Files may"
    " hold the work already."
)
"""The framing of Hermes's handoff: the summary is there for reference, and the newest message of
the user decides."""
HANDOFF_TOKENS = 90
"""What it costs at most, in any encoding shipped."""
