"""contextengine for the OpenAI Agents SDK."""

from .session import ContextengineSession

__all__ = ["ContextengineSession"]
