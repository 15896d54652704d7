"""contextengine for the OpenAI Agents SDK."""

from .model import ContextengineModel
from .session import ContextengineSession

__all__ = ["ContextengineModel", "ContextengineSession"]
