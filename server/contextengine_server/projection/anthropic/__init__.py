"""Anthropic Messages: `system` and `messages`."""

from .renderer import render
from .validator import validate

__all__ = ["render", "validate"]
