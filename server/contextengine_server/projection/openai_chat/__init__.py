"""OpenAI Chat Completions: `messages`."""

from .renderer import render
from .validator import validate

__all__ = ["render", "validate"]
