"""contextengine for LangChain agents."""

from .middleware import ContextengineMiddleware

__all__ = ["ContextengineMiddleware"]
