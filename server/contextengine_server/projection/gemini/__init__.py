"""Gemini: `systemInstruction` and `contents`."""

from .rendering import render
from .validating import validate

__all__ = ["render", "validate"]
