"""Valid requests of each form, and a change for each rule that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from contextengine_server.projection import anthropic, gemini, openai_chat, openai_responses
from contextengine_server.projection.codex import validator as codex
from contextengine_server.projection.rules import RuleFinding

Body = dict[str, Any]
Break = Callable[[Body], Any]

PIXEL = "iVBORw0KGgo="
DATA = "data:image/png;base64,"

CHAT: Body = {
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "u"}, {"type": "image_url",
        "image_url": {"url": "https://x/p"}}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": "2"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "u"},
    ]
}  # fmt: skip

RESPONSES: Body = {
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "u"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "x"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_image",
        "image_url": f"{DATA}x"}]},
        {"type": "compaction", "encrypted_content": "e"},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text",
        "text": "a"}]},
    ]
}  # fmt: skip

ANTHROPIC: Body = {
    "model": "claude",
    "max_tokens": 1,
    "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "u"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "sig"},
                {"type": "redacted_thinking", "data": "d"},
                {"type": "text", "text": "a"},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
                {"type": "tool_use", "id": "c2", "name": "g", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "1"},
                {"type": "tool_result", "tool_use_id": "c2"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
                },
                {"type": "text", "text": "u", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
            ],
        },
    ],
}

GEMINI: Body = {
    "model": "models/gemini-3-pro",
    "systemInstruction": {"parts": [{"text": "s"}]},
    "contents": [
        {"role": "user", "parts": [{"text": "u"}]},
        {
            "role": "model",
            "parts": [
                {"text": "t", "thought": True},
                {"functionCall": {"id": "c1", "name": "f", "args": {}}, "thoughtSignature": "AQI="},
                {"functionCall": {"id": "c2", "name": "g", "args": {"aB": 1}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "c1", "name": "f", "response": {"output": "1"}}},
                {"functionResponse": {"id": "c2", "name": "g", "response": {"error": "2"}}},
            ],
        },
    ],
}

CODEX: Body = {
    "developerInstructions": "d",
    "input": [
        {"type": "text", "text": "u"},
        {"type": "image", "url": f"data:image/png;base64,{PIXEL}"},
    ],
    "items": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "u"}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
    ],
    "additionalContext": {"k": {"kind": "application", "value": "v", "name": "a_1"}},
}


def put(*path: Any, value: Any) -> Break:
    """Sets what stands at the path."""

    def change(body: Body) -> None:
        at: Any = body
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value

    return change


def drop(*path: Any) -> Break:
    """Takes away what stands at the path."""

    def change(body: Body) -> None:
        at: Any = body
        for step in path[:-1]:
            at = at[step]
        del at[path[-1]]

    return change


def move(*path: Any, to: int) -> Break:
    """Moves an entry of a list."""

    def change(body: Body) -> None:
        at: Any = body
        for step in path[:-1]:
            at = at[step]
        at.insert(to, at.pop(path[-1]))

    return change


def add(*path: Any, value: Any) -> Break:
    """Puts an entry into the list at the path, before the place that ends it."""

    def change(body: Body) -> None:
        at: Any = body
        for step in path[:-1]:
            at = at[step]
        at.insert(path[-1], value)

    return change


M, IN, C, S = "messages", "input", "contents", "system"
LONG = "x" * 65
FIVE = [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}] * 5
USER = {"role": "user", "content": "u"}
CONTENT = "content"

BREAKS: dict[str, tuple[Body, Callable[[Any], list[RuleFinding]], list[tuple[str, Break]]]] = {
    "chat": (
        CHAT,
        openai_chat.validate,
        [
            ("C1", put(M, 0, "role", value="tools")),
            ("C1", put(M, 0, value="text")),
            ("C2", put(M, 1, CONTENT, value=None)),
            ("C2", drop(M, 3, CONTENT)),
            ("C2", put(M, 5, CONTENT, value=None)),
            ("C2", put(M, 6, CONTENT, value=[])),
            ("C3", put(M, 2, "tool_calls", 0, "id", value="")),
            ("C3", put(M, 2, "tool_calls", 0, "id", value=LONG)),
            ("C3", put(M, 2, "tool_calls", 1, "id", value="c1")),
            ("C3", put(M, 2, "tool_calls", 0, "type", value="tool")),
            ("C3", put(M, 2, "tool_calls", 0, "function", "arguments", value={})),
            ("C3", drop(M, 2, "tool_calls", 0, "function", "name")),
            ("C3", put(M, 5, "tool_calls", value=[])),
            ("C4", drop(M, 4)),
            ("C4", add(M, 4, value=USER)),
            ("C5", put(M, 3, "tool_call_id", value="c9")),
            ("C5", put(M, 4, "tool_call_id", value="c1")),
            ("C5", move(M, 3, to=6)),
            (
                "C6",
                put(
                    M, 3, CONTENT, value=[{"type": "image_url", "image_url": {"url": "https://x"}}]
                ),
            ),
            ("C6", put(M, 3, CONTENT, value={})),
            ("C7", put(M, 1, CONTENT, 0, "type", value="input_text")),
            ("C7", put(M, 5, CONTENT, value=[{"type": "image_url", "image_url": {"url": "x"}}])),
            ("C7", put(M, 1, CONTENT, 1, "image_url", value={})),
            ("C7", put(M, 6, CONTENT, value=7)),
            ("C8", put(M, 2, "tool_calls", 0, "function", "arguments", value="{")),
            ("C9", put(M, value=CHAT[M][3:])),
            ("C9", put(M, value=CHAT[M][:3])),
        ],
    ),
    "responses": (
        RESPONSES,
        openai_responses.validate,
        [
            ("R1", drop(IN, 4)),
            (
                "R1",
                add(
                    IN,
                    5,
                    value={"type": "function_call_output", "call_id": "c1", "output": "again"},
                ),
            ),
            ("R2", put(IN, 4, "call_id", value="c9")),
            ("R3", move(IN, 4, to=0)),
            ("R3", put(IN, 3, "call_id", value="c1")),
            ("R4", put(IN, 5, "type", value="function_call_output")),
            ("R5", drop(IN, 4, "call_id")),
            ("R6", put(IN, 2, "arguments", value={})),
            ("R6", put(IN, 3, "input", value=None)),
            ("R6", put(IN, 4, "output", value=[{"type": "output_text", "text": "x"}])),
            ("R6", put(IN, 4, "output", value=None)),
            ("R6", put(IN, 0, value="text")),
            ("R6", put(IN, value={})),
            ("R7", put(IN, 0, "role", value="tool")),
            ("R7", put(IN, 0, CONTENT, 0, "type", value="output_text")),
            ("R7", put(IN, 7, CONTENT, 0, "type", value="input_text")),
            ("R7", put(IN, 0, CONTENT, value=None)),
            ("R8", add(IN, 2, value=RESPONSES[IN][0])),
            ("R8", drop(IN, 1, "id")),
            ("R10", put(IN, 7, "id", value="fc_1")),
            ("R10", put(IN, 7, "id", value="rs_2")),
            ("R10", put(IN, 2, "id", value="fc 1")),
            ("R11", put(IN, 2, "call_id", value=LONG)),
            ("R11", put(IN, 2, "call_id", value="")),
            ("R12", put(IN, 6, "encrypted_content", value="")),
            ("R13", put(IN, 5, "output", 0, "image_url", value="ftp://x")),
            ("R13", put(IN, 5, "output", 0, "detail", value="huge")),
            (
                "R14",
                put(
                    IN,
                    0,
                    CONTENT,
                    value=[{"type": "input_text", "text": "u", "prompt_cache_breakpoint": {}}] * 5,
                ),
            ),
        ],
    ),
    "anthropic": (
        ANTHROPIC,
        lambda body: anthropic.validate(body, signatures=["sig"]),
        [
            ("A1", put(S, value={"text": "s"})),
            ("A1", put(S, 0, "type", value="image")),
            ("A1", add(M, 1, value={"role": "system", "content": "s"})),
            ("A2", put(M, 0, "role", value="developer")),
            ("A2", drop(M, 0)),
            ("A2", drop(M, 2)),
            ("A3", drop(M, 2, CONTENT, 0)),
            ("A3", add(M, 2, value=USER)),
            ("A4", put(M, 2, CONTENT, 0, "tool_use_id", value="c9")),
            ("A4", put(M, 2, CONTENT, 1, "tool_use_id", value="c1")),
            ("A4", drop(M, 1)),
            ("A5", move(M, 2, CONTENT, 3, to=0)),
            ("A6", move(M, 1, CONTENT, 2, to=4)),
            ("A7", put(M, 1, CONTENT, 4, "id", value="c1")),
            ("A7", put(M, 1, CONTENT, 3, "id", value="c 1")),
            ("A7", put(M, 1, CONTENT, 3, "id", value=LONG)),
            ("A8", put(M, 1, CONTENT, 3, "input", value="{}")),
            ("A8", drop(M, 1, CONTENT, 3, "name")),
            ("A9", drop(M, 1, CONTENT, 0, "signature")),
            ("A9", put(M, 1, CONTENT, 0, "signature", value=" ")),
            ("A9", put(M, 1, CONTENT, 0, "signature", value="of another model")),
            ("A9", put(M, 1, CONTENT, 1, "data", value="")),
            ("A10", move(M, 1, CONTENT, 0, to=3)),
            ("A10", move(M, 1, CONTENT, 1, to=2)),
            ("A11", put(M, 1, CONTENT, 0, "cache_control", value={"type": "ephemeral"})),
            ("A11", put(S, 0, "cache_control", value={"type": "forever"})),
            ("A11", put(S, 0, "cache_control", "ttl", value="2h")),
            ("A11", put(S, value=FIVE)),
            ("A13", put(M, 2, CONTENT, 3, "text", value="")),
            ("A13", put(M, 0, CONTENT, value=" \n")),
            ("A14", put(M, 2, CONTENT, 2, "source", "media_type", value="image/bmp")),
            ("A14", put(M, 2, CONTENT, 2, "source", value=None)),
            ("A14", drop("max_tokens")),
        ],
    ),
    "gemini": (
        GEMINI,
        lambda body: gemini.validate(body, signatures=["AQI="]),
        [
            ("G1", put(C, 1, "role", value="assistant")),
            ("G1", put("systemInstruction", "parts", 0, value={"inlineData": {}})),
            ("G1", put(C, value={})),
            ("G2", put(C, 0, "parts", value=[])),
            ("G2", put(C, 0, "parts", 0, value={})),
            ("G2", put(C, 0, "parts", 0, "inlineData", value={})),
            ("G2", put(C, 0, "parts", 0, "text", value="")),
            ("G3", drop(C, 0)),
            ("G3", add(C, 1, value={"role": "model", "parts": [{"text": "a"}]})),
            ("G4", add(C, 2, value={"role": "user", "parts": [{"text": "u"}]})),
            ("G4", put(C, 2, "role", value="model")),
            ("G5", drop(C, 2, "parts", 1)),
            ("G5", drop(C, 2)),
            ("G6", put(C, 2, "parts", 0, "functionResponse", "name", value="h")),
            ("G6", put(C, 2, "parts", 0, "functionResponse", "id", value="c9")),
            ("G7", put(C, 1, "parts", 1, "functionCall", "args", value="{}")),
            ("G7", put(C, 2, "parts", 0, "functionResponse", "response", value="1")),
            ("G8", drop(C, 1, "parts", 1, "thoughtSignature")),
            ("G9", put(C, 0, "parts", 0, "thoughtSignature", value="AQI=")),
            ("G9", put(C, 1, "parts", 1, "thoughtSignature", value="AQM=")),
            ("G9", put(C, 1, "parts", 1, "thoughtSignature", value="")),
            ("G10", put(C, 0, "parts", 0, "cacheControl", value={})),
        ],
    ),
    "codex": (
        CODEX,
        codex.validate,
        [
            ("X1", put("input", 0, "text", value="x" * (1 << 20) + "x")),
            ("X2", put("developerInstructions", value="\ud800")),
            ("X2", put("items", 0, CONTENT, 0, "text", value="a\udc00")),
            ("X3", put("input", 0, "text", value=" <skill>x</skill>")),
            ("X3", put("items", 0, CONTENT, 0, "text", value="<turn_aborted>x</turn_aborted>")),
            ("X4", put("developerInstructions", value=" \n")),
            ("X5", put("items", 2, "output", value="é" * 6_001)),
            ("X6", put("items", value=[])),
            ("X6", put("items", 0, CONTENT, value="u")),
            ("X7", put("toolOutput", value={"name": "n", "output": "o"})),
            ("X7", put("input", 0, "type", value="video")),
            ("X8", put("additionalContext", "k", "name", value="Bad Name")),
            ("X8", put("additionalContext", "k", "value", value="x" * 4_001)),
            ("X9", put("items", 0, "role", value="system")),
            ("X9", put("items", 0, "role", value="tool")),
            ("X10", move("items", 2, to=0)),
            ("X10", move("items", 0, to=1)),
            ("X11", put("input", 1, "url", value="data:image/png;base64,AAAA")),
            ("X11", put("input", 1, "url", value="data:image/png;base64,?")),
            ("R2", put("items", 2, "call_id", value="c9")),
        ],
    ),
}
