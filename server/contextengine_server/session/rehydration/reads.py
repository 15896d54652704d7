"""The files that were read last, of what summaries cover: which results they are, and what these
said.

A file is known by what the call read, whatever its tool is called (`wire.reads`). One that was read
again since is still in sight, and does not come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import Entry
from contextengine_server.context.observations import Observation
from contextengine_server.context.summary_text import fenced
from contextengine_server.context.view import View
from contextengine_server.session.load import inherits
from contextengine_server.session.session import Session
from contextengine_server.session.state import Reading
from contextengine_server.store.lineage import parent_of
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import MessageRow, SessionHead
from contextengine_server.wire.bounded import mark_runs
from contextengine_server.wire.damage import readable
from contextengine_server.wire.privacy import spoken_parts
from contextengine_server.wire.reads import read_path

MOST_FILES = 5
MAX_CHARS = 8_000
"""Of one file. Both as in Comis (packages/agent/src/context-engine/constants.ts)."""
MAX_PATH = 256
"""Characters of a path that are shown."""


def covered_reads(
    view: View, ranges: Iterable[tuple[int, int]], count: Callable[[str], int]
) -> Iterator[Reading]:
    """Of every file that was read in these ranges of steps, as far as they are in memory, the
    newest result there; the newest file first. `count`: the tokens of a text."""
    covered, seen = list(ranges), set[bytes]()
    if not covered:
        return
    first, last = min(lo for lo, _ in covered), max(hi for _, hi in covered)
    for one in reversed(view.observations.between(first, last + 1)):
        if len(seen) == len(view.observations.newest):
            return  # files are read again and again: there are no others
        if one.key is None or one.key.target in seen or one.failed:
            continue
        if not any(lo <= one.step <= hi for lo, hi in covered) or not view.holds(one.step):
            continue
        found = _read_of(view, one)
        if found is not None:
            target = one.key.target
            seen.add(target)
            path, text = found
            cost = count(shown(path, text, one.sequence))
            yield Reading(path, target.hex(), one.sequence, one.part, cost)


def in_sight(view: View, reading: Reading, covered: int) -> bool:
    """True where the file was read again behind this step, the last that is covered."""
    extents = view.observations.newest.get(bytes.fromhex(reading.target), {})
    return any(one.step > covered for one in extents.values())


def shown(path: str, text: str, sequence: int) -> str:
    """A file as it comes back."""
    more = len(text) - MAX_CHARS
    if more > 0:
        note = f"\n[{more} more characters: expand sequence {sequence} to read them]"
        text = text[: MAX_CHARS - len(note)] + note
    return f"[File: {' '.join(path.split())[:MAX_PATH]}]\n{fenced(text)}\n[End file]"


async def bring(store: Store, session: Session) -> None:
    """Has the session hold what the decided results said, and what it is to do. What is no longer
    there, or damaged, says nothing."""
    wanted = {(one.sequence, one.part) for one in session.state.rehydration.reads}
    held = {place: said for place, said in session.readings.items() if place in wanted}
    for sequence, part in sorted(wanted - held.keys()):
        atom = session.view.holding(sequence)
        entries = atom.entries if atom is not None else ()
        entry = next((each for each in entries if each.sequence == sequence), None)
        if entry is not None:
            held[sequence, part] = "" if entry.damaged else _said(entry.body, part, sequence)
            continue
        row = await _row_at(store, session.require(), sequence)
        whole = row is not None and readable(row) is not None
        held[sequence, part] = _said(row.body, part, sequence) if row and whole else ""
    if session.objective is None:
        child = session.state.depth and session.scope.complete
        spawn = await store.spawns.newest_of(session.scope) if child else None
        session.objective = spawn.objective if spawn is not None else ""
    session.readings = held


async def _row_at(store: Store, head: SessionHead, sequence: int) -> MessageRow | None:
    if sequence <= head.parent_sequence and inherits(head):
        parent = await parent_of(store, head)
        return None if parent is None else await _row_at(store, parent, sequence)
    rows = await store.messages(head.scope, sequence, sequence)
    return rows[0] if rows else None


def _read_of(view: View, one: Observation) -> tuple[str, str] | None:
    """The path and the text of a result, where its call reads a file."""
    atom = view.atom(one.step)
    entry = next((each for each in atom.entries if each.sequence == one.sequence), None)
    if entry is None or entry.damaged:
        return None
    parts = pb.Message.FromString(entry.body).parts
    call = _call(atom.entries, parts[one.part].tool_result.call_id, entry)
    path = read_path(call.name, call.arguments_json) if call is not None else ""
    text = _said(entry.body, one.part, one.sequence)
    return (path, text) if path and text else None


def _call(entries: Sequence[Entry], call_id: str, result: Entry) -> pb.ToolCallPart | None:
    """The call of an atom that has this id."""
    for entry in entries:
        if entry is not result and call_id in entry.traits.calls:
            for part in pb.Message.FromString(entry.body).parts:
                if part.tool_call.call_id == call_id:
                    return part.tool_call
    return None


def _said(body: bytes, part: int, sequence: int) -> str:
    message = pb.Message.FromString(body)
    mark_runs(message, sequence)
    parts = spoken_parts(message.parts[part].tool_result.parts)
    return "\n".join(each.text.text for each in parts if each.WhichOneof("kind") == "text").strip()
