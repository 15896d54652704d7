"""Pi and OpenClaw session files: a tree of entries, of which one branch is the conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..types import Message
from .node import Node
from .pi import SPOKEN, message_of
from .session_files import Entry, HostSummary, ModelUpdate, Transcript

_SILENT = {
    "thinking_level_change": "changes of the thinking level",
    "label": "labels",
    "session_info": "names of the session",
    "custom": "states of extensions",
}
"""Entries that no model sees, by what people call them."""
_LEAF = "leaf"
"""The type of an entry that says where a session goes on that went back."""
KINDS = ("session", "model_change", "compaction", _LEAF, *SPOKEN, *_SILENT)
"""The types of entries that are known."""


def pi_session(entries: Sequence[Entry], name: str) -> Transcript:
    """The session of a file; `name` is its id where the file has none. Raises FormatError with the
    number of the line."""
    head = next((one.node for one in entries if one.node.required("type") == "session"), None)
    session_id, model, provider = name, "", ""
    if head is not None:
        session_id = head.text("id") or name
        model, provider = head.text("modelId"), head.text("provider")
    branch = _branch(entries)
    messages: list[Message] = []
    updates: list[ModelUpdate] = []
    summaries: list[HostSummary] = []
    before: dict[str, int] = {}
    at_place: dict[int, int] = {}
    left_out: Counter[str] = Counter()
    for entry in branch:
        node, kind = entry.node, entry.node.required("type")
        with entry.named():
            before[node.text("id")] = at_place[entry.place] = len(messages)
            if kind in SPOKEN:
                messages.append(message_of(node, entry.raw))
            elif kind == "model_change":
                model_id, made_by = node.text("modelId"), node.text("provider")
                updates.append(ModelUpdate(len(messages), model_id, made_by))
            elif kind == "compaction":
                count = _kept_from(node, before, at_place, len(messages))
                summaries.append(HostSummary(node.text("id"), count, node.required("summary")))
            elif kind != "session":
                left_out[_SILENT.get(kind, f"entries of type {kind}")] += 1
    on_branch = {entry.place for entry in branch}
    abandoned = [
        entry.node
        for entry in entries
        if entry.place not in on_branch and entry.node.required("type") in (*SPOKEN, "compaction")
    ]
    if abandoned:
        left_out["entries of branches that were left"] = len(abandoned)
    return Transcript(
        session_id,
        messages,
        model,
        provider,
        tuple(updates),
        tuple(summaries),
        dict(left_out),
        frozenset(node.text("id") for node in abandoned) - {""},
    )


def _branch(entries: Sequence[Entry]) -> list[Entry]:
    """The entries from the root to where the harness goes on: the last one of the file, or the one
    that it went back to. An entry that names no parent follows the one before it, as all do in
    files of the first version."""
    by_id = {one.node.text("id"): one for one in entries if one.node.text("id")}
    path: list[Entry] = []
    seen: set[int] = set()
    at = entries[-1] if entries else None
    if at is not None and at.node.required("type") == _LEAF:
        at = by_id.get(at.node.text("targetId"))
    while at is not None and at.place not in seen:
        seen.add(at.place)
        path.append(at)
        at = _parent(at, entries, by_id)
    return path[::-1]


def _parent(entry: Entry, entries: Sequence[Entry], by_id: dict[str, Entry]) -> Entry | None:
    if "parentId" in entry.node.value:
        return by_id.get(entry.node.text("parentId"))
    return entries[entry.place - 1] if entry.place else None


def _kept_from(node: Node, before: dict[str, int], at_place: dict[int, int], count: int) -> int:
    """How many messages stand before the first that a compaction keeps: all, where it names none of
    this branch."""
    if kept := node.text("firstKeptEntryId"):
        return before.get(kept, count)
    place = node.value.get("firstKeptEntryIndex")
    return at_place.get(place, count) if isinstance(place, int) else count
