"""What a tool of recall answers, in JSON. Texts of messages and summaries come without secrets and
inside fences: they are data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import orjson

from contextengine_server.context.summary_text import fenced
from contextengine_server.store.rows import SummaryRow

from ..expansion import Brought
from ..query import Hit
from ..snippets import Redact
from ..texts import role_name, text_of_row

_NAME_CHARS = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ToolAnswer(msgspec.Struct, frozen=True):
    """What a tool answered."""

    json: bytes
    is_error: bool = False
    recovered: int = 0
    """How many hits, summaries and messages it brought back."""
    fills: bool = False
    """True where it brought back as much as there was room for."""


def told_hit(hit: Hit, here: str | None = None) -> dict[str, Any]:
    """A hit, with the turns beside it. `here`: the session that was asked, where a hit of another
    is to name its own."""
    if hit.summary is not None:
        said = {"kind": "summary", **told_summary(hit.summary)}
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
    if here is not None and hit.session != here:
        said["session_id"] = hit.session
    return {**said, "score": round(hit.score, 3), "snippet": hit.snippet, **turns}


def told_item(one: Brought, redact: Redact) -> dict[str, Any]:
    """A summary or message that was brought back."""
    if one.summary is not None:
        said, text = {"kind": "summary", **told_summary(one.summary)}, one.summary.text
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
    if one.piece is not None:
        return {**said, "text": one.piece.shown(redact)}
    return {**said, "text": fenced(redact([text])[0])}


def told_summary(row: SummaryRow) -> dict[str, Any]:
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


def one_line(text: str) -> str:
    """A name that a model chose, within a line of ours."""
    return " ".join(text.split())[:_NAME_CHARS]


def refusal(code: str, message: str, argument: str) -> ToolAnswer:
    """What the model is told where a call of its cannot be answered."""
    return ToolAnswer(
        orjson.dumps({"error": {"code": code, "argument": argument, "message": message}}),
        is_error=True,
    )
