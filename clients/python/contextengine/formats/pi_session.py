"""Pi and OpenClaw session files: a tree of entries, of which one branch is the conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

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
_RESET = "reset"
"""The type of an entry behind which OpenClaw began the conversation anew, under the same id."""
KINDS = ("session", "model_change", "compaction", _LEAF, *SPOKEN, *_SILENT)
"""The types of entries that are known."""


def pi_session(entries: Sequence[Entry], name: str) -> Transcript:
    """The session of a file; `name` is its id where the file has none. Raises FormatError with the
    number of the line."""
    branch, shown = _branch(entries), _shown(entries)
    return _session(branch, shown, len(_beside(branch, shown)), _head(entries), name)


def conversations(entries: Sequence[Entry], name: str) -> list[Transcript]:
    """The session of OpenClaw as pi_session, and another for each time that it began the
    conversation anew, named by its id and that of the reset. Raises FormatError with the number of
    the line."""
    branch, shown, head = _branch(entries), _shown(entries), _head(entries)
    left = len(_beside(branch, shown))
    place_of = {one.node.text("id"): at for at, one in reversed([*enumerate(branch)])}
    place_of.pop("", None)
    begins = [at for at, one in enumerate(branch) if one.node.required("type") == _RESET]
    found: list[Transcript] = []
    for begin, end in zip([-1, *begins], [*begins, len(branch)], strict=True):
        said = branch[begin + 1 : end]
        if begin < 0:
            found.append(_session(said, shown, left, head, name))
            continue
        reset = branch[begin].node
        kept = place_of.get(reset.text("firstKeptEntryId"), begin)
        said = [one for one in branch[kept:begin] if _stays(one)] + said
        # What is on a branch that was left is said once.
        one = _session(said, shown, 0, head, name)
        found.append(replace(one, session_id=f"{one.session_id}:{reset.text('id')}"))
    return found


def _stays(entry: Entry) -> bool:
    message = entry.node.node("message")
    return message is not None and message.text("role") in ("user", "assistant", "toolResult")


def _head(entries: Sequence[Entry]) -> Node | None:
    return next((one.node for one in entries if one.node.required("type") == "session"), None)


def _shown(entries: Sequence[Entry]) -> frozenset[str]:
    """The ids of what a model sees."""
    kinds = (*SPOKEN, "compaction")
    return frozenset(
        one.node.text("id") for one in entries if one.node.required("type") in kinds
    ) - {""}


def _beside(branch: Sequence[Entry], shown: frozenset[str]) -> frozenset[str]:
    """The ids of what a model sees that is not on a branch."""
    return shown.difference([one.node.text("id") for one in branch])


def _session(
    branch: Sequence[Entry], shown: frozenset[str], left: int, head: Node | None, name: str
) -> Transcript:
    """The session of some entries of the file. left: how many entries of branches that were left
    are named with it."""
    session_id, model, provider = name, "", ""
    if head is not None:
        session_id = head.text("id") or name
        model, provider = head.text("modelId"), head.text("provider")
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
    if left:
        left_out["entries of branches that were left"] = left
    return Transcript(
        session_id,
        messages,
        model,
        provider,
        tuple(updates),
        tuple(summaries),
        dict(left_out),
        _beside(branch, shown),
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
