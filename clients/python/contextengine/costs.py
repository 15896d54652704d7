"""What a context costs where nobody counts its tokens: bounds from bytes, and the room that a
request leaves. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable

from .types import AssembleRequest, AssembleResponse, Message, Part, ToolDefinition, WindowBudget

MESSAGE_TOKENS = 16
"""More than any provider's frame of a message."""
IMAGE_TOKENS = 2_000
"""More than a picture costs: the dearest known has 1,105 tokens before a model's own factor."""
WINDOW = 128_000
OUTPUT_RESERVE = 8_192
SAFETY_MARGIN = 2_048
SAFETY_SHARE = 0.05
ROT_SHARE = 0.25
"""The algebra of the service for a window without parts."""


def bound(message: Message) -> int:
    """The most tokens that a message can have: one for each byte of its encoding, since no token is
    less than a byte."""
    counted = Message(
        role=message.role, custom_role=message.custom_role, name=message.name, parts=message.parts
    )
    return counted.ByteSize() + MESSAGE_TOKENS + _media(message.parts)


def room(request: AssembleRequest, last: AssembleResponse | None) -> int:
    """The tokens that a request leaves for items, in the model's tokens. `last`: the last good
    reply."""
    report = (last or AssembleResponse()).budget
    if request.budget.WhichOneof("kind") == "message_tokens":
        left = request.budget.message_tokens - report.system_prompt_addition
    elif last is None or request.budget.window.HasField("window"):
        left = _available(request, request.budget.window) - report.system_prompt_addition
    else:
        left = report.messages + report.prompt
    if request.prompt:
        left -= Message(parts=request.prompt).ByteSize() + _media(request.prompt)
    return left


def _available(request: AssembleRequest, given: WindowBudget) -> int:
    """What a window leaves after its parts."""
    window = given.window if given.HasField("window") else WINDOW
    if given.WhichOneof("system_prompt") == "system_prompt_text":
        system = len(given.system_prompt_text.encode())
    else:
        system = given.system_prompt_tokens
    tools = (
        given.tool_tokens if given.HasField("tool_tokens") else _sizes(given.tools or request.tools)
    )
    output = given.output_reserve if given.HasField("output_reserve") else OUTPUT_RESERVE
    margin = max(SAFETY_MARGIN, math.ceil(window * SAFETY_SHARE))
    margin = given.safety_margin if given.HasField("safety_margin") else margin
    rot = given.rot_buffer if given.HasField("rot_buffer") else math.ceil(window * ROT_SHARE)
    return window - system - tools - output - margin - rot


def _sizes(tools: Iterable[ToolDefinition]) -> int:
    return sum(tool.ByteSize() for tool in tools)


def _media(parts: Iterable[Part]) -> int:
    """What pictures and files may cost beyond the bytes that name them."""
    total = 0
    for part in parts:
        match part.WhichOneof("kind"):
            case "image":
                total += IMAGE_TOKENS
            case "file":
                total += part.file.size_bytes
            case "tool_result":
                total += _media(part.tool_result.parts)
    return total
