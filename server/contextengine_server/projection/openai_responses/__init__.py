"""OpenAI Responses: `input`, and `instructions` beside it."""

from .renderer import render
from .validator import validate

__all__ = ["render", "validate"]
