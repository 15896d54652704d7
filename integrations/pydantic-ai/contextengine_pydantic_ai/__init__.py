"""contextengine for Pydantic AI."""

from .capability import Contextengine

__all__ = ["Contextengine"]
