"""Whatever a harness does to its own list: every message of it is accounted for, in the list's own
order (docs/semantics.md#live-lists)."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.view import View
from contextengine_server.context.work import at_once
from contextengine_server.plugins.engines import installed_engines
from contextengine_server.session.assembly.assembly import Assembly
from contextengine_server.session.assembly.explanation import Kind, explain
from tests.unit.commands.house import (
    Rows,
    Server,
    assistant,
    incoming,
    result,
    user,
)
from tests.unit.commands.turn.test_live_lists import named, stored

REGISTERED = {one.id for one in installed_engines().registrations}


def mangled(random: Random, messages: list[pb.Message]) -> list[pb.Message]:
    """A list as a harness sends it: details stripped, call ids rewritten, reasoning dropped."""
    ids: dict[str, str] = {}
    sent = []
    for message in messages:
        copy = pb.Message()
        copy.CopyFrom(message)
        copy.ClearField("id")
        for part in copy.parts:
            kind = part.WhichOneof("kind")
            if kind == "tool_call":
                name = f"x{len(ids)}{random.randrange(100)}"
                ids[part.tool_call.call_id] = name
                part.tool_call.call_id = name
            elif kind == "tool_result":
                call_id = part.tool_result.call_id
                part.tool_result.call_id = ids.get(call_id, call_id)
                part.tool_result.details_json = b""
        sent.append(copy)
    return sent


def _calls(messages: list[pb.Message]) -> bool:
    """True where a tool is called."""
    return any(part.WhichOneof("kind") == "tool_call" for m in messages for part in m.parts)


def conversation(random: Random, turns: int) -> list[pb.Message]:
    """Turns with tool calls whose ids are all different, of messages that are often alike."""
    said: list[pb.Message] = []
    for turn in range(turns):
        said.append(user(random.choice(["go on", "why?", f"question {turn}"])))
        for step in range(random.randrange(3)):
            call = f"c{turn}.{step}"
            said.append(assistant(random.choice(["", f"look {turn}"]), "", call))
            answer = result(call, f"found {turn}.{step}")
            answer.parts[0].tool_result.details_json = b'{"ms": 1}'
            said.append(answer)
        said.append(assistant(random.choice(["Done.", f"answer {turn}"])))
    return said


def edited(random: Random, sent: list[pb.Message]) -> list[pb.Message]:
    """The list as a user left it who rewrote what was said, and put something in. Calls stay as
    they are: one in other words is not told from another in the words that it had, and a result is
    known by its call whatever it says."""
    sent = list(sent)
    for number in range(random.randrange(3)):
        spoken = [
            at for at, one in enumerate(sent) if one.role in (pb.ROLE_USER, pb.ROLE_ASSISTANT)
        ]
        at = random.choice(spoken)
        changed = pb.Message()
        changed.CopyFrom(sent[at])
        changed.id = ""
        rewritable = changed.parts[0].WhichOneof("kind") == "text" and not _calls([changed])
        if random.random() < 0.5 and rewritable:
            changed.parts[0].text.text = f"rewritten {number}"
            sent[at] = changed
        else:
            sent.insert(at, user(f"put in {number}"))
    return sent


@given(st.integers(0, 2**32), st.booleans(), st.sampled_from((400, 100_000)), st.booleans())
def test_every_message_of_a_list_is_accounted_for(
    seed: int, store_new: bool, tokens: int, rewritten: bool
) -> None:
    random = Random(seed)
    whole = conversation(random, random.randint(1, 8))
    cut = random.randint(0, len(whole))
    kept = list(whole[:cut])
    for _ in range(random.randrange(3)):
        gone = random.randrange(len(kept)) if kept else 0
        # A call never goes without its result, which would answer nothing then.
        del kept[gone : gone + 1 + _calls(kept[gone : gone + 1])]

    async def play() -> None:
        server = await Server(Rows()).open()
        try:
            if kept:
                await stored(server, *kept)
            sent = mangled(random, whole)
            if rewritten:
                sent = edited(random, sent)
            for _ in range(2):
                made = await server.assemble(
                    tokens, live=incoming(*sent), store_new=store_new, whole=True
                )
                account(made, sent)
            if store_new:
                assert not made.stored
        finally:
            await server.close()

    asyncio.run(play())


def late(random: Random, sent: list[pb.Message]) -> list[pb.Message]:
    """The list with some results behind later messages, and some messages elsewhere."""
    sent = list(sent)
    for _ in range(random.randrange(3)):
        at = random.randrange(len(sent))
        if sent[at].role == pb.ROLE_TOOL or not _calls(sent[at : at + 1]):
            moved = sent.pop(at)
            low = at if moved.role == pb.ROLE_TOOL else 0
            sent.insert(random.randint(low, len(sent)), moved)
    return sent


@pytest.mark.parametrize("engine", sorted(REGISTERED))
@given(seed=st.integers(0, 2**32), ids=st.booleans(), tokens=st.sampled_from((400, 100_000)))
@settings(max_examples=40, deadline=None)
def test_a_list_stands_in_its_own_order(engine: str, seed: int, ids: bool, tokens: int) -> None:
    """Whatever of it is stored, rewritten, put in, moved or late: where it is laid out, an atom is
    found by its beginning, running sums are those of the order, and no result that the list has
    for a call is missing."""
    random = Random(seed)
    whole = conversation(random, random.randint(1, 6))
    if ids:
        whole = named(whole)
    kept = [message for message in whole if random.random() < 0.7]
    sent = late(random, edited(random, whole))

    async def play() -> None:
        server = await Server(Rows(), **settings_of(engine)).open()
        try:
            if kept:
                await stored(server, *kept)
            made = await server.assemble(tokens, live=incoming(*sent), store_new=False, whole=True)
            in_order(made.view)
            if engine == "legacy" and not made.view.by_sequence:
                as_listed(made.view, sent)
        finally:
            await server.close()

    asyncio.run(play())


def settings_of(engine: str) -> dict[str, Any]:
    return {"engine.default": engine}


def in_order(view: View) -> None:
    start = 0
    for atom in view.atoms:
        assert view.find(atom.first) is atom
        assert atom.start == start
        assert atom.tokens == sum(slot.tokens for slot in atom.slots)
        start += atom.tokens
        for entry in atom.entries:
            held = view.holding(entry.sequence)
            assert held is not None
            assert entry in held.entries
    assert view.total == start


def as_listed(view: View, sent: list[pb.Message]) -> None:
    """The messages in the list's order, results behind their calls."""
    said = [
        words(pb.Message.FromString(entry.body))
        for atom in view.atoms
        for entry in atom.entries
        if not entry.traits.results
    ]
    assert said == [words(message) for message in sent if message.role != pb.ROLE_TOOL]
    assert not any(slot.synthetic for atom in view.atoms for slot in atom.slots)


def account(made: Assembly, sent: list[pb.Message]) -> None:
    """Every message of the list is among the decisions, in order, as it was said."""
    decided = {
        decision.entry.sequence: decision
        for decision in at_once(explain(made))
        if decision.kind is not Kind.DROPPED
    }
    atoms = [*made.view.atoms]
    said = []
    for atom in atoms:
        for slot in atom.slots:
            entry = next((e for e in atom.entries if e.sequence == slot.sequence), None)
            if entry is not None and entry.sequence in decided:
                said.append(words(pb.Message.FromString(entry.body)))
    wanted = [words(message) for message in sent]
    rest = iter(said)
    missing = [one for one in wanted if one not in rest]
    assert not missing, (missing, said, wanted)


def words(message: pb.Message) -> tuple[str, ...]:
    """What a message says, its calls by their names."""
    found = [str(message.role)]
    for part in message.parts:
        kind = part.WhichOneof("kind")
        if kind == "text":
            found.append(part.text.text)
        elif kind == "tool_call":
            found.append(part.tool_call.name)
        elif kind == "tool_result":
            found += [inner.text.text for inner in part.tool_result.parts]
    return tuple(found)
