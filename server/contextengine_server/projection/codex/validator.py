"""The rules of what goes to the Codex app server, all measured with Codex 0.169: see
docs/projection.md for how.

The subject is an object with any of `developerInstructions`, `input` (of turn/start), `items` (of
thread/inject_items), `additionalContext` and `toolOutput`. Items are judged by the rules of OpenAI
Responses as well, whose findings keep their names.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from .. import openai_responses
from ..rules import Breach, RuleFinding, mapping, numbered, objects, run

TURN_CHARS, OUTPUT_BYTES, KNOWN_OUTPUT_BYTES, CONTEXT_BYTES = 1 << 20, 12_000, 48_000, 4_000
_MEMBERS = {"developerInstructions", "input", "items", "additionalContext", "toolOutput"}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"RIFF")
_OWN = re.compile(
    r"\s*(?:<(environment_context|skill|turn_aborted|user_shell_command|subagent_notification)>.*</\1>"
    r"|Another language model started to solve this problem|# AGENTS\.md"
    r" instructions.*</INSTRUCTIONS>)",
    re.DOTALL,
)


class CodexRequest(msgspec.Struct, frozen=True):
    """What is sent, and how much of an output the model's policy keeps."""

    body: Mapping[str, Any]
    output_bytes: int

    @property
    def items(self) -> list[Mapping[str, Any]]:
        """The items to inject."""
        return objects(self.body.get("items"))

    @property
    def texts(self) -> list[str]:
        """The texts of the turn."""
        return [
            str(part.get("text"))
            for part in objects(self.body.get("input"))
            if part.get("type") == "text"
        ]


def validate(body: Any, model: str = "") -> list[RuleFinding]:
    """The findings on what goes to the app server. `model` decides how long an output may be."""
    if not isinstance(body, Mapping) or (body and not _MEMBERS & body.keys()):
        return [
            RuleFinding("X6", "", "must be an object with developerInstructions, input or items")
        ]
    known = model.startswith(("gpt-", "codex-"))
    subject = CodexRequest(body, KNOWN_OUTPUT_BYTES if known else OUTPUT_BYTES)
    found = run((x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11), subject)
    return found + (openai_responses.validate(body["items"]) if body.get("items") else [])


def x1(subject: CodexRequest) -> Iterator[Breach]:
    """The turn's texts have at most 1,048,576 code points together."""
    if (total := sum(map(len, subject.texts))) > TURN_CHARS:
        yield "input", f"has {total} characters, at most {TURN_CHARS} are taken"


def x2(subject: CodexRequest) -> Iterator[Breach]:
    """No lone surrogates: Codex does not answer such a line at all."""
    for path, text in _strings(subject.body, ""):
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            yield path, "holds a lone surrogate"


def x3(subject: CodexRequest) -> Iterator[Breach]:
    """A user's text does not look like Codex's own context: it would be dropped at the next
    compaction."""
    for index, text in enumerate(subject.texts):
        if _OWN.match(text):
            yield f"input[{index}].text", "looks like context of Codex's own"
    for path, item in numbered(subject.body.get("items"), "items"):
        for part in objects(item.get("content")):
            if item.get("role") == "user" and _OWN.match(str(part.get("text"))):
                yield path, "looks like context of Codex's own"


def x4(subject: CodexRequest) -> Iterator[Breach]:
    """Developer instructions are not blank: white space would be sent as it is."""
    text = subject.body.get("developerInstructions")
    if text is not None and not str(text).strip():
        yield "developerInstructions", "is blank: leave it out"


def x5(subject: CodexRequest) -> Iterator[Breach]:
    """An injected output is not longer than the model's policy, or Codex cuts it in the middle."""
    for path, item in numbered(subject.body.get("items"), "items"):
        output = item.get("output")
        size = len(output.encode("utf-8", "replace")) if isinstance(output, str) else 0
        if item.get("type") in _OUTPUTS and size > subject.output_bytes:
            yield path, f"has {size} bytes, {subject.output_bytes} are kept"


def x6(subject: CodexRequest) -> Iterator[Breach]:
    """A list of items is not empty, and a message's content is an array of parts."""
    items = subject.body.get("items")
    if items is not None and (not isinstance(items, list) or not items):
        yield "items", "must be a list that is not empty: leave it out where there are none"
    for path, item in numbered(items, "items"):
        if item.get("type") == "message" and not (
            isinstance(item.get("content"), list) and item["content"]
        ):
            yield f"{path}.content", "must be an array of parts that is not empty"


def x7(subject: CodexRequest) -> Iterator[Breach]:
    """`toolOutput` and `input` exclude each other; inputs are of the known types."""
    if subject.body.get("toolOutput") is not None and subject.body.get("input"):
        yield "toolOutput", "stands beside input"
    kinds = ("text", "image", "localImage", "audio", "localAudio", "skill", "mention")
    for path, part in numbered(subject.body.get("input"), "input"):
        if part.get("type") not in kinds:
            yield f"{path}.type", f"must be one of {', '.join(kinds)}"


def x8(subject: CodexRequest) -> Iterator[Breach]:
    """A name in additionalContext is a small letter and up to 63 small letters, digits and `_`; a
    value has at most 4,000 bytes."""
    for key, entry in mapping(subject.body.get("additionalContext")).items():
        name = mapping(entry).get("name")
        if name is not None and not _NAME.fullmatch(str(name)):
            yield (
                f"additionalContext.{key}.name",
                "must be a lower-case letter, then at most 63 lower-case letters, digits or _",
            )
        if len(str(mapping(entry).get("value", "")).encode("utf-8", "replace")) > CONTEXT_BYTES:
            yield (
                f"additionalContext.{key}.value",
                f"has more than {CONTEXT_BYTES} bytes and would be cut",
            )


def x9(subject: CodexRequest) -> Iterator[Breach]:
    """No message of role tool, which Codex passes on, and none of role system, which it loses in
    silence."""
    for path, item in numbered(subject.body.get("items"), "items"):
        if item.get("role") in ("tool", "system"):
            yield f"{path}.role", f"is {item['role']}"


def x10(subject: CodexRequest) -> Iterator[Breach]:
    """Codex mends no order: outputs stand behind their calls, with nothing but calls and outputs
    between."""
    open_calls: set[Any] = set()
    for path, item in numbered(subject.body.get("items"), "items"):
        kind = str(item.get("type"))
        if kind in _OUTPUTS:
            if item.get("call_id") not in open_calls:
                yield path, "is not behind its call"
            open_calls.discard(item.get("call_id"))
        elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
            open_calls.add(item.get("call_id"))
        elif open_calls:
            yield path, "stands between a call and its output"
            open_calls.clear()


def x11(subject: CodexRequest) -> Iterator[Breach]:
    """Pictures can be decoded: those that cannot are replaced by a line of text."""
    urls = [(path, part.get("url")) for path, part in numbered(subject.body.get("input"), "input")]
    for path, item in numbered(subject.body.get("items"), "items"):
        urls += [
            (where, part.get("image_url"))
            for where, part in numbered(item.get("content"), f"{path}.content")
        ]
    for path, url in urls:
        if not isinstance(url, str) or not url.startswith("data:"):
            continue
        try:
            data = base64.b64decode(url.partition(",")[2], validate=True)
        except binascii.Error:
            data = b""
        if not data.startswith(_IMAGES):
            yield path, "is not a picture that can be decoded"


def _strings(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _strings(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _strings(inner, f"{path}[{index}]")
