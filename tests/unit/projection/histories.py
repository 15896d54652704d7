"""Histories that hold what formats differ in, and how each target is rendered and judged."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

from contextengine_server.projection import anthropic, gemini, openai_chat, openai_responses
from contextengine_server.projection.model import (
    ChatRole,
    File,
    Image,
    Item,
    Opaque,
    Reasoning,
    Text,
    ToolResult,
)
from contextengine_server.projection.projection import Projection
from contextengine_server.projection.provider import ProviderTask, Rendered
from contextengine_server.projection.rules import RuleFinding
from contextengine_server.projection.targets import Targets
from contextengine_server.testing.contexts import Maker, cut_contexts
from tests.unit.projection.making import assistant, call, numbered, result, summary, tool, user

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PICTURE = Image("image/png", PNG, detail="low")
SIGNED = Reasoning("I think.", signature=b"sig-1", item_id="rs_1")
CLAUDE: dict[str, Any] = {"provider": "anthropic", "model": "claude-opus-4-8"}

PROVIDERS = {target.name: target for target in Targets() if not target.threads}
RENDER: dict[str, Callable[[ProviderTask], Rendered]] = {
    "openai-chat": openai_chat.render,
    "openai-responses": openai_responses.render,
    "anthropic": anthropic.render,
    "gemini": gemini.render,
}
MODELS = {
    "openai-chat": "gpt-6-sol",
    "openai-responses": "gpt-6-sol",
    "anthropic": "claude-opus-4-8",
    "gemini": "gemini-3-pro",
}


def rendered(target: str, items: Sequence[Item], **fields: Any) -> Rendered:
    return RENDER[target](ProviderTask(items=items, **({"model": MODELS[target]} | fields)))


def body_of(target: str, made: Rendered) -> dict[str, Any]:
    """The request's body, after the way over the wire."""
    sent = Projection(messages_json=made.messages_json, system_json=made.system_json)
    return PROVIDERS[target].body(sent)


def listed(made: Rendered) -> list[Any]:
    """The messages, input items or contents."""
    messages: list[Any] = json.loads(made.messages_json)
    return messages


def judged(target: str, body: Any) -> list[RuleFinding]:
    """What the target's validator finds, advice left out."""
    found = PROVIDERS[target].validator(body, MODELS[target])
    return [finding for finding in found if not finding.advice]


def rich() -> list[Item]:
    """What a long session may show: summaries, parallel calls, a failed tool, media, thinking, ids
    used again, odd roles."""
    return [
        Item(ChatRole.SYSTEM, (Text("Policy."),), sequence=1),
        summary("what was", 2, 9),
        *numbered(
            [
                Item(
                    ChatRole.USER,
                    (Text("look"), PICTURE, File("application/pdf", b"%PDF", name="a.pdf")),
                ),
                assistant("I do.", call("c1", "look", {"a": 1}), call("c2", "find", {})),
                tool(result("c2", "two")),
                tool(ToolResult("c1", "look", (Text("one"), PICTURE), is_error=True)),
                assistant("", call("c1", "look", "no json")),
                tool(result("c1", "three")),
                Item(ChatRole.ASSISTANT, (SIGNED, Text("Seen.")), **CLAUDE),
                Item(ChatRole.CUSTOM, (Text("a note"),), custom_role="notice"),
                Item(ChatRole.DEVELOPER, (Text("Be brief."),)),
                assistant(" "),
                Item(ChatRole.ASSISTANT, (Opaque("pi", "chart", "{}"),)),
                user("and now?"),
            ],
            10,
        ),
    ]


def broken() -> dict[str, list[Item]]:
    """Lists cut anywhere: what must be mended before a provider sees it."""
    of_openai: dict[str, Any] = {"provider": "openai", "model": MODELS["openai-responses"]}
    return cut_contexts(Maker(**CLAUDE)) | {
        "thinking that no model of another provider made": [
            Item(ChatRole.USER, (SIGNED, Text("u")), **of_openai),
            user("x"),
        ]
    }
