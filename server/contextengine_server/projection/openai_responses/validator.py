"""The rules of `input` of OpenAI Responses. Sources in brackets; `local`: read in the openai SDK
3.54."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ..rules import Breach, RuleFinding, numbered, objects, prefix_breaks, run

CALLS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "function_call_output",
}
OUTPUTS = frozenset(CALLS.values())
MAX_ID, MAX_BREAKPOINTS = 64, 4
DETAILS = ("auto", "low", "high", "original")
_PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs"}
_ID = re.compile(r"[A-Za-z0-9_-]+")
_INPUT = ("input_text", "input_image", "input_file", "input_audio")


class ResponsesRequest(msgspec.Struct, frozen=True):
    """A request as far as the rules look at it."""

    items: list[Any]
    continued: bool = False
    """A previous response is named: its calls may be answered here."""
    earlier: Sequence[Any] = ()

    @property
    def numbered(self) -> list[tuple[str, Mapping[str, Any]]]:
        """The items with their paths."""
        return list(numbered(self.items, "input"))


def validate(body: Any, model: str = "", *, earlier: Sequence[Any] = ()) -> list[RuleFinding]:
    """The findings on a list of items, or on a request that holds it under `input`; `earlier`: the
    items of a request before, whose cached prefix should still hold. No rule
    depends on `model`."""
    continued = isinstance(body, Mapping) and bool(body.get("previous_response_id"))
    items = body.get("input") if isinstance(body, Mapping) else body
    if isinstance(items, str):
        return []
    if not isinstance(items, list):
        return [RuleFinding("R6", "input", "is neither text nor a list of items")]
    rules = (r1, r2, r3, r4, r5, r6, r7, r8, r10, r11, r12, r13, r14)
    return run(rules, ResponsesRequest(items, continued, earlier), frozenset())


def r1(subject: ResponsesRequest) -> Iterator[Breach]:
    """Every call has exactly one output with its call_id in the input
    [router-for-me/CLIProxyAPI#2368]."""
    outputs = [
        item.get("call_id") for item in objects(subject.items) if item.get("type") in OUTPUTS
    ]
    for path, item in subject.numbered:
        if item.get("type") in CALLS and (count := outputs.count(item.get("call_id"))) != 1:
            yield path, f"has {count} outputs"


def r2(subject: ResponsesRequest) -> Iterator[Breach]:
    """Every output names a call of the input, or of the response before
    [continuedev/continue#10092, can1357/oh-my-pi#106]."""
    calls = {item.get("call_id") for item in objects(subject.items) if item.get("type") in CALLS}
    for path, item in subject.numbered:
        if (
            item.get("type") in OUTPUTS
            and item.get("call_id") not in calls
            and not subject.continued
        ):
            yield path, "answers no call of the input"


def r3(subject: ResponsesRequest) -> Iterator[Breach]:
    """An output comes after its call, and no call_id is used twice on either side [inference; Codex
    does not mend it]."""
    seen: set[tuple[bool, Any]] = set()
    for path, item in subject.numbered:
        kind, name = item.get("type"), item.get("call_id")
        if kind not in CALLS and kind not in OUTPUTS:
            continue
        if (kind in CALLS, name) in seen:
            yield path, f"uses the call_id {name!r} again"
        if kind in OUTPUTS and (True, name) not in seen and not subject.continued:
            yield path, "comes before its call"
        seen.add((kind in CALLS, name))


def r4(subject: ResponsesRequest) -> Iterator[Breach]:
    """Kinds match: function_call and function_call_output, custom_tool_call and
    custom_tool_call_output; a local_shell_call is answered by a function_call_output [openai/codex
    normalize.rs]."""
    kinds = {
        item.get("call_id"): item["type"]
        for item in objects(subject.items)
        if item.get("type") in CALLS
    }
    for path, item in subject.numbered:
        call = kinds.get(item.get("call_id"))
        if item.get("type") in OUTPUTS and call is not None and CALLS[call] != item["type"]:
            yield path, f"answers a {call}"


def r5(subject: ResponsesRequest) -> Iterator[Breach]:
    """An output has a call_id: strict endpoints refuse those without, although the type allows it
    [openai/codex#42088; local]."""
    for path, item in subject.numbered:
        if item.get("type") in (*CALLS, *OUTPUTS) and not item.get("call_id"):
            yield f"{path}.call_id", "is required"


def r6(subject: ResponsesRequest) -> Iterator[Breach]:
    """Items are objects. Arguments and a custom call's input are text; an output is text or a list
    of text, image and file parts [local]."""
    for index, item in enumerate(subject.items):
        if not isinstance(item, Mapping):
            yield f"input[{index}]", "is not an object"
    for path, item in subject.numbered:
        kind = item.get("type")
        if kind == "function_call" and not (
            isinstance(item.get("arguments"), str) and item.get("name")
        ):
            yield f"{path}.arguments", "is not a string, or the name is missing"
        if kind == "custom_tool_call" and not (
            isinstance(item.get("input"), str) and item.get("name")
        ):
            yield f"{path}.input", "is not a string, or the name is missing"
        if kind in OUTPUTS:
            output = item.get("output")
            kinds = ("input_text", "input_image", "input_file")
            parts = isinstance(output, list) and all(
                part.get("type") in kinds for part in objects(output)
            )
            if not isinstance(output, str) and not parts:
                yield f"{path}.output", "is neither text nor a list of parts"


def r7(subject: ResponsesRequest) -> Iterator[Breach]:
    """Messages are of user, system and developer, with input parts, or of the assistant, with
    output_text and refusal; there is no role tool [local: rejected]."""
    for path, item in subject.numbered:
        if item.get("type", "message") != "message":
            continue
        role, content = item.get("role"), item.get("content")
        if role not in ("user", "system", "developer", "assistant"):
            yield f"{path}.role", f"is {role!r}"
        if not isinstance(content, str | list):
            yield f"{path}.content", "is neither text nor a list of parts"
        allowed = ("output_text", "refusal") if role == "assistant" else _INPUT
        for where, part in numbered(content, f"{path}.content"):
            kind = part.get("type")
            if kind not in allowed:
                yield f"{where}.type", f"{kind!r} has no place in a message of {role}"
            elif kind in ("input_text", "output_text") and not isinstance(part.get("text"), str):
                yield f"{where}.text", "is not a string"


def r8(subject: ResponsesRequest) -> Iterator[Breach]:
    """Reasoning is directly followed by what it produced, a message of the assistant or a call
    [continue#8933, #11994; vercel/ai#7099; openai-agents-python#1611]."""
    items = subject.numbered
    for (path, item), following in zip(items, [*items, ("", {})][1:], strict=True):
        if item.get("type") != "reasoning":
            continue
        behind = following[1]
        produced = behind.get("type") in (
            *CALLS,
            "reasoning",
            "web_search_call",
            "tool_search_call",
        )
        if not produced and behind.get("role") != "assistant":
            yield path, "is not followed by what it produced"
        if not item.get("id"):
            yield f"{path}.id", "is required"


def r10(subject: ResponsesRequest) -> Iterator[Breach]:
    """Ids of items are unique, begin as their type does (msg, fc, rs) and are of letters, digits,
    `_` and `-` [earendil-works/pi#5147, #5151; Wei-Shaw/sub2api#3981, BerriAI/litellm#27333]."""
    seen: set[Any] = set()
    for path, item in subject.numbered:
        name = item.get("id")
        if name is None:
            continue
        if name in seen:
            yield f"{path}.id", "was used before"
        seen.add(name)
        prefix = _PREFIXES.get(str(item.get("type", "message")), "")
        if not isinstance(name, str) or not _ID.fullmatch(name) or not name.startswith(prefix):
            yield (
                f"{path}.id",
                f"must begin with {prefix or 'a letter'} and hold letters, digits, _ and - only",
            )


def r11(subject: ResponsesRequest) -> Iterator[Breach]:
    """A call_id is not empty and has at most 64 characters [decolua/9router#3167, openclaw#875,
    pydantic-ai#4389]."""
    for path, item in subject.numbered:
        name = item.get("call_id")
        if name is not None and not (isinstance(name, str) and 0 < len(name) <= MAX_ID):
            yield f"{path}.call_id", f"must be a string of 1 to {MAX_ID} characters"


def r12(subject: ResponsesRequest) -> Iterator[Breach]:
    """A compaction's `encrypted_content` is the provider's own text, unmodified [inference]: here,
    that it is there."""
    for path, item in subject.numbered:
        content = item.get("encrypted_content")
        if item.get("type") == "compaction" and not (isinstance(content, str) and content):
            yield f"{path}.encrypted_content", "is required"


def r13(subject: ResponsesRequest) -> Iterator[Breach]:
    """An image has an `image_url`, https or data, or a `file_id`, and a detail of auto, low, high
    or original [codex schema, local]."""
    for path, item in subject.numbered:
        for key in ("content", "output"):
            for where, part in numbered(item.get(key), f"{path}.{key}"):
                if part.get("type") != "input_image":
                    continue
                url = part.get("image_url")
                if not part.get("file_id") and not str(url or "").startswith(
                    ("https://", "http://", "data:image/")
                ):
                    yield where, "needs an image_url (https or data) or a file_id"
                if part.get("detail", "auto") not in DETAILS:
                    yield f"{where}.detail", f"must be one of {', '.join(DETAILS)}"


def r14(subject: ResponsesRequest) -> Iterator[Breach]:
    """Caching is by exact prefix: what was sent before comes again as it was; at most four explicit
    breakpoints [developers.openai.com/api/docs/guides/prompt-caching; local doc string]."""
    yield from prefix_breaks(subject.earlier, subject.items, "input")
    marks = sum(
        "prompt_cache_breakpoint" in part
        for item in objects(subject.items)
        for part in objects(item.get("content"))
    )
    if marks > MAX_BREAKPOINTS:
        yield "input", f"has {marks} cache breakpoints, at most {MAX_BREAKPOINTS} count"
