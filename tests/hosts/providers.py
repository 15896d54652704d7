"""What providers answer, whole and as events: OpenAI Chat and Responses, Anthropic, Gemini."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
TOOL = "look_up"
SIGNATURE = "c2lnbmVk"
"""With which Gemini signs its thoughts, beside the call that they led to."""


@dataclass
class Answer:
    """What a model says: words, or calls of the tool, each with its arguments."""

    words: str = ""
    calls: list[Json] = field(default_factory=list)
    thought: str = ""
    tool: str = TOOL
    """Which tool is called."""
    namespace: str = ""
    """Where the tool stands, in Responses: Codex keeps those of a server together."""
    sealed: str = ""
    """What only the provider can read of a conversation that it was told to compact."""
    read: int = 100
    """How many tokens it says of the request, in Responses."""


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + 7] for at in range(0, len(text), 7))


class Chat:
    """OpenAI Chat Completions."""

    @staticmethod
    def whole(number: int, answer: Answer) -> Json:
        message: Json = {"role": "assistant", "content": answer.words or None, "refusal": None}
        if answer.calls:
            message["tool_calls"] = [
                _call(number, at, json.dumps(given), answer.tool)
                for at, given in enumerate(answer.calls)
            ]
        stop = "tool_calls" if answer.calls else "stop"
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": stop}
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 1,
            "model": "mock-1",
            "choices": [choice],
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 5,
                "total_tokens": 105,
                "prompt_tokens_details": {"cached_tokens": 40},
            },
        }

    @staticmethod
    def events(number: int, answer: Answer) -> list[Json]:
        whole = Chat.whole(number, answer)
        head = {name: whole[name] for name in ("id", "created", "model")}
        head["object"] = "chat.completion.chunk"

        def chunk(delta: Json, stop: str | None = None) -> Json:
            return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}

        deltas: list[Json] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in _pieces(answer.words)]
        for at, given in enumerate(answer.calls):
            begun = {"index": at, **_call(number, at, "", answer.tool)}
            deltas.append({"tool_calls": [begun]})
            deltas += [
                {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}
                for piece in _pieces(json.dumps(given))
            ]
        last = whole["choices"][0]["finish_reason"]
        told = {**head, "choices": [], "usage": whole["usage"]}
        return [*map(chunk, deltas), chunk({}, last), told]


def _call(number: int, at: int, arguments: str, tool: str) -> Json:
    body = {"name": tool, "arguments": arguments}
    return {"id": f"call_{number}_{at}", "type": "function", "function": body}


class Responses:
    """OpenAI Responses."""

    @staticmethod
    def whole(number: int, answer: Answer) -> Json:
        output: list[Json] = []
        if answer.sealed:
            sealed = {"id": f"cmp_{number}", "encrypted_content": answer.sealed}
            output.append({"type": "compaction", **sealed})
        if answer.thought:
            output.append(
                {
                    "type": "reasoning",
                    "id": f"rs_{number}",
                    "summary": [{"type": "summary_text", "text": answer.thought}],
                    "encrypted_content": "c2VjcmV0",
                }
            )
        if answer.words:
            text = {"type": "output_text", "text": answer.words, "annotations": []}
            output.append(
                {
                    "type": "message",
                    "id": f"msg_{number}",
                    "status": "completed",
                    "role": "assistant",
                    "content": [text],
                }
            )
        for at, given in enumerate(answer.calls):
            output.append(
                {
                    "type": "function_call",
                    "id": f"fc_{number}_{at}",
                    "call_id": f"call_{number}_{at}",
                    "name": answer.tool,
                    "arguments": json.dumps(given),
                    "status": "completed",
                    **({"namespace": answer.namespace} if answer.namespace else {}),
                }
            )
        return {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": "mock-1",
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "temperature": 1.0,
            "top_p": 1.0,
            "usage": {
                "input_tokens": answer.read,
                "input_tokens_details": {"cached_tokens": 40},
                "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 1},
                "total_tokens": answer.read + 5,
            },
        }

    @staticmethod
    def events(number: int, answer: Answer) -> list[Json]:
        whole = Responses.whole(number, answer)
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        events: list[Json] = [{"type": "response.created", "response": begun}]
        for at, item in enumerate(whole["output"]):
            bare = {**item, "content": []} if item["type"] == "message" else {**item}
            if item["type"] == "function_call":
                bare["arguments"] = ""
            where = {"output_index": at}
            inner = {"item_id": item["id"], "content_index": 0, **where}
            events.append({"type": "response.output_item.added", "item": bare, **where})
            if item["type"] == "message":
                part = {"type": "output_text", "text": "", "annotations": []}
                events.append({"type": "response.content_part.added", "part": part, **inner})
                for piece in _pieces(answer.words):
                    delta = {"delta": piece, "logprobs": [], **inner}
                    events.append({"type": "response.output_text.delta", **delta})
                done = {"text": answer.words, "logprobs": [], **inner}
                events.append({"type": "response.output_text.done", **done})
                part = item["content"][0]
                events.append({"type": "response.content_part.done", "part": part, **inner})
            elif item["type"] == "function_call":
                inner = {"item_id": item["id"], **where}
                kind, given = "response.function_call_arguments", item["arguments"]
                for piece in _pieces(given):
                    events.append({"type": f"{kind}.delta", "delta": piece, **inner})
                events.append({"type": f"{kind}.done", "arguments": given, **inner})
            events.append({"type": "response.output_item.done", "item": item, **where})
        events.append({"type": "response.completed", "response": whole})
        return [{**event, "sequence_number": at} for at, event in enumerate(events)]


class Anthropic:
    """Anthropic Messages."""

    @staticmethod
    def whole(number: int, answer: Answer) -> Json:
        content: list[Json] = []
        if answer.thought:
            content.append({"type": "thinking", "thinking": answer.thought, "signature": "c2ln"})
        if answer.words:
            content.append({"type": "text", "text": answer.words})
        content += [
            {"type": "tool_use", "id": f"toolu_{number}_{at}", "name": answer.tool, "input": given}
            for at, given in enumerate(answer.calls)
        ]
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "mock-1",
            "content": content,
            "stop_reason": "tool_use" if answer.calls else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": 60,
                "output_tokens": 5,
                "cache_read_input_tokens": 40,
                "cache_creation_input_tokens": 0,
            },
        }

    @staticmethod
    def events(number: int, answer: Answer) -> list[Json]:
        whole = Anthropic.whole(number, answer)
        begun = {**whole, "content": [], "stop_reason": None}
        events: list[Json] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
        for at, block in enumerate(whole["content"]):
            match block["type"]:
                case "thinking":
                    bare: Json = {"type": "thinking", "thinking": "", "signature": ""}
                    deltas: list[Json] = [
                        {"type": "thinking_delta", "thinking": piece}
                        for piece in _pieces(block["thinking"])
                    ]
                    deltas.append({"type": "signature_delta", "signature": block["signature"]})
                case "text":
                    bare = {"type": "text", "text": ""}
                    deltas = [{"type": "text_delta", "text": one} for one in _pieces(answer.words)]
                case _:
                    bare = {**block, "input": {}}
                    deltas = [
                        {"type": "input_json_delta", "partial_json": piece}
                        for piece in _pieces(json.dumps(block["input"]))
                    ]
            events.append({"type": "content_block_start", "index": at, "content_block": bare})
            events += [
                {"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas
            ]
            events.append({"type": "content_block_stop", "index": at})
        ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}})
        return [*events, {"type": "message_stop"}]


class Gemini:
    """Gemini's generateContent and streamGenerateContent."""

    @staticmethod
    def whole(number: int, answer: Answer) -> Json:
        parts: list[Json] = []
        if answer.thought:
            parts.append({"text": answer.thought, "thought": True})
        if answer.words:
            parts.append({"text": answer.words})
        parts += [{"functionCall": {"name": answer.tool, "args": given}} for given in answer.calls]
        calls = [part for part in parts if "functionCall" in part]
        for first in calls[:1]:  # of parallel calls the first alone is signed
            first["thoughtSignature"] = SIGNATURE
        return _gemini(number, parts, "STOP")

    @staticmethod
    def events(number: int, answer: Answer) -> list[Json]:
        events: list[Json] = []
        for part in Gemini.whole(number, answer)["candidates"][0]["content"]["parts"]:
            told = (
                [{**part, "text": one} for one in _pieces(part["text"])] if "text" in part else []
            )
            events += [_gemini(number, [one]) for one in told or [part]]
        return [*events, _gemini(number, [{"text": ""}], "STOP")]


def _gemini(number: int, parts: list[Json], stop: str = "") -> Json:
    candidate: Json = {"index": 0, "content": {"role": "model", "parts": parts}}
    if stop:
        candidate["finishReason"] = stop
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": 100,
            "candidatesTokenCount": 5,
            "totalTokenCount": 105,
            "cachedContentTokenCount": 40,
        },
        "modelVersion": "mock-1",
        "responseId": f"resp-{number}",
    }


def made(path: str, body: Json) -> tuple[Any, bool]:
    """The form that a path asks for, and whether its answer is streamed."""
    if ":" in path:  # Gemini's says both by the name of the method
        return Gemini, path.rpartition(":")[2] == "streamGenerateContent"
    return _OF_PATH[path.rsplit("/v1/", 1)[1]], bool(body.get("stream"))


_OF_PATH: dict[str, Any] = {
    "chat/completions": Chat,
    "responses": Responses,
    "messages": Anthropic,
}
