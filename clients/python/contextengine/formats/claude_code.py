"""Claude Code session files: a tree of entries by `uuid` and `parentUuid`, of which one branch is
the conversation.

As Claude Code 2.1 writes them: an entry for each block of a reply, which share the reply's
`message.id`; an entry for each tool result, behind the block that called, so that the results of
parallel calls stand beside the branch; a `compact_boundary` that continues its `logicalParentUuid`
and is followed by the summary; an attachment for what was said while the model worked, which no
other entry holds.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..types import ROLE_ASSISTANT, Message, Native, Part
from .anthropic import FORMAT, from_anthropic, message_of
from .node import Node, member
from .session_files import Entry, HostSummary, ModelUpdate, Transcript

_SILENT = {
    "attachment": "attachments",
    "system": "notices of the harness",
    "queue-operation": "operations of the prompt queue",
    "last-prompt": "marks of the last prompt",
    "mode": "changes of mode",
    "summary": "titles of sessions",
    "file-history-snapshot": "snapshots of files",
}
"""Entries that are no messages, by what people call them."""

PROVIDER = "anthropic"


def is_claude_code(first: Mapping[str, Any]) -> bool:
    """Whether a file that begins with this entry is one of Claude Code's."""
    return any(key in first for key in ("sessionId", "parentUuid", "leafUuid")) or (
        first.get("type") == "file-history-snapshot"
    )


def claude_code_session(entries: Sequence[Entry], name: str) -> Transcript:
    """The session of a file; `name` is its id where the file has none. Raises FormatError with the
    number of the line."""
    branch = _branch(entries)
    spoken = _Spoken()
    for entry in branch:
        with entry.named():
            spoken.take(entry)
    left_out = spoken.left_out
    on_branch = {entry.place for entry in branch}
    beside = [one for one in entries if one.place not in on_branch]
    asides = [one for one in beside if one.node.value.get("isSidechain") is True]
    abandoned = [one for one in beside if _said(one) and one not in asides]
    for one in beside:
        if not _said(one) and one not in asides:
            left_out[_kind(one.node)] += 1
    if asides:
        left_out["entries of subagents"] = len(asides)
    if abandoned:
        left_out["entries of branches that were left"] = len(abandoned)
    found = (one.node.text("sessionId") for one in entries)
    models = spoken.models
    return Transcript(
        next((session_id for session_id in found if session_id), name),
        spoken.messages(),
        models[0].model if models else "",
        PROVIDER if models else "",
        tuple(models[1:]),
        tuple(spoken.summaries),
        dict(left_out),
        frozenset(one.node.text("uuid") for one in abandoned) - {""},
    )


class _Spoken:
    """What the entries of the branch say, in their order."""

    def __init__(self) -> None:
        self._said: list[list[Entry]] = []
        """The entries of each message: several of a reply."""
        self._replies: dict[str, int] = {}
        """The place of each reply by its id."""
        self._before: dict[str, int] = {}
        """How many messages stand before an entry."""
        self._kept = 0
        """How many messages the compaction that begins keeps, from the end."""
        self.models: list[ModelUpdate] = []
        self.summaries: list[HostSummary] = []
        self.left_out: Counter[str] = Counter()

    def take(self, entry: Entry) -> None:
        """The next entry."""
        node = entry.node
        uuid = node.text("uuid")
        self._before[uuid] = len(self._said)
        if node.text("subtype") == "compact_boundary":
            self._kept = self._first_kept(node)
        elif self._said and node.value.get("isCompactSummary") is True:
            (summary,) = from_anthropic([_message(node).value])
            said = "\n".join(part.text.text for part in summary.parts if part.HasField("text"))
            self.summaries.append(HostSummary(uuid, self._kept, said))
        elif not _said(entry):
            self.left_out[_kind(node)] += 1
        elif node.value.get("isApiErrorMessage") is True:
            self.left_out["errors of the provider"] += 1
        else:  # also the summary that a fork begins with: what it tells of stands elsewhere
            self._say(entry)

    def messages(self) -> list[Message]:
        """Every message, the entries of a reply as one."""
        return [_joined(entries) for entries in self._said]

    def _say(self, entry: Entry) -> None:
        message = _message(entry.node)
        reply = _reply(entry.node)
        if reply and reply in self._replies:
            self._said[self._replies[reply]].append(entry)
            return
        if reply:
            self._replies[reply] = len(self._said)
            model = message.text("model")
            known = self.models[-1].model if self.models else ""
            if model not in ("", "<synthetic>", known):
                self.models.append(ModelUpdate(len(self._said), model, PROVIDER))
        self._said.append([entry])

    def _first_kept(self, boundary: Node) -> int:
        """How many messages stand before the first that a compaction keeps: all, where it names
        none of this branch."""
        metadata = boundary.node("compactMetadata")
        segment = metadata.node("preservedSegment") if metadata is not None else None
        head = segment.text("headUuid") if segment is not None else ""
        return self._before.get(head, len(self._said))


