"""Recall as tools for the model: what they are called, what they take, and what they answer, in
JSON.

A model's mistake is answered with what was wrong and what to do, never with a failed call. Texts of
messages and summaries come without secrets and inside fences: they are data.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import orjson

from contextengine_server.context.summary_text import fenced
from contextengine_server.errors import InvalidField, RowNotFound
from contextengine_server.store.rows import SessionHead, SummaryRow

from .archive import Archive
from .arguments import Arguments, InvalidArgument
from .expansion import MAX_DEPTH, MIN_TOKENS, Brought, Wanted, expand
from .inspection import inspect
from .query import DEFAULT_LIMIT, Hit, Query
from .search import MAX_QUERY_BYTES, indexed, search
from .texts import ROLES, role_name, text_of_row

MAX_HITS = 30
"""The most hits of one ctx_search, as in Comis's tool of that name (docs/dag.md). More are clamped,
not refused."""
WAIT_S = 2.0
"""How long ctx_search waits for the newest messages to be indexed."""

_CHARS_A_TOKEN = 4
_NAME_CHARS = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_PAGE = {"type": "string", "description": "The next_page of the answer before, to go on with it."}
_SUMMARY = {
    "type": "string",
    "description": "The id of a summary, as its header or ctx_search says it.",
}


class Tool(msgspec.Struct, frozen=True):
    """A tool, as the model reads of it."""

    name: str
    description: str
    properties: Mapping[str, Any]
    required: tuple[str, ...] = ()

    @property
    def schema(self) -> bytes:
        """The JSON schema of its arguments."""
        return orjson.dumps(
            {
                "type": "object",
                "properties": self.properties,
                "required": self.required,
                "additionalProperties": False,
            }
        )


TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "ctx_search",
            "Searches this conversation's whole history, also what was summarized or left out of"
            " the context. Finds words, identifiers, paths, numbers and phrases in quotes. Answers"
            " hits with snippets, best first, and how the turns before and after them begin; open"
            " them with ctx_expand.",
            {
                "query": {
                    "type": "string",
                    "description": "What to look for; with mode regex an RE2 expression.",
                },
                "scope": {
                    "type": "string",
                    "enum": ["both", "messages", "summaries"],
                    "default": "both",
                },
                "mode": {"type": "string", "enum": ["text", "regex"], "default": "text"},
                "limit": {
                    "type": "integer",
                    "default": DEFAULT_LIMIT,
                    "description": f"Hits wanted; at most {MAX_HITS} are given.",
                },
                "role": {
                    "type": "string",
                    "enum": list(ROLES.values()),
                    "description": "Only messages of this role.",
                },
                "first_sequence": {
                    "type": "integer",
                    "description": "Only messages from this sequence on.",
                },
                "last_sequence": {
                    "type": "integer",
                    "description": "Only messages up to this sequence.",
                },
                "page": _PAGE,
            },
            ("query",),
        ),
        Tool(
            "ctx_inspect",
            "Says what a summary covers: its range and times, the summaries it was made of, how"
            " many messages of each role and which tools were called, and its text.",
            {"summary_id": _SUMMARY},
            ("summary_id",),
        ),
        Tool(
            "ctx_expand",
            "Brings back what lies under a summary, or messages by their sequences, word for word,"
            " within a token limit. Where the answer has a next_page, call again with it as page.",
            {
                "summary_id": _SUMMARY,
                "sequences": {
                    "type": "array",
                    "items": {"type": "integer"},
                    "description": "Sequences of messages, as ctx_search answers them.",
                },
                "depth": {
                    "type": "integer",
                    "default": 1,
                    "description": f"How many levels of summaries to open, at most {MAX_DEPTH}.",
                },
                "include_messages": {
                    "type": "boolean",
                    "default": False,
                    "description": (
                        "Also the messages under every summary opened. Those of a summary of depth"
                        " 0 always come."
                    ),
                },
                "max_tokens": {
                    "type": "integer",
                    "description": "The most tokens to bring back at once.",
                },
                "page": _PAGE,
            },
        ),
    )
}
"""The tools by name."""


class ToolAnswer(msgspec.Struct, frozen=True):
    """What a tool answered."""

    json: bytes
    is_error: bool = False
    recovered: int = 0
    """How many hits, summaries and messages it brought back."""


async def run(
    archive: Archive,
    head: SessionHead,
    name: str,
    arguments_json: bytes,
    offered: tuple[str, ...],
    max_tokens: int,
    max_depth: int = MAX_DEPTH,
) -> ToolAnswer:
    """Runs a tool for the model. `offered`: the tools that there are for this session; `max_tokens`
    and `max_depth`: what ctx_expand may bring back at once."""
    if name not in offered or name not in TOOLS:
        there = (
            f"the tools are {', '.join(offered)}"
            if offered
            else "this session's engine offers none"
        )
        return refusal("unknown_tool", f"there is no tool {_line(name)!r}: {there}", "name")
    try:
        given = Arguments.of(arguments_json, TOOLS[name].properties)
        if name == "ctx_search":
            return await _search(archive, head, given)
        if name == "ctx_inspect":
            return await _inspect(archive, head, given, max_tokens)
        return await _expand(archive, head, given, max_tokens, max_depth)
    except InvalidArgument as error:
        return refusal(error.code, str(error), error.argument)
    except RowNotFound as error:
        return refusal("not_found", error.text, "summary_id")
    except InvalidField as error:
        field = error.violations[0].field
        return refusal("invalid_value", error.text, {"page_token": "page"}.get(field, field))


async def _search(archive: Archive, head: SessionHead, given: Arguments) -> ToolAnswer:
    text = given.text("query")
    if len(text.encode()) > MAX_QUERY_BYTES:
        raise InvalidArgument("query", f"is longer than {MAX_QUERY_BYTES} bytes: shorten it")
    scope, role = given.choice("scope", "both"), given.choice("role", "")
    query = Query(
        text,
        regex=given.choice("mode", "text") == "regex",
        messages=scope != "summaries",
        summaries=scope != "messages",
        limit=max(1, min(given.number("limit", DEFAULT_LIMIT), MAX_HITS)),
        page=given.text("page", ""),
        roles=tuple(number for number, known in ROLES.items() if known == role),
        first=max(0, given.number("first_sequence", 0)),
        last=max(0, given.number("last_sequence", 0)),
    )
    fresh = False
    with suppress(TimeoutError):
        async with asyncio.timeout(WAIT_S):
            await indexed(archive, head, head.revision)
            fresh = True
    page = await search(archive, head, query)
    said: dict[str, Any] = {"hits": [_hit(head, hit) for hit in page.hits]}
    if page.total is not None:
        said["total"] = page.total
    if page.next_page:
        said["next_page"] = page.next_page
    if not fresh:
        said["note"] = "The newest messages cannot be found yet: search again in a moment."
    return ToolAnswer(orjson.dumps(said), recovered=len(page.hits))


async def _inspect(
    archive: Archive, head: SessionHead, given: Arguments, max_tokens: int
) -> ToolAnswer:
    found = await inspect(archive, head, given.text("summary_id"), retired=False)

    def write() -> bytes:
        text, room = archive.redact(found.row.text), max_tokens * _CHARS_A_TOKEN
        return orjson.dumps(
            {
                "summary": _row(found.row),
                "children": [_row(child) for child in found.children],
                "messages_by_role": found.messages_by_role,
                "tool_calls": {_line(tool): count for tool, count in found.tool_calls.items()},
                "text": fenced(text if len(text) <= room else text[:room] + " …"),
            }
        )

    return ToolAnswer(await asyncio.to_thread(write), recovered=1)


async def _expand(
    archive: Archive, head: SessionHead, given: Arguments, max_tokens: int, max_depth: int
) -> ToolAnswer:
    ids, sequences = given.texts("summary_id"), given.numbers("sequences")
    if not ids and not sequences:
        raise InvalidArgument(
            "summary_id", "is required, or sequences: say what to bring back", "missing_argument"
        )
    wanted = Wanted(
        summary_ids=ids,
        sequences=sequences,
        max_tokens=max(MIN_TOKENS, min(given.number("max_tokens", max_tokens), max_tokens)),
        depth=max(1, min(given.number("depth", 1), max_depth)),
        messages=given.flag("include_messages"),
        page=given.text("page", ""),
        retired=False,
    )
    found = await expand(archive, head, wanted)
    items = await asyncio.to_thread(lambda: [_brought(one, archive.redact) for one in found.items])
    said: dict[str, Any] = {"items": items, "tokens": found.tokens}
    if found.missing:
        said["missing"] = found.missing
    if found.next_page:
        said["truncated"] = True
        said["next_page"] = found.next_page
    return ToolAnswer(orjson.dumps(said), recovered=len(found.items))


def _hit(head: SessionHead, hit: Hit) -> dict[str, Any]:
    if hit.summary is not None:
        said = {"kind": "summary", **_row(hit.summary)}
    else:
        said = {
            "kind": "message",
            "sequence": hit.sequence,
            "role": role_name(hit.role),
            **_time(hit.time_ms),
        }
    turns = {
        name: {
            "sequence": turn.sequence,
            "role": role_name(turn.role),
            "snippet": turn.snippet,
        }
        for name, turn in (("before", hit.before), ("after", hit.after))
        if turn is not None
    }
    return {**said, "score": round(hit.score, 3), "snippet": hit.snippet, **turns}


def _brought(one: Brought, redact: Callable[[str], str]) -> dict[str, Any]:
    if one.summary is not None:
        said, text = {"kind": "summary", **_row(one.summary)}, one.summary.text
    else:
        assert one.message is not None
        row = one.message
        said = {
            "kind": "message",
            "sequence": row.sequence,
            "role": role_name(row.role),
            **_time(row.time_ms),
        }
        text = text_of_row(row) if one.piece is None else ""
    return {**said, "text": fenced(redact(text)) if one.piece is None else one.piece.shown(redact)}


def _row(row: SummaryRow) -> dict[str, Any]:
    """The facts of a summary, from its row."""
    return {
        "summary_id": row.id,
        "depth": row.depth,
        "first_sequence": row.first_sequence,
        "last_sequence": row.last_sequence,
        "messages": row.message_count,
        "tokens": row.tokens,
        **_time(row.start_ms, "start_time"),
        **_time(row.end_ms, "end_time"),
        **({"fallback": True} if row.fallback else {}),
        **({"children": list(row.children)} if row.children else {}),
    }


def _time(time_ms: int | None, name: str = "time") -> dict[str, str]:
    if time_ms is None:
        return {}
    try:
        return {name: (_EPOCH + timedelta(milliseconds=time_ms)).strftime("%Y-%m-%dT%H:%M:%SZ")}
    except OverflowError:
        return {}


def _line(text: str) -> str:
    """A name that a model chose, within a line of ours."""
    return " ".join(text.split())[:_NAME_CHARS]


def refusal(code: str, message: str, argument: str) -> ToolAnswer:
    """What the model is told where a call of its cannot be answered."""
    return ToolAnswer(
        orjson.dumps({"error": {"code": code, "argument": argument, "message": message}}),
        is_error=True,
    )
