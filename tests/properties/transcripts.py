"""The real transcripts as rows: 120 customer-service sessions and one long coding session
(tests/data/README.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.tokens import TokenCounter
from contextengine_server.wire.slots import WireShaper
from tests.oracle.pairing import Row

DATA = Path(__file__).parent.parent / "data"
_ROLES = {
    "system": pb.ROLE_SYSTEM, "user": pb.ROLE_USER, "assistant": pb.ROLE_ASSISTANT,
    "tool": pb.ROLE_TOOL,
    "toolResult": pb.ROLE_TOOL,
}  # fmt: skip

count = cache(TokenCounter().count_text)
"""Real tokens. The transcripts repeat themselves, so counts are kept."""

REAL_SHAPER = WireShaper(count)


def airline() -> Iterator[list[Row]]:
    """The customer-service sessions, in the form of OpenAI's chat API."""
    with (DATA / "airline_transcripts.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            yield _rows(map(_chat, json.loads(line)["messages"]))


def coding() -> list[Row]:
    """The coding session, in Pi's form."""
    with (DATA / "coding_session.pi.jsonl").open(encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines]
    return _rows(_pi(event["message"]) for event in events if event["type"] == "message")


def _rows(messages: Iterator[pb.Message] | Any) -> list[Row]:
    return [Row(number, message, 2 * number) for number, message in enumerate(messages, 1)]


def _text(text: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=text))


def _chat(raw: dict[str, Any]) -> pb.Message:
    message = pb.Message(role=_ROLES[raw["role"]])
    if raw["role"] == "tool":
        message.parts.add().tool_result.CopyFrom(
            pb.ToolResultPart(
                call_id=raw["tool_call_id"], name=raw["name"], parts=[_text(raw["content"])]
            )
        )
        return message
    if raw["content"] is not None:
        message.parts.append(_text(raw["content"]))
    for made in raw.get("tool_calls") or ():
        function = made["function"]
        message.parts.add().tool_call.CopyFrom(
            pb.ToolCallPart(
                call_id=made["id"],
                name=function["name"],
                arguments_json=function["arguments"].encode(),
            )
        )
    return message


def _pi(raw: dict[str, Any]) -> pb.Message:
    message = pb.Message(role=_ROLES[raw["role"]])
    message.timestamp.FromMilliseconds(raw["timestamp"])
    if raw["role"] == "toolResult":
        message.parts.add().tool_result.CopyFrom(
            pb.ToolResultPart(
                call_id=raw["toolCallId"],
                name=raw["toolName"],
                parts=[_text(part["text"]) for part in raw["content"]],
                is_error=bool(raw.get("isError")),
            )
        )
        return message
    for part in raw["content"]:
        if part["type"] == "text":
            message.parts.append(_text(part["text"]))
        elif part["type"] == "thinking":
            signature = part["thinkingSignature"].encode()
            message.parts.add().reasoning.CopyFrom(
                pb.ReasoningPart(text=part["thinking"], signature=signature)
            )
        else:
            arguments = json.dumps(part["arguments"]).encode()
            message.parts.add().tool_call.CopyFrom(
                pb.ToolCallPart(call_id=part["id"], name=part["name"], arguments_json=arguments)
            )
    return message
