"""The messages of Mistral's chat, as a projection target of contextengine."""

import re

from contextengine_server.projection.call_ids import CallIdFormat
from contextengine_server.projection.provider import ProviderRenderer
from contextengine_server.projection.target import RequestBody, Target

from .renderer import render
from .validator import validate

TARGET = Target(
    name="mistral",
    title="Mistral Chat",
    renderer=ProviderRenderer(render),
    validator=validate,
    body=RequestBody("messages"),
    call_ids=CallIdFormat(re.compile(r"[a-zA-Z0-9]{9}"), prefix="", digits=9),
)
