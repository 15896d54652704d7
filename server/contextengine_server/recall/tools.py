"""Recall as tools for the model: what they are called, what they take, and what they answer, in
JSON.

A model's mistake is answered with what was wrong and what to do, never with a failed call. Texts of
messages and summaries come without secrets and inside fences: they are data.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import orjson

from contextengine_server.context.summary_text import fenced
from contextengine_server.errors import InvalidField, RowNotFound
from contextengine_server.store.rows import SessionHead

from .agent_search import search_agent
from .archive import Archive
from .arguments import Arguments, InvalidArgument
from .expansion import MAX_DEPTH, MIN_TOKENS, Wanted, expand
from .inspection import inspect
from .model_tools.answers import (
    ToolAnswer,
    one_line,
    refusal,
    told_hit,
    told_item,
    told_summary,
)
from .model_tools.definitions import MAX_HITS, TOOLS
from .query import DEFAULT_LIMIT, Query
from .search import MAX_QUERY_BYTES, indexed, search
from .texts import ROLES

WAIT_S = 2.0
"""How long a search waits for the newest messages to be indexed."""

_CHARS_A_TOKEN = 4
_READS = ("sequences", "summary_id", "max_tokens")
_SEARCHES = (
    "all_sessions",
    "key_sessions",
    "mode",
    "scope",
    "limit",
    "role",
    "first_sequence",
    "last_sequence",
)
"""Arguments of session_search that go with reading, and with searching, alone."""


async def run(
    archive: Archive,
    head: SessionHead,
    name: str,
    arguments_json: bytes,
    offered: tuple[str, ...],
    max_tokens: int,
    max_depth: int = MAX_DEPTH,
    *,
    alone: bool = False,
) -> ToolAnswer:
    """Runs a tool for the model. `offered`: the tools that there are for this session; `max_tokens`
    and `max_depth`: what may be brought back at once; `alone`: no other session of the agent may be
    read."""
    if name not in offered or name not in TOOLS:
        there = (
            f"the tools are {', '.join(offered)}"
            if offered
            else "this session's engine offers none"
        )
        return refusal("unknown_tool", f"there is no tool {one_line(name)!r}: {there}", "name")
    try:
        given = Arguments.of(arguments_json, TOOLS[name].properties)
        if name == "ctx_search":
            _open(given, ("key_sessions",), alone=alone)
            return await _search(archive, head, given)
        if name == "session_search":
            return await _session_search(archive, head, given, max_tokens, max_depth, alone=alone)
        if name == "ctx_inspect":
            return await _inspect(archive, head, given, max_tokens)
        _open(given, ("session_id",), alone=alone)
        if "session_id" in given.given:
            head = await _of_key(archive, head, given.text("session_id"))
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
        all_sessions=given.flag("all_sessions"),
        key_sessions=given.flag("key_sessions"),
    )
    if query.others and (query.first or query.last):
        argument = "first_sequence" if query.first else "last_sequence"
        raise InvalidArgument(
            argument,
            f"is of one session: leave it out with {query.others}",
            "contradictory_arguments",
        )
    if query.all_sessions and query.key_sessions:
        raise InvalidArgument(
            "key_sessions", "is within all_sessions: leave one out", "contradictory_arguments"
        )
    fresh = False
    with suppress(TimeoutError):
        async with asyncio.timeout(WAIT_S):
            await indexed(archive, head, head.revision)
            fresh = True
    if query.others:
        page = await search_agent(archive, head, query)
    else:
        page = await search(archive, head, query)
    hits = [told_hit(hit, head.scope.session if query.others else None) for hit in page.hits]
    said: dict[str, Any] = {"hits": hits}
    if page.total is not None:
        said["total"] = page.total
    if page.next_page:
        said["next_page"] = page.next_page
    if not fresh:
        said["note"] = "The newest messages cannot be found yet: search again in a moment."
    return ToolAnswer(orjson.dumps(said), recovered=len(page.hits))


async def _session_search(
    archive: Archive,
    head: SessionHead,
    given: Arguments,
    max_tokens: int,
    max_depth: int,
    *,
    alone: bool,
) -> ToolAnswer:
    """Finds messages, or reads those that are named."""
    reads = [name for name in ("sequences", "summary_id") if name in given.given]
    if ("query" in given.given) == bool(reads):
        code = "contradictory_arguments" if reads else "missing_argument"
        raise InvalidArgument(
            "query", "is required, or sequences or summary_id: search for words, or read", code
        )
    wrong = _SEARCHES if reads else _READS
    for name in wrong:
        if name in given.given:
            where = "a search" if reads else "reading sequences or a summary_id"
            raise InvalidArgument(name, f"belongs to {where}", "contradictory_arguments")
    _open(given, ("session_id", "all_sessions", "key_sessions"), alone=alone)
    if "session_id" in given.given:
        head = await _other(archive, head, given.text("session_id"))
    if not reads:
        return await _search(archive, head, given)
    return await _expand(
        archive, head, given, max_tokens, max_depth, depth=max_depth, messages=True
    )


def _open(given: Arguments, others: tuple[str, ...], *, alone: bool) -> None:
    """Raises InvalidArgument where a session that may not read others is asked to."""
    for argument in others if alone else ():
        if given.given.get(argument):
            raise InvalidArgument(
                argument, "this session may not read others: leave it out", "permission_denied"
            )


async def _of_key(archive: Archive, head: SessionHead, session: str) -> SessionHead:
    """Another session of the same key, or this one. Raises InvalidArgument."""
    found = await _other(archive, head, session)
    if found.scope != head.scope and found.session_key != (head.session_key or None):
        raise InvalidArgument(
            "session_id", "names no session: give one that a hit answered", "not_found"
        )
    return found


async def _other(archive: Archive, head: SessionHead, session: str) -> SessionHead:
    """Another session of the agent. Raises InvalidArgument."""
    found = await archive.store.head(head.scope._replace(session=session))
    if found is None:
        raise InvalidArgument(
            "session_id", "names no session: give one that a hit answered", "not_found"
        )
    return found


async def _inspect(
    archive: Archive, head: SessionHead, given: Arguments, max_tokens: int
) -> ToolAnswer:
    found = await inspect(archive, head, given.text("summary_id"), retired=False)

    def write() -> bytes:
        text, room = archive.redact([found.row.text])[0], max_tokens * _CHARS_A_TOKEN
        return orjson.dumps(
            {
                "summary": told_summary(found.row),
                "children": [told_summary(child) for child in found.children],
                "messages_by_role": found.messages_by_role,
                "tool_calls": {one_line(tool): count for tool, count in found.tool_calls.items()},
                "text": fenced(text if len(text) <= room else text[:room] + " …"),
            }
        )

    return ToolAnswer(await asyncio.to_thread(write), recovered=1, fills=True)


async def _expand(
    archive: Archive,
    head: SessionHead,
    given: Arguments,
    max_tokens: int,
    max_depth: int,
    *,
    depth: int = 1,
    messages: bool = False,
) -> ToolAnswer:
    """`depth` and `messages`: what is brought back where the arguments do not say."""
    ids, sequences = given.texts("summary_id"), given.numbers("sequences")
    if not ids and not sequences:
        raise InvalidArgument(
            "summary_id", "is required, or sequences: say what to bring back", "missing_argument"
        )
    wanted = Wanted(
        summary_ids=ids,
        sequences=sequences,
        max_tokens=max(MIN_TOKENS, min(given.number("max_tokens", max_tokens), max_tokens)),
        depth=max(1, min(given.number("depth", depth), max_depth)),
        messages=given.flag("include_messages") or messages,
        page=given.text("page", ""),
        retired=False,
    )
    found = await expand(archive, head, wanted)
    items = await asyncio.to_thread(lambda: [told_item(one, archive.redact) for one in found.items])
    said: dict[str, Any] = {"items": items, "tokens": found.tokens}
    if found.missing:
        said["missing"] = found.missing
    if found.next_page:
        said["truncated"] = True
        said["next_page"] = found.next_page
    return ToolAnswer(orjson.dumps(said), recovered=len(found.items), fills=True)
