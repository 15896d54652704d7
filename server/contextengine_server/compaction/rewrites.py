"""Compaction by an engine that rewrites a list of messages: the list that it is given, and the
passes that follow from its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from contextengine_server.compaction.chunks import chunks_of
from contextengine_server.compaction.compaction_pass import Pass, frame_tokens, prepare
from contextengine_server.compaction.request import CompactionRequest, Precondition
from contextengine_server.compaction.summary_request import source_message
from contextengine_server.context.atom import Atom
from contextengine_server.context.laws.progress import shrinks
from contextengine_server.context.message import NO_RESULT, Entry
from contextengine_server.context.view import Summary, View
from contextengine_server.engines.contract import CompactionStep, Engine
from contextengine_server.engines.rewrite import (
    Change,
    ChatMessage,
    Place,
    Rewriter,
    RewriteRequest,
    read_changes,
)
from contextengine_server.session.encoding import Encoding
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions

UNCHANGED_LIST = "nothing to compact: the engine left the list as it is"
MAX_ASKED = 3
"""How often an engine is asked for one compaction: as often as Hermes asks in a turn."""

_LATE = "[result of an earlier tool call]"


class _ListedAtom(msgspec.Struct, frozen=True):
    """An atom as it was when the list was made."""

    place: Place
    entries: Sequence[Entry]
    calls: tuple[str, ...]
    closed: bool


class ViewList(msgspec.Struct, frozen=True):
    """What a view shows, to be told to an engine: taken under the session's lock, and written out
    beside it."""

    parts: Sequence[_ListedAtom | Summary]
    life: str
    """See RewriteRequest."""

    def written(self) -> tuple[list[ChatMessage], list[Place]]:
        """The messages, and where each stands. Decodes every message."""
        messages: list[ChatMessage] = []
        places: list[Place] = []
        taken: set[str] = set()
        for part in self.parts:
            if isinstance(part, Summary):
                said = [_summary_message(part, messages)]
                place = Place(part.first_step, part.last_step, part.id)
            else:
                said, place = _messages_of(part, taken), part.place
            messages += said
            places += [place] * len(said)
        return messages, places


def list_of(view: View) -> ViewList:
    """What a view shows, in order; the whole of it is in memory."""
    stays = {*view.must_stay(), view.steps - 1}
    parts: list[tuple[int, _ListedAtom | Summary]] = [(s.first_step, s) for s in view.summaries]
    for first, last, _ in view.uncovered():
        for step in range(first, last + 1):
            atom = view.atom(step)
            parts.append((step, _listed(atom, Place(step, step, fixed=step in stays))))
    ordered = [part for _, part in sorted(parts, key=lambda one: one[0])]
    return ViewList(ordered, f"{view.incarnation}:{view.reset_mark}")


def _listed(atom: Atom, place: Place) -> _ListedAtom:
    calls = tuple(call.id for call in atom.calls)
    return _ListedAtom(place, tuple(atom.entries), calls, atom.closed)


_ROLE_OF = {"custom": "user", "tool": "user"}
"""What else a message is by its role: a result of no call is a text."""


def _messages_of(part: _ListedAtom, taken: set[str]) -> list[ChatMessage]:
    """An atom's messages in the form of OpenAI's chat API: no id of a call is there twice, and
    every call that is closed has its result. `taken`: the ids before it, which it adds to."""
    messages: list[ChatMessage] = []
    calls = [(call, _unlike(call, taken)) for call in part.calls]
    waiting, unnamed = list(calls), list(calls)
    for entry in part.entries:
        source = source_message(entry)
        asked = [(call, _named(call.id, unnamed)) for call in source.calls]
        called = [
            {
                "id": id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call, id in asked
            if id
        ]
        if called or source.text or not source.results:
            role = _ROLE_OF.get(source.role, source.role)
            said: ChatMessage = {"role": role, "content": source.text}
            messages.append(said | {"tool_calls": called} if called else said)
        for result in source.results:
            id = _named(result.id, waiting)
            if id:
                messages.append({"role": "tool", "tool_call_id": id, "content": result.text})
            elif not part.calls:
                messages.append({"role": "user", "content": f"{_LATE}\n{result.text}"})
    if part.closed:
        messages += [
            {"role": "tool", "tool_call_id": id, "content": NO_RESULT} for _, id in waiting
        ]
    return messages


def _unlike(id: str, taken: set[str]) -> str:
    """An id that is not taken: real sessions use one for several calls."""
    unlike, count = id, 1
    while unlike in taken:
        count += 1
        unlike = f"{id}~{count}"
    taken.add(unlike)
    return unlike


def _named(id: str, among: list[tuple[str, str]]) -> str:
    """What the oldest of these calls with an id is called in the list, which it leaves; empty: it
    is none of them."""
    for pair in among:
        if pair[0] == id:
            among.remove(pair)
            return pair[1]
    return ""


def _summary_message(summary: Summary, before: Sequence[ChatMessage]) -> ChatMessage:
    """A summary as a message of whoever did not speak last."""
    last = before[-1]["role"] if before else "system"
    return {"role": "user" if last in ("assistant", "tool") else "assistant",
            "content": summary.text}  # fmt: skip


class Rewriting(msgspec.Struct):
    """What came of asking an engine: passes that are to be committed one after the other."""

    sessions: Sessions
    asked: int = 0
    changes: list[Change] = []
    ground: Precondition | None = None
    """What must still stand for these changes."""

    def next_pass(
        self, engine: Engine, encoding: Encoding, view: View, ground: Precondition
    ) -> Pass | None:
        """The next pass that makes the view smaller; None: there is none left, or what was asked
        for does not stand any more."""
        if self.ground != ground:
            self.changes = []
        while self.changes:
            made = pass_of(self.changes.pop(0), engine, encoding, view)
            if made is not None:
                return made
        return None

    def committed(self) -> None:
        """One of the passes was committed: the rest stands on what that made."""
        if self.ground is not None:
            self.ground = replace(self.ground, generation=self.ground.generation + 1)

    async def ask(
        self,
        rewriter: Rewriter,
        session: Session,
        listed: ViewList,
        wanted: CompactionRequest,
        tokens: int,
        ground: Precondition,
    ) -> None:
        """Asks the engine. The session is not locked. Raises EngineBroken."""
        self.asked += 1
        head, compactions = session.require(), session.state.compactions
        messages, places = await asyncio.to_thread(listed.written)
        request = RewriteRequest(
            session.scope,
            messages,
            places,
            tokens,
            wanted.available,
            wanted.force,
            wanted.steering.focus,
            wanted.steering.memory_context,
            listed.life,
            compactions,
            head.model,
            head.provider,
            chunks_of(self.sessions, session),
        )
        answer = await rewriter.rewrite(request)
        self.ground = ground
        self.changes = (
            await asyncio.to_thread(read_changes, messages, places, answer)
            if answer is not None
            else []
        )


def pass_of(change: Change, engine: Engine, encoding: Encoding, view: View) -> Pass | None:
    """The summary of a stretch that an engine left out: by its own words where they are smaller
    than what they stand for, else by the summarizers. None: it would not be smaller, or the stretch
    is not in the view."""
    there = {summary.id for summary in view.summaries}
    if not there.issuperset(change.replaces) or change.last >= view.steps:
        return None
    text = change.text.encode("utf-8", "replace").decode()
    made = prepare(
        view,
        CompactionStep(
            change.first,
            change.last,
            engine.summary_tokens,
            change.replaces,
            update=bool(change.replaces),
        ),
    )
    if made.gain <= encoding.summary_floor:
        return None
    if text and not shrinks(made.gain, encoding.count(text) + frame_tokens(made, encoding.count)):
        text = ""
    target = made.gain - 1 if text else min(engine.summary_tokens, made.gain - 1)
    return replace(made, step=replace(made.step, target_tokens=target, text=text))
