"""Gemini: `systemInstruction` and `contents`."""

from ..provider import ProviderRenderer
from ..target import RequestBody, Target
from .renderer import render
from .validator import validate

TARGET = Target(
    name="gemini",
    title="Gemini",
    number=5,
    renderer=ProviderRenderer(render),
    validator=validate,
    body=RequestBody("contents", "systemInstruction"),
    alternates=True,
)

__all__ = ["TARGET", "render", "validate"]
