"""contextengine for LangChain agents and LangGraph's graphs."""

from .hooks import ContextengineHooks
from .middleware import ContextengineMiddleware

__all__ = ["ContextengineHooks", "ContextengineMiddleware"]
