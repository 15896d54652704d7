"""The reasoning in a message of a model: where it is, and the message without some of it.

A form of a message that leaves reasoning out says so by its name, and its origin says where all of
it can be read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import MadeBy, Stripped, Thinking
from contextengine_server.tokens import plain_name

from .reasoning_tags import has_tags, without_tags

LEFT_OUT = "[reasoning left out"
"""How what stands for a message of nothing else begins."""
_LONE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
"""One half of a pair of UTF-16 by itself, as JSON escapes it."""
_EDITION = re.compile(r"([-@:](\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|\d{3}|v\d+|latest)(:\d+)?)+$")
_REPLACED = "�"
"""What such a half becomes on its way into UTF-8, which has no form for it."""


def made_by(message: pb.Message) -> MadeBy:
    """Who made a message, as far as it says."""
    return message.provider, model_name(message.model), message.api


@lru_cache(maxsize=256)
def model_name(model: str) -> str:
    """A model without what a gateway, a date or a version adds to its name: a session is told of
    `claude-sonnet-4-5`, and the replies are by `claude-sonnet-4-5-20250929`."""
    return _EDITION.sub("", plain_name(model)) if model else ""


def thinking_of(
    message: pb.Message, parts: Sequence[pb.Part], kinds: Sequence[str | None]
) -> Thinking | None:
    """The reasoning of a model's message with these parts, of these kinds; None where it has
    none."""
    plain: list[int] = []
    signed: list[int] = []
    redacted: list[int] = []
    damaged: list[int] = []
    marked: list[int] = []
    tagged: list[int] = []
    for index, (part, kind) in enumerate(zip(parts, kinds, strict=True)):
        if kind == "reasoning":
            reasoning = part.reasoning
            if reasoning.redacted_data:
                redacted.append(index)
            elif reasoning.signature:
                signed.append(index)
                if _REPLACED in reasoning.text:
                    damaged.append(index)
            else:
                plain.append(index)
            continue
        if part.thought_signature:
            marked.append(index)
        if kind == "text" and has_tags(part.text.text):
            tagged.append(index)
    if signed and b"\\u" in message.native.json and _LONE.search(message.native.json):
        damaged = signed  # the harness has them as they came
    if not (plain or signed or redacted or marked or tagged):
        return None
    return Thinking(*map(tuple, (plain, signed, redacted, damaged, marked, tagged)))


def strip(message: pb.Message, how: Stripped, sequence: int) -> None:
    """Takes reasoning out of a message. `sequence`: where it is stored; 0: nowhere."""
    message.ClearField("native")  # it would say all of it again
    for index in how.unsigned:
        message.parts[index].ClearField("thought_signature")
    for index in how.untagged:
        text = message.parts[index].text
        text.text = without_tags(text.text)
    silent = [index for index in how.untagged if not message.parts[index].text.text]
    gone = {*how.reasoning, *silent}
    kept = [part for index, part in enumerate(message.parts) if index not in gone]
    if not kept:
        # No provider takes an assistant message without any content.
        back = f"; expand sequence {sequence} to read it" if sequence else ""
        kept = [pb.Part(text=pb.TextPart(text=f"{LEFT_OUT}{back}]"))]
    del message.parts[:]
    message.parts.extend(kept)
