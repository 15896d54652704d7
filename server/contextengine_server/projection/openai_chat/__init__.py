"""OpenAI Chat Completions: `messages`."""

from ..provider import ProviderRenderer
from ..target import RequestBody, Target
from .renderer import render
from .validator import validate

TARGET = Target(
    name="openai-chat",
    title="OpenAI Chat Completions",
    number=2,
    renderer=ProviderRenderer(render),
    validator=validate,
    body=RequestBody("messages"),
)

__all__ = ["TARGET", "render", "validate"]
