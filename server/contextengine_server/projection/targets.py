"""The targets by the names that people type, and the validator of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import anthropic, gemini, openai_chat, openai_responses
from .codex import validator as codex
from .rules import RuleFinding

VALIDATORS: dict[str, Callable[[Any, str], list[RuleFinding]]] = {
    "codex": codex.validate,
    "openai-chat": lambda body, model: openai_chat.validate(body),
    "openai-responses": lambda body, model: openai_responses.validate(body),
    "anthropic": lambda body, model: anthropic.validate(body),
    "gemini": gemini.validate,
}
"""Each is given what was read from JSON, and the model that it is for, which some rules depend
on."""
