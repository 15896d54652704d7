"""The renderers of the provider formats, judged by the validators and by the providers' own
types."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from anthropic.types import MessageParam, TextBlockParam
from google.genai import types as genai
from msgspec.structs import replace
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from contextengine_server.context.message import NO_RESULT
from contextengine_server.projection.gemini.renderer import STAND_IN
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
from contextengine_server.projection.provider import OPENER
from tests.unit.projection.histories import (
    CLAUDE,
    MODELS,
    PNG,
    RENDER,
    SIGNED,
    body_of,
    broken,
    judged,
    listed,
    rendered,
    rich,
)
from tests.unit.projection.making import assistant, call, numbered, result, summary, tool, user

TARGETS = list(RENDER)
TYPES: dict[str, TypeAdapter[Any]] = {
    "openai-chat": TypeAdapter(list[ChatCompletionMessageParam]),
    "openai-responses": TypeAdapter(list[ResponseInputItemParam]),
    "anthropic": TypeAdapter(list[MessageParam]),
    "gemini": TypeAdapter(list[genai.Content]),
}
LISTS = {"openai-responses": "input", "gemini": "contents"}
"""What the list is called where it is not `messages`."""
SYSTEM = TypeAdapter(list[TextBlockParam])


def confirm(target: str, body: Mapping[str, Any]) -> None:
    """Has the provider's own types read what is sent. They look into iterables only when these are
    walked."""
    walk(TYPES[target].validate_python(body[LISTS.get(target, "messages")]))
    if target == "anthropic" and "system" in body:
        walk(SYSTEM.validate_python(body["system"]))


def walk(value: Any) -> None:
    if isinstance(value, Mapping):
        for inner in value.values():
            walk(inner)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for inner in value:
            walk(inner)


@pytest.mark.parametrize("target", TARGETS)
def test_t29_a_rich_history_is_valid_in_every_form(target):
    made = rendered(target, rich(), instructions="You help.")
    body = body_of(target, made)
    assert judged(target, body) == []
    confirm(target, body)
    said = json.dumps(body)
    for text in ("what was", "one", "two", "three", "Seen.", "a note", "Be brief.", "and now?"):
        assert text in said
    assert made == rendered(target, rich(), instructions="You help.")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", broken())
def test_t29_a_list_cut_anywhere_is_mended(target, name):
    made = rendered(target, broken()[name])
    body = body_of(target, made)
    assert judged(target, body) == []
    confirm(target, body)
    assert made.losses or name in (
        "a result twice",
        "begins with a call",
        "a user's own results",
        "nothing said",
        "text behind a call",
    )


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_answered_for_a_missing_result_says_so(target):
    said = json.dumps(listed(rendered(target, broken()["cut inside a pair"])))
    assert said.count(NO_RESULT) == 1


@pytest.mark.parametrize("target", TARGETS)
def test_ids_are_the_same_on_both_sides_and_in_every_later_projection(target):
    items = numbered(broken()["bad ids"])
    first = listed(rendered(target, items))
    later = listed(rendered(target, [*items, *numbered([assistant("a"), user("b")], 10)]))
    if target != "anthropic":  # whose marks move, and are no part of the prefix
        assert later[: len(first)] == first
    if target == "openai-chat":
        calls = [made["id"] for made in first[1]["tool_calls"]]
        assert calls == [answer["tool_call_id"] for answer in first[2:]]
        assert all(name.startswith("c_") and len(name) == 22 for name in calls)


@pytest.mark.parametrize("target", ["openai-responses", "anthropic", "gemini"])
def test_reasoning_goes_back_to_the_model_that_made_it_and_to_no_other(target):
    provider = {"openai-responses": "openai", "anthropic": "anthropic", "gemini": "google"}[target]
    item = Item(ChatRole.ASSISTANT, (SIGNED, Text("So.")), provider=provider, model=MODELS[target])
    kept = rendered(target, [user("x"), item, user("y")])
    assert "I think." in json.dumps(listed(kept))
    assert judged(target, body_of(target, kept)) == []
    confirm(target, body_of(target, kept))
    for other in ({"model": "another"}, {"provider": "elsewhere"}):
        dropped = rendered(target, [user("x"), item, user("y")], **other)
        assert "I think." not in json.dumps(listed(dropped))
        assert dropped.losses
    unknown = Item(ChatRole.ASSISTANT, (SIGNED, Text("So.")))
    assert "I think." not in json.dumps(listed(rendered(target, [user("x"), unknown, user("y")])))


def test_encrypted_reasoning_stays_with_what_it_produced():
    item = Item(
        ChatRole.ASSISTANT,
        (Reasoning("", redacted=b"gAAA", item_id="rs_1"), call("c1")),
        provider="openai",
        model="gpt-6-sol",
    )
    made = listed(rendered("openai-responses", [user("x"), item, tool(result("c1"))]))
    assert [entry["type"] for entry in made] == [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert made[1] == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": "gAAA",
    }


def marks(body: Mapping[str, Any]) -> list[str]:
    """The texts of the blocks that carry a breakpoint."""
    blocks = list(body.get("system", []))
    for message in body["messages"]:
        blocks += message["content"] if isinstance(message["content"], list) else []
    return [block.get("text") or block["type"] for block in blocks if "cache_control" in block]


def test_breakpoints_stand_where_the_next_request_begins_alike():
    items = [
        summary("what was", 1, 4),
        *numbered([user("old"), assistant("answer"), user("new")], 5),
    ]
    body = body_of("anthropic", rendered("anthropic", items, instructions="You help."))
    assert marks(body) == ["You help.", "what was", "old", "new"]
    later = [*items, *numbered([assistant("more"), user("newest")], 8)]
    again = body_of("anthropic", rendered("anthropic", later, instructions="You help."))
    assert marks(again) == ["You help.", "what was", "new", "newest"]


@pytest.mark.parametrize(
    ("limit", "marked"),
    [
        (0, []),
        (1, ["new"]),
        (2, ["You help.", "new"]),
        (3, ["You help.", "what was", "new"]),
        (4, ["You help.", "what was", "old", "new"]),
        (9, ["You help.", "what was", "old", "new"]),
    ],
)
def test_of_few_breakpoints_the_newest_block_has_the_first(limit, marked):
    """A breakpoint looks back over 20 blocks only, so the newest block is worth more than the
    system prompt, that more than the summaries, and these more than the turn before."""
    items = [
        summary("what was", 1, 4),
        *numbered([user("old"), assistant("answer"), user("new")], 5),
    ]
    made = rendered("anthropic", items, instructions="You help.", breakpoints=limit)
    assert marks(body_of("anthropic", made)) == marked


def test_no_breakpoint_stands_on_thinking():
    item = Item(ChatRole.ASSISTANT, (SIGNED, call("c1")), **CLAUDE)
    made = rendered("anthropic", [user("x"), item, tool(result("c1"))])
    assert judged("anthropic", body_of("anthropic", made)) == []


def test_a_list_that_begins_with_the_model_gets_a_line_of_the_user():
    for target in ("anthropic", "gemini"):
        first = listed(rendered(target, broken()["begins with a call"]))[0]
        assert first["role"] == "user"
        assert OPENER in json.dumps(first)


def test_geminis_calls_carry_their_signatures_or_the_documented_stand_in():
    signed = Item(
        ChatRole.ASSISTANT,
        (replace_seal(call("c1"), b"\x01\x02"),),
        provider="google",
        model="gemini-3-pro",
    )
    made = listed(rendered("gemini", [user("x"), signed, tool(result("c1"))]))
    assert made[1]["parts"][0]["thoughtSignature"] == "AQI="
    foreign = listed(
        rendered("gemini", [user("x"), signed, tool(result("c1"))], model="gemini-3-flash")
    )
    assert foreign[1]["parts"][0]["thoughtSignature"] == STAND_IN
    parallel = [user("x"), assistant("", call("c1"), call("c2")), tool(result("c1"), result("c2"))]
    parts = listed(rendered("gemini", parallel))[1]["parts"]
    assert ["thoughtSignature" in part for part in parts] == [True, False]
    older = listed(rendered("gemini", [*parallel, assistant("done"), user("next")]))
    assert older[1]["parts"] == parts, (
        "what was sent comes again as it was, though earlier turns are not checked"
    )
    assert "thoughtSignature" not in json.dumps(
        listed(rendered("gemini", parallel, model="gemini-2.5-pro"))
    )


def replace_seal(made: Any, seal: bytes) -> Any:
    from msgspec.structs import replace

    return replace(made, seal=seal)


def test_arguments_that_are_no_object_are_carried_and_said():
    items = [user("x"), assistant("", call("c1", "t", "[1, 2]")), tool(result("c1"))]
    made = rendered("anthropic", items)
    assert listed(made)[1]["content"][0]["input"] == {"arguments": "[1, 2]"}
    assert "A8" in {loss.rule for loss in made.losses}
    chat = listed(rendered("openai-chat", items))[1]["tool_calls"][0]["function"]["arguments"]
    assert chat == "[1, 2]", "where the form takes text it stays as the model wrote it"


def test_pictures_stay_pictures_where_the_form_has_a_place():
    said = {target: json.dumps(listed(rendered(target, rich()))) for target in TARGETS}
    assert '"image_url"' in said["openai-chat"]
    assert said["openai-responses"].count('"input_image"') == 2
    assert said["anthropic"].count('"base64"') == 3
    assert '"inlineData"' in said["gemini"]
    assert f"[image image/png left out: {len(PNG)} bytes" in said["openai-chat"]


def test_the_prompt_is_the_users_last_message():
    for target in TARGETS:
        made = rendered(target, [user("x"), assistant("a")], prompt=(Text("now"),))
        assert "now" in json.dumps(listed(made)[-1])
        assert judged(target, body_of(target, made)) == []


DIALECTS = {
    "openai-chat": "openai.chat",
    "openai-responses": "openai.responses",
    "anthropic": "anthropic.messages",
    "gemini": "gemini.content",
}
MEDIA = [
    kind(**fields)
    for kind in (Image, File)
    for fields in (
        {},
        {"data": b"", "mime": "image/png"},
        {"data": b"BM", "mime": "image/bmp"},
        {"data": PNG},
        {"uri": "file:///etc/hostname"},
        {"uri": "data:image/png;base64,%%"},
        {"uri": "/a/path"},
    )
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("role", [ChatRole.USER, ChatRole.ASSISTANT, ChatRole.TOOL])
def test_media_that_no_one_can_read_become_a_line(target, role):
    for medium in MEDIA:
        parts = (Text("look"), medium)
        odd = tool(ToolResult("c1", "look", parts)) if role is ChatRole.TOOL else Item(role, parts)
        history = [user("x"), assistant("", call("c1", "look")), odd, user("y")]
        made = rendered(target, history)
        assert judged(target, body_of(target, made)) == []
        if isinstance(medium, Image) and target != "gemini":
            assert made.losses


@pytest.mark.parametrize("target", TARGETS)
def test_an_address_that_holds_the_bytes_is_as_good_as_the_bytes(target):
    address = "data:image/png;base64," + base64.b64encode(PNG).decode()
    by_address, by_bytes = (
        rendered(target, [Item(ChatRole.USER, (part,))])
        for part in (Image(uri=address), Image(mime="image/png", data=PNG))
    )
    assert listed(by_address) == listed(by_bytes)
    assert by_address.losses == []


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_vendor_added_says_nothing_else_of_what_is_said(target):
    hostile = (
        '{"type": "image", "text": 5, "id": "c9", "call_id": "c9"}',
        '{"cache_control": {"type": "ephemeral"}}',
        "{",
        "[]",
        "[" * 100_000,
    )
    for more in hostile:
        vendors = [
            Opaque(DIALECTS[target], kind, more)
            for kind in ("refusal", "output_text", "message", "")
        ]
        parts = [
            replace(part, more=more) for part in (Text("a"), Image("image/png", PNG), call("c1"))
        ]
        items = [
            replace(item, dialect=DIALECTS[target])
            for item in (
                Item(ChatRole.USER, (*parts[:2], *vendors)),
                Item(ChatRole.ASSISTANT, (parts[0], *vendors, parts[2])),
                tool(replace(result("c1"), more=more)),
                *[user(f"turn {at}") for at in range(3)],
            )
        ]
        assert judged(target, body_of(target, rendered(target, items))) == []