def _branch(entries: Sequence[Entry]) -> list[Entry]:
    """The entries from the root to the last one that is no subagent's, where the harness goes on,
    in the order of the file. Of replies on the way every block, and every result: where calls are
    parallel, only one of each has the next entry behind it."""
    by_uuid = {one.node.text("uuid"): one for one in entries if one.node.text("uuid")}
    main = [one for one in by_uuid.values() if one.node.value.get("isSidechain") is not True]
    at = main[-1] if main else None
    path: dict[str, Entry] = {}
    while at is not None and at.node.text("uuid") not in path:
        path[at.node.text("uuid")] = at
        parent = at.node.text("parentUuid") or at.node.text("logicalParentUuid")
        at = by_uuid.get(parent)
    replies = {_reply(one.node) for one in path.values()} - {""}
    for one in main:
        if one.node.text("parentUuid") in path and (
            _reply(one.node) in replies or _answers(one.node)
        ):
            path[one.node.text("uuid")] = one
    return sorted(path.values(), key=lambda one: one.place)


def _reply(node: Node) -> str:
    """The id of the reply that an entry is a block of. Empty: of none."""
    message = node.value.get("message") if node.value.get("type") == "assistant" else None
    name = message.get("id") if isinstance(message, Mapping) else None
    return name if isinstance(name, str) else ""


def _answers(node: Node) -> bool:
    """Whether an entry is the result of a call."""
    message = node.value.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    return isinstance(content, list) and any(
        isinstance(block, Mapping) and block.get("type") == "tool_result" for block in content
    )


def _said(entry: Entry) -> bool:
    if entry.node.text("type") in ("user", "assistant"):
        return "message" in entry.node.value
    return _queued(entry.node) is not None


def _queued(node: Node) -> Mapping[str, Any] | None:
    """The message that was said while the model worked, and put behind the results of its calls;
    also of a task in the background that ended meanwhile. None: the entry is none."""
    attached = node.value.get("attachment")
    if not isinstance(attached, Mapping) or attached.get("type") != "queued_command":
        return None
    prompt = attached.get("prompt")
    blocks = isinstance(prompt, list) and all(isinstance(one, Mapping) for one in prompt)
    if not prompt or not (blocks or isinstance(prompt, str)):
        return None
    return {"role": "user", "content": prompt}


def _kind(node: Node) -> str:
    kind = node.required("type")
    return _SILENT.get(kind, f"entries of type {kind}")


def _message(node: Node) -> Node:
    if (queued := _queued(node)) is not None:
        return Node(queued)
    message = node.node("message")
    if message is None:
        raise node.error("message", "an object is needed")
    return message


def _native(entry: Entry) -> str:
    queued = _queued(entry.node)
    return json.dumps(queued) if queued else member(entry.raw.decode(), "message").text


def _joined(entries: Sequence[Entry]) -> Message:
    """The message of its entries: the first names and dates it, the last says how it ended."""
    natives = [_native(entry) for entry in entries]
    parts: list[Part] = []
    for entry, native in zip(entries, natives, strict=True):
        with entry.named():
            message = message_of(Node(_message(entry.node).value), native.encode())
        parts.extend(message.parts)
    if len(entries) > 1:
        del message.parts[:]
        message.parts.extend(parts)
        joined = "[" + ",".join(natives) + "]"
        message.native.CopyFrom(Native(format=FORMAT, json=joined.encode()))
    if message.role == ROLE_ASSISTANT:
        message.provider = PROVIDER
    with entries[0].named():
        if (time := entries[0].node.time("timestamp")) is not None:
            message.timestamp.CopyFrom(time)
    message.id = entries[0].node.text("uuid")
    return message
