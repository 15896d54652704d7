"""Anthropic Messages: `system` and `messages`."""

from ..provider import ProviderRenderer
from ..target import RequestBody, Target
from .renderer import render
from .validator import validate

TARGET = Target(
    name="anthropic",
    title="Anthropic Messages",
    number=4,
    renderer=ProviderRenderer(render),
    validator=validate,
    body=RequestBody("messages", "system"),
    alternates=True,
    cache_mark="cache_control",
)

__all__ = ["TARGET", "render", "validate"]
