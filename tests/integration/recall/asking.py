"""Sessions to search in, and short ways to ask."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from contextengine import AsyncClient
from contextengine import types as t
from contextengine.messages import assistant, tool_call, tool_result, user
from tests.integration.assemble.asking import assign, quiet
from tests.integration.harness import House, budget, ref

S = ref("s1")


async def write(house: House, session: t.SessionRef, *messages: t.Message | str) -> int:
    """Stores messages, users' where only a text is given; answers the session's revision."""
    made = [user(one) if isinstance(one, str) else one for one in messages]
    return (await house.client.ingest_batch(session, made)).revision


async def find(
    house: House,
    query: str,
    session: t.SessionRef = S,
    client: AsyncClient | None = None,
    **more: Any,
) -> t.SearchResponse:
    """Searches a session as it is now."""
    client = client or house.client
    if "at_least_revision" not in more:
        more["at_least_revision"] = (await client.get_status(session)).revision
    return await client.recall.search(session, query=query, **more)


def sequences(found: t.SearchResponse) -> list[int]:
    """The messages that were found, by sequence."""
    return [hit.origin.sequence for hit in found.hits if hit.origin.HasField("sequence")]


def summaries(found: t.SearchResponse) -> list[str]:
    """The summaries that were found, by id."""
    return [hit.origin.summary_id for hit in found.hits if hit.origin.HasField("summary_id")]


def work(number: int) -> list[t.Message]:
    """A turn of an agent's work: a request, a call, its result, an answer."""
    return [
        user(f"Please look at part {number} of the report"),
        assistant(
            "I will read it.",
            tool_calls=[tool_call(f"c{number}", "read_file", {"path": f"docs/report_{number}.md"})],
        ),
        tool_result(
            f"c{number}",
            f"Part {number}: revenue was {number * 111} and costs were {number * 7}. "
            + "Checked and signed. " * 60,
        ),
        assistant(f"Part {number} is about revenue."),
    ]


async def covered(
    house: House, session: t.SessionRef, first: int, last: int, text: str
) -> t.SummaryInfo:
    """A summary over a range, as a host would report it."""
    change = t.RecordHostChangeRequest.HostCompaction(
        first_sequence=first, last_sequence=last, summary=text
    )
    done = await house.client.record_host_change(session, compacted=change)
    assert done.summary.id, "the summary is smaller than what it covers"
    return done.summary


async def call(
    house: House, name: str, arguments: object, session: t.SessionRef = S
) -> tuple[dict[str, Any], t.CallToolResponse]:
    """Calls a tool; answers its JSON and the whole reply."""
    raw = arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode()
    reply = await house.client.call_tool(session, name=name, arguments_json=raw)
    return json.loads(reply.result_json), reply


def said(items: Sequence[t.Item]) -> list[str]:
    """What items say, in order."""
    return [
        part.text.text for item in items for part in item.message.parts if part.HasField("text")
    ]


SMALL = {
    "freshTailTurns": 2,
    "leafChunkTokens": 1_000,
    "leafTargetTokens": 200,
    "condensedMinFanout": 3,
    "condensedTargetTokens": 300,
    "maxExpandTokens": 500,
}
"""Options of the dag under which little is enough to be folded."""


async def deep(house: House, session: t.SessionRef = S, turns: int = 30) -> list[t.SummaryInfo]:
    """A session of so many turns of work, compacted until summaries stand over summaries; the
    deepest last."""
    await assign(house, session, "dag", **SMALL)
    await quiet(house, session)
    await write(
        house, session, *(message for number in range(1, turns + 1) for message in work(number))
    )
    done = await house.client.compact(session, force=True, budget=budget(1_500))
    found = sorted(done.summaries, key=lambda one: one.depth)
    assert found[-1].depth > 0
    return found


async def pages(house: House, session: t.SessionRef = S, **asked: Any) -> list[t.ExpandResponse]:
    """Every page of what Expand brings back."""
    found: list[t.ExpandResponse] = []
    while not found or found[-1].next_page_token:
        token = found[-1].next_page_token if found else ""
        found.append(await house.client.recall.expand(session, page_token=token, **asked))
    return found


def sequences_of(items: Iterable[t.Item]) -> list[int]:
    """The messages among items, by sequence."""
    return [item.origin.sequence for item in items if item.origin.HasField("sequence")]


def summaries_of(items: Iterable[t.Item]) -> list[str]:
    """The summaries among items, by id."""
    return [item.origin.summary_id for item in items if item.origin.HasField("summary_id")]
