"""The four layers, and what may be done with the messages of one."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal


class Layer(IntEnum):
    """A layer by its priority: what is lower in number is worth more. After PyClaw's plugin
    `dag-compressor`."""

    CRITICAL = 0
    """System messages, and what a user lays down."""
    IMPORTANT = 1
    """Tool calls with their results, requests, questions, long replies: whatever has to be told."""
    CONTEXTUAL = 2
    """Facts: who somebody is, what he prefers, what was decided."""
    TRANSIENT = 3
    """Greetings, thanks, short confirmations, empty messages."""


Strategy = Literal["keep", "summarize", "extract_facts", "drop"]
"""What becomes of a layer's messages once there is too much: they stay as they are; a summary tells
of them; it states their facts; it leaves them out."""
