"""OpenAI Responses: `input`, and `instructions` beside it."""

from .rendering import render
from .validating import validate

__all__ = ["render", "validate"]
