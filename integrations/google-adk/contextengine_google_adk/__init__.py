"""contextengine for Google's Agent Development Kit."""

from .plugin import ContextenginePlugin

__all__ = ["ContextenginePlugin"]
