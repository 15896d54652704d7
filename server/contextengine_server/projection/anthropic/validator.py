"""The rules of Anthropic's Messages. Sources in brackets; `local`: read in the anthropic SDK 2.12.

Not to be seen in one request, so not here: whether a signature is this model's (A9: `signatures`
says which are), and whether a prefix is long enough to be cached (A12).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ..rules import Breach, RuleFinding, numbered, objects, prefix_breaks, run

IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
CACHEABLE = ("text", "image", "tool_use", "tool_result", "document")
MAX_BREAKPOINTS, MAX_MESSAGES = 4, 100_000
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")

BlockJson = Mapping[str, Any]


class AnthropicRequest(msgspec.Struct, frozen=True):
    """A request as far as the rules look at it."""

    messages: list[Any]
    system: Any = None
    tools: Sequence[Any] = ()
    whole: Mapping[str, Any] | None = None
    """The request, where it was given and not its messages alone."""
    signatures: Collection[str] | None = None
    earlier: Sequence[Any] = ()

    @property
    def turns(self) -> list[tuple[str, str, list[BlockJson]]]:
        """Each message: its path, its role, its blocks (one of text where its content is a
        text)."""
        return [
            (path, str(message.get("role")), _blocks(message.get("content")))
            for path, message in numbered(self.messages, "messages")
        ]


def validate(
    body: Any,
    model: str = "",
    *,
    signatures: Collection[str] | None = None,
    earlier: Sequence[Any] = (),
) -> list[RuleFinding]:
    """The findings on a list of messages, or on a request. `signatures`: those that the model made,
    where that is known; `earlier`: the messages of a request before, whose cached prefix should
    still hold. No rule
    depends on `model`."""
    whole = body if isinstance(body, Mapping) else None
    messages = whole.get("messages") if whole is not None else body
    if not isinstance(messages, list):
        return [RuleFinding("A2", "messages", "is not a list")]
    system, tools = (
        (whole.get("system"), whole.get("tools") or ()) if whole is not None else (None, ())
    )
    subject = AnthropicRequest(messages, system, tools, whole, signatures, earlier)
    rules = (a1, a2, a2_prefill, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14)
    return run(rules, subject, frozenset({"a2_prefill"}))


def a1(subject: AnthropicRequest) -> Iterator[Breach]:
    """`system` stands at the top, as text or text blocks; within the messages only some newer
    models take it [simonw/llm-anthropic#73; local]."""
    system = subject.system
    if system is not None and not isinstance(system, str | list):
        yield "system", "is neither text nor a list of text blocks"
    for path, block in numbered(system, "system"):
        if (
            block.get("type") != "text"
            or not isinstance(block.get("text"), str)
            or not block["text"]
        ):
            yield path, "is not a block of text"
    for path, role, _ in subject.turns:
        if role == "system":
            yield f"{path}.role", "system belongs to the top"


def a2(subject: AnthropicRequest) -> Iterator[Breach]:
    """There are messages; roles are user and assistant, and the user begins; turns of one role side
    by side are merged by the API [local doc string]."""
    if not subject.messages:
        yield "messages", "is empty"
    for index, (path, role, _) in enumerate(subject.turns):
        if role not in ("user", "assistant", "system"):
            yield f"{path}.role", f"is {role!r}"
        if index == 0 and role == "assistant":
            yield f"{path}.role", "the first message is the user's"


def a2_prefill(subject: AnthropicRequest) -> Iterator[Breach]:
    """An assistant's message at the end is the beginning of the answer, which models without
    prefill refuse [local doc string]: advice."""
    if subject.turns and subject.turns[-1][1] == "assistant":
        yield subject.turns[-1][0], "is a prefill, which not every model takes"


def a3(subject: AnthropicRequest) -> Iterator[Breach]:
    """Each tool_use of a message has its tool_result in the next [anthropics/claude-code#8612,
    #8210]."""
    turns = subject.turns
    for (path, role, blocks), following in zip(turns, [*turns, ("", "", [])][1:], strict=True):
        answered = [
            block.get("tool_use_id") for block in following[2] if block.get("type") == "tool_result"
        ]
        for block in blocks:
            if (
                role == "assistant"
                and block.get("type") == "tool_use"
                and block.get("id") not in answered
            ):
                yield path, f"tool_use {block.get('id')!r} has no tool_result in the next message"


def a4(subject: AnthropicRequest) -> Iterator[Breach]:
    """Each tool_result refers, once, to a tool_use of the message before; never in the first
    [claude-code#18947, #13460]."""
    before: list[BlockJson] = []
    for path, _, blocks in subject.turns:
        calls = [block.get("id") for block in before if block.get("type") == "tool_use"]
        for block in blocks:
            if block.get("type") != "tool_result":
                continue
            if block.get("tool_use_id") in calls:
                calls.remove(block["tool_use_id"])
            else:
                yield (
                    path,
                    (
                        f"tool_result {block.get('tool_use_id')!r} has no tool_use in the message"
                        " before"
                    ),
                )
        before = blocks


def a5(subject: AnthropicRequest) -> Iterator[Breach]:
    """In the user's message the tool_result blocks come first, text after them
    [platform.claude.com, handle tool calls]."""
    for path, role, blocks in subject.turns:
        kinds = [block.get("type") == "tool_result" for block in blocks]
        if role == "user" and kinds != sorted(kinds, reverse=True):
            yield path, "a tool_result stands behind something else"


def a6(subject: AnthropicRequest) -> Iterator[Breach]:
    """Nothing but tool_use follows a tool_use in the assistant's message [a recorded answer of the
    API, which was the error of A3]."""
    for path, role, blocks in subject.turns:
        kinds = [block.get("type") == "tool_use" for block in blocks]
        if role == "assistant" and kinds != sorted(kinds):
            yield path, "something stands behind a tool_use"


def a7(subject: AnthropicRequest) -> Iterator[Breach]:
    """Ids of tool_use are unique, of letters, digits, `_` and `-`, at most 64 [trycua/cua#524,
    LibreChat-AI/agents#153, HKUDS/nanobot#4356]."""
    seen: set[Any] = set()
    for path, block in _of_type(subject, "tool_use"):
        name = block.get("id")
        if not isinstance(name, str) or not _ID.fullmatch(name):
            yield path, f"the id {name!r} must have 1 to 64 letters, digits, underscores or hyphens"
        elif name in seen:
            yield path, f"the id {name!r} was used before"
        seen.add(name)


def a8(subject: AnthropicRequest) -> Iterator[Breach]:
    """`input` of a tool_use is an object, not text, and it has a name [local]."""
    for path, block in _of_type(subject, "tool_use"):
        if not isinstance(block.get("input"), Mapping) or not block.get("name"):
            yield path, "needs a name and an object as input"


def a9(subject: AnthropicRequest) -> Iterator[Breach]:
    """A thinking block has its text and its signature, redacted_thinking its data; neither blank,
    altered or of another model [local; langchain#29971, claude-code#63284, claude-code-hub#518]."""
    for path, block in _of_type(subject, "thinking"):
        signature = block.get("signature")
        if (
            not isinstance(block.get("thinking"), str)
            or not isinstance(signature, str)
            or not signature.strip()
        ):
            yield path, "needs its text and a signature"
        elif subject.signatures is not None and signature not in subject.signatures:
            yield path, "carries a signature that this model did not make"
    for path, block in _of_type(subject, "redacted_thinking"):
        if not isinstance(block.get("data"), str) or not block["data"]:
            yield path, "needs its data"


def a10(subject: AnthropicRequest) -> Iterator[Breach]:
    """A turn's thinking is kept whole, at its beginning, or dropped whole [RooCode#10351,
    Antigravity-Manager#139, hermes-agent#24107]."""
    for path, role, blocks in subject.turns:
        kinds = [block.get("type") in ("thinking", "redacted_thinking") for block in blocks]
        if any(kinds) and (role != "assistant" or kinds != sorted(kinds, reverse=True)):
            yield path, "thinking stands behind something else, or is not the assistant's"


def a11(subject: AnthropicRequest) -> Iterator[Breach]:
    """At most four blocks carry cache_control, over tools, system and messages; only text that is
    not empty, images, tool_use, tool_result and documents do; ttl is 5m or 1h
    [Wei-Shaw/sub2api#176, tghamm/Anthropic.SDK#50, browser-use#3636, claude-code#50082,
    askalf/dario#1066; local]."""
    count = sum("cache_control" in tool for tool in objects(list(subject.tools)))
    for path, block in (*numbered(subject.system, "system"), *_all(subject)):
        if block.get("cache_control") is None:
            continue
        count += 1
        control = block["cache_control"]
        if block.get("type") not in CACHEABLE or (
            block.get("type") == "text" and not block.get("text")
        ):
            yield path, "takes no cache_control"
        if not isinstance(control, Mapping) or control.get("type") != "ephemeral":
            yield f"{path}.cache_control", "is not of type ephemeral"
        elif control.get("ttl", "5m") not in ("5m", "1h"):
            yield f"{path}.cache_control.ttl", "is neither 5m nor 1h"
    if count > MAX_BREAKPOINTS:
        yield "cache_control", f"stands on {count} blocks, at most {MAX_BREAKPOINTS} may carry it"


def a12(subject: AnthropicRequest) -> Iterator[Breach]:
    """A cached prefix is exact to the byte, in the order tools, system, messages; the marks
    themselves are no part of it [platform.claude.com, prompt caching]."""
    earlier = [_unmarked(message) for message in objects(list(subject.earlier))]
    now = [_unmarked(message) for message in objects(subject.messages)]
    if earlier and len(now) >= len(earlier):
        # The last turn of a role goes on: blocks appended to it change nothing before them.
        last, goes_on = earlier[-1], now[len(earlier) - 1]
        if (
            goes_on["role"] == last["role"]
            and goes_on["content"][: len(last["content"])] == last["content"]
        ):
            now[len(earlier) - 1] = last
    yield from prefix_breaks(earlier, now, "messages")


def a13(subject: AnthropicRequest) -> Iterator[Breach]:
    """Text blocks are not empty; a user's turn has text that is not white space, or another block;
    an assistant's may be empty [experientiallabs#799, #804, verified live by its authors]."""
    for path, role, blocks in subject.turns:
        for block in blocks:
            if block.get("type") == "text" and not (
                isinstance(block.get("text"), str) and block["text"]
            ):
                yield path, "holds an empty text"
        spoken = [
            block
            for block in blocks
            if block.get("type") != "text" or str(block.get("text")).strip()
        ]
        if not spoken and (role == "user" or blocks):
            yield path, "says nothing"


def a14(subject: AnthropicRequest) -> Iterator[Breach]:
    """Image data are jpeg, png, gif or webp [local]; a whole request has max_tokens and at most
    100,000 messages [local doc string]."""
    for path, block in _of_type(subject, "image"):
        source = block.get("source")
        kind = source.get("type") if isinstance(source, Mapping) else None
        typed = (
            kind == "base64" and source.get("media_type") in IMAGES
            if isinstance(source, Mapping)
            else False
        )
        if not typed and kind not in ("url", "file"):
            yield path, f"the source must be {', '.join(IMAGES)}, a url or a file"
    if (
        subject.whole is not None
        and "model" in subject.whole
        and not subject.whole.get("max_tokens")
    ):
        yield "max_tokens", "is required"
    if len(subject.messages) > MAX_MESSAGES:
        yield "messages", f"holds {len(subject.messages)}, at most {MAX_MESSAGES} are taken"


def _blocks(content: Any) -> list[BlockJson]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)


def _all(subject: AnthropicRequest) -> Iterator[tuple[str, BlockJson]]:
    """Every block of every message, and those within tool results, with their paths."""
    for path, _, blocks in subject.turns:
        for index, block in enumerate(blocks):
            where = f"{path}.content[{index}]"
            yield where, block
            if block.get("type") == "tool_result":
                yield from numbered(block.get("content"), f"{where}.content")


def _of_type(subject: AnthropicRequest, kind: str) -> Iterator[tuple[str, BlockJson]]:
    return ((path, block) for path, block in _all(subject) if block.get("type") == kind)


def _unmarked(message: Mapping[str, Any]) -> dict[str, Any]:
    blocks = [
        {key: value for key, value in block.items() if key != "cache_control"}
        for block in _blocks(message.get("content"))
    ]
    return {"role": message.get("role"), "content": blocks}
