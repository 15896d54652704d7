"""Hermes' look back at a conversation in the background."""

from __future__ import annotations

REVIEW = "background_review"
"""Where it looks back in a copy of the conversation, under the same session id: none of it is said
in the conversation, and its end is not that of the conversation."""


def reviews() -> bool:
    """Whether this thread is one that looks back."""
    try:
        from tools.skill_provenance import get_current_write_origin
    except ImportError:
        return False
    return bool(get_current_write_origin() == REVIEW)
