"""The tools of recall, as a model reads of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from ..expansion import MAX_DEPTH
from ..query import DEFAULT_LIMIT
from ..texts import ROLES

MAX_HITS = 30
"""The most hits of one search, as in Comis's ctx_search (docs/dag.md). More are clamped, not
refused."""

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


_SEARCHED: dict[str, Any] = {
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
}
"""How to search, as every tool that does takes it."""
_KEY_SESSIONS = {
    "type": "boolean",
    "default": False,
    "description": "Search also the earlier conversations that this one goes on from by its key.",
}


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
                "key_sessions": _KEY_SESSIONS,
                **_SEARCHED,
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
                "session_id": {
                    "type": "string",
                    "description": "An earlier conversation to read from, as a hit names it.",
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
        Tool(
            "session_search",
            "Searches this conversation's whole history, also what was summarized, cleared or left"
            " out of the context, and with all_sessions your other conversations. Finds words,"
            " identifiers, paths, numbers and phrases in quotes, and answers hits with snippets,"
            " best first. With sequences or a summary_id in place of a query it reads those"
            " messages word for word, in pages.",
            {
                "query": {
                    "type": "string",
                    "description": "What to look for; with mode regex an RE2 expression.",
                },
                "sequences": {
                    "type": "array",
                    "items": {"type": "integer"},
                    "description": "Messages to read, by the sequences that markers and hits name.",
                },
                "summary_id": {
                    "type": "string",
                    "description": "A summary whose messages to read.",
                },
                "session_id": {
                    "type": "string",
                    "description": "Another conversation to search or to read, as a hit names it.",
                },
                "all_sessions": {
                    "type": "boolean",
                    "default": False,
                    "description": "Search your other conversations as well.",
                },
                "key_sessions": _KEY_SESSIONS,
                **_SEARCHED,
                "max_tokens": {
                    "type": "integer",
                    "description": "The most tokens to read at once.",
                },
                "page": _PAGE,
            },
        ),
    )
}
"""The tools by name."""
