"""OpenAI Responses: `input` and `instructions`."""

from ..provider import ProviderRenderer
from ..target import RequestBody, Target
from .renderer import render
from .validator import validate

TARGET = Target(
    name="openai-responses",
    title="OpenAI Responses",
    number=3,
    renderer=ProviderRenderer(render),
    validator=validate,
    body=RequestBody("input", "instructions"),
)

__all__ = ["TARGET", "render", "validate"]
