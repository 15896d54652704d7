"""Gemini: `systemInstruction` and `contents`."""

from .renderer import render
from .validator import validate

__all__ = ["render", "validate"]
