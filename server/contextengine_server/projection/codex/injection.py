"""Records as items for `thread/inject_items`: roles and tool pairs as Codex itself keeps them, all
else as quoted records.

Ids are left out. Outputs that Codex would cut blindly are cut here, to as many bytes as it would
keep, around a line that says what is missing.
Nothing gets a role that Codex loses (system) or passes on although providers refuse it (tool).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from contextengine_server.context.message import NO_RESULT

from ..call_ids import PLAIN, CallIds
from ..model import Loss
from ..text import sha256
from .jsonl import looks_contextual
from .records import Record, line

LABEL = "Record of this conversation so far, quoted as data:\n"
"""Stands before a record in a message of the user's role."""

Made = dict[str, Any]


def items_of(records: Sequence[Record], output_bytes: int, losses: list[Loss]) -> list[Made]:
    """The records as Responses items, each call followed by its output once the calls beside it are
    said."""
    ids = CallIds(PLAIN, losses)
    made: list[Made] = []
    waiting: list[tuple[Record, str]] = []
    answers = _answers(records)
    taken: set[int] = set()
    calls: dict[str, int] = {}
    for at, record in enumerate(records):
        kind = record["t"]
        if kind == "result" and at in taken:
            continue
        if kind == "call":
            ordinal = calls[record["id"]] = calls.get(record["id"], 0) + 1
            name = ids.name(record["call"], f"{record['id']}:{ordinal}", -1)
            made.append(
                {
                    "type": "function_call",
                    "call_id": name,
                    "name": record["name"],
                    "arguments": record["args"] if "args" in record else line(record["stub"]),
                }
            )
            waiting.append((record, name))
            continue
        if waiting:
            made += _outputs(waiting, answers, records, output_bytes, taken, losses)
            if at in taken:
                continue
        made.append(_message(record))
    if waiting:
        made += _outputs(waiting, answers, records, output_bytes, taken, losses)
    return made


def developer_item(text: str) -> Made:
    """Developer instructions said anew in a thread that has others."""
    return _said("developer", text)


def _answers(records: Sequence[Record]) -> dict[int, int]:
    """Each call's result, by their places: the first result of its id behind it that no earlier
    call has."""
    open_calls: dict[str, list[int]] = {}
    found: dict[int, int] = {}
    for at, record in enumerate(records):
        if record["t"] == "call":
            open_calls.setdefault(record["call"], []).append(at)
        elif record["t"] == "result" and open_calls.get(record["call"]):
            found[open_calls[record["call"]].pop(0)] = at
    return {id(records[call]): at for call, at in found.items()}


def _outputs(
    waiting: list[tuple[Record, str]],
    answers: dict[int, int],
    records: Sequence[Record],
    output_bytes: int,
    taken: set[int],
    losses: list[Loss],
) -> list[Made]:
    made = []
    for call, name in waiting:
        at = answers.get(id(call))
        output = NO_RESULT
        if at is not None:
            taken.add(at)
            output = _output(records[at], output_bytes, losses)
        made.append({"type": "function_call_output", "call_id": name, "output": output})
    waiting.clear()
    return made


def _output(record: Record, output_bytes: int, losses: list[Loss]) -> str:
    if "stub" in record:
        return line(record["stub"])
    text: str = record["text"]
    if len(text.encode()) > output_bytes:
        losses.append(
            Loss(
                -1,
                f"the output of {record['call']!r} exceeds {output_bytes} bytes: its beginning and"
                " end",
                "X5",
            )
        )
        return head_and_tail(text, output_bytes, record["id"])
    return text


def head_and_tail(text: str, limit: int, name: str) -> str:
    """The beginning and the end of a text, as much of one as of the other, around a line that says
    how much of which message is left out. At most `limit` bytes of UTF-8, no character split."""
    whole = text.encode()
    # The line is made for the most that can be left out, so that it never takes more than that.
    room = limit - len(_left_out(len(whole), len(whole), whole, name))
    if room < 2:
        return line({"t": "stub", "of": name, "bytes": len(whole), "sha256": sha256(whole)})
    head = whole[: room - room // 2].decode(errors="ignore")
    tail = whole[-(room // 2) :].decode(errors="ignore")
    left = len(whole) - len(head.encode()) - len(tail.encode())
    return f"{head}{_left_out(left, len(whole), whole, name).decode()}{tail}"


def _left_out(left: int, size: int, whole: bytes, name: str) -> bytes:
    return (
        f"\n[{left} of {size} bytes of {name} are left out here; sha256 {sha256(whole)}]\n"
    ).encode()


def _message(record: Record) -> Made:
    if record["t"] != "msg" or record["role"] not in ("user", "assistant"):
        return _said("user", LABEL + line(record))
    if record["role"] == "user" and looks_contextual(record["text"]):
        return _said("user", LABEL + line(record))
    return _said(record["role"], record["text"])


def _said(role: str, text: str) -> Made:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def size_of(items: Sequence[Made]) -> int:
    """Characters of items as they travel, about what Codex counts them at."""
    return sum(len(json.dumps(item, ensure_ascii=False)) for item in items)
