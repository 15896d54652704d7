"""The coding session as a host sends it before each turn: details stripped, call ids rewritten,
thinking dropped, older results trimmed, turns interrupted. Every list aligns, nothing is stored
twice, and the context is the one that the session has without any list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from contextengine import types as t
from tests.integration.assemble.asking import settled
from tests.integration.harness import house as living
from tests.integration.harness import ref

from .playing import EVERYTHING, Player, coding, turns, without_ids

FITS = t.AssembleResponse.OUTCOME_FITS
Step = Callable[[list[t.Message]], list[t.Message]]


def raw(messages: list[t.Message]) -> list[t.Message]:
    """As it is."""
    return messages


def without_details(messages: list[t.Message]) -> list[t.Message]:
    """Tool results without details, and nothing in its native form."""
    for message in messages:
        message.ClearField("native")
        for part in message.parts:
            if part.WhichOneof("kind") == "tool_result":
                part.tool_result.details_json = b""
    return messages


def other_call_ids(messages: list[t.Message]) -> list[t.Message]:
    """Call ids counted through."""
    names: dict[str, str] = {}
    for message in messages:
        for part in message.parts:
            if part.WhichOneof("kind") == "tool_call":
                names[part.tool_call.call_id] = f"call{len(names)}"
                part.tool_call.call_id = names[part.tool_call.call_id]
            elif part.WhichOneof("kind") == "tool_result":
                call_id = part.tool_result.call_id
                part.tool_result.call_id = names.get(call_id, call_id)
    return messages


def without_thinking(messages: list[t.Message]) -> list[t.Message]:
    """No reasoning, and no message of which nothing is left then."""
    for message in messages:
        kept = [part for part in message.parts if part.WhichOneof("kind") != "reasoning"]
        del message.parts[:]
        message.parts.extend(kept)
    return [message for message in messages if message.parts]


def trimmed(messages: list[t.Message]) -> list[t.Message]:
    """Results but the newest six cut short."""
    results = [m for m in messages if any(p.WhichOneof("kind") == "tool_result" for p in m.parts)]
    for message in results[:-6]:
        for part in message.parts:
            for inner in part.tool_result.parts:
                if len(inner.text.text) > 400:
                    inner.text.text = inner.text.text[:200] + "\n...\n" + inner.text.text[-100:]
    return messages


def all_of_it(messages: list[t.Message]) -> list[t.Message]:
    """Every step."""
    return trimmed(without_thinking(other_call_ids(without_details(messages))))


def interrupted(messages: Sequence[t.Message]) -> list[list[t.Message]]:
    """The turns, every seventh of which ends with the first call that it makes."""
    played = []
    for number, (first, last) in enumerate(turns(messages)):
        turn = list(messages[first:last])
        calls = [
            at
            for at, message in enumerate(turn)
            if any(part.WhichOneof("kind") == "tool_call" for part in message.parts)
        ]
        played.append(turn[: calls[0] + 1] if number % 7 == 3 and calls else turn)
    return played


STEPS: list[Step] = [raw, without_details, other_call_ids, without_thinking, trimmed, all_of_it]


@pytest.mark.parametrize("step", STEPS if EVERYTHING else [without_thinking, all_of_it])
async def test_a_list_that_a_host_has_worked_on_aligns(step: Step, tmp_path: Path) -> None:
    every = interrupted(without_ids(coding().messages))
    async with living(tmp_path) as house:
        player = Player(house, "s", 30_000, ())
        transcript: list[t.Message] = []
        summaries = same = 0
        for number, turn in enumerate(every):
            asked, answers = turn[0], turn[1:]
            transcript.append(asked)
            sent = step(without_ids(transcript))
            reply = await player.assemble(live=t.LiveList(messages=sent, store_new=True))
            assert (reply.outcome, reply.outcome_reason) == (FITS, ""), number
            assert len(reply.stored) == 1, (number, [one.index for one in reply.stored])
            plain = await player.assemble()
            if plain.revision == reply.revision:  # else a summary was committed in between
                same += 1
                assert reply.context_hash == plain.context_hash, number
                assert reply.context_projection.epoch == plain.context_projection.epoch
            shown = sum(item.HasField("summary") for item in reply.items)
            summaries = max(summaries, shown)
            assert shown or not summaries, number
            if answers:
                await house.stub.AfterTurn(t.AfterTurnRequest(session=ref("s"), messages=answers))
                transcript += answers
            if number % 8 == 7:
                await settled(house, ref("s"))
        assert summaries
        assert same > len(every) // 2
        rows = await house.rows(ref("s"))
        assert len(rows) == len(transcript)
