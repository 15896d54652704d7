"""Codex: developer instructions, a turn's text, items to inject, and what the harness does with its
native thread."""

from .target import TARGET
from .validator import validate

__all__ = ["TARGET", "validate"]
