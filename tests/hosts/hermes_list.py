"""A list of Hermes' messages, and what Hermes 0.19 makes of it (agent/agent_runtime_helpers.py,
hermes_state.py)."""

from __future__ import annotations

import copy
from typing import Any

Row = dict[str, Any]
SCREENSHOT = "[screenshot]"
EPHEMERAL = ("_empty_recovery_synthetic", "_thinking_prefill", "_verification_stop_synthetic")


def text(content: Any) -> str:
    """The words of a content."""
    if isinstance(content, list):
        return "\n".join(str(one["text"]) for one in content if one.get("type") == "text")
    return str(content or "")


def repaired(rows: list[Row]) -> None:
    """As repair_message_sequence: users' messages side by side are joined, and results without a
    call dropped."""
    kept: list[Row] = []
    known: set[str] = set()
    for row in rows:
        if row["role"] == "assistant":
            known = {call["id"] for call in row.get("tool_calls") or []}
        elif row["role"] == "tool":
            if row["tool_call_id"] not in known:
                continue
            known.discard(row["tool_call_id"])
        else:
            known = set()
        if kept and kept[-1]["role"] == row["role"] == "user":
            before = kept[-1]
            if isinstance(before["content"], str) and isinstance(row["content"], str):
                own, more = before.get("_life", ()), row.get("_life", ())
                if (
                    own
                    and more
                    and not (
                        before["content"].endswith("</contextengine>")
                        or row["content"].startswith("<contextengine")
                    )
                ):
                    own, more = own[:-1], ((*own[-1], *more[0]), *more[1:])
                before["content"] = f"{before['content']}\n\n{row['content']}"
                before["_life"] = (*own, *more)
                before.pop("api_content", None)
                continue
        kept.append(row)
    rows[:] = kept


def from_disk(rows: list[Row]) -> list[Row]:
    """As the session database gives them back (append_message, get_messages_as_conversation)."""
    found: list[Row] = []
    for row in rows:
        if any(row.get(flag) for flag in EPHEMERAL):
            continue
        kept = {key: copy.deepcopy(row[key]) for key in row if key[0] != "_" or key == "_life"}
        if "_clean" in row:
            kept |= {"content": row["_clean"], "api_content": row["content"]}
        if isinstance(kept["content"], list) and not row.get("_whole"):
            parts = [part.get("text", SCREENSHOT) for part in kept["content"]]
            kept["content"] = "\n".join(parts)
        if row["role"] != "tool" and isinstance(kept["content"], str):
            kept["content"] = kept["content"].strip()
        found.append(kept)
    return found


def paired(rows: list[Row]) -> None:
    """Raises where a provider would refuse the list."""
    open_calls: list[str] = []
    for row in rows:
        if row["role"] == "tool":
            assert row["tool_call_id"] in open_calls, f"a result without its call: {row}"
            open_calls.remove(row["tool_call_id"])
            continue
        assert not open_calls, f"a call without its result: {open_calls}"
        open_calls = [call["id"] for call in row.get("tool_calls") or []]
