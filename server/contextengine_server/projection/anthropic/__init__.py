"""Anthropic Messages: `system` and `messages`."""

from .rendering import render
from .validating import validate

__all__ = ["render", "validate"]
