"""Sessions to search in, and short ways to ask."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from contextengine import AsyncClient
from contextengine import types as t
from contextengine.messages import assistant, tool_call, tool_result, user
from tests.integration.harness import House, ref

S = ref("s1")


async def write(house: House, session: t.SessionRef, *messages: t.Message | str) -> int:
    """Stores messages, users' where only a text is given; answers the session's revision."""
    made = [user(one) if isinstance(one, str) else one for one in messages]
    return (await house.client.ingest_batch(session, made)).revision


async def find(
    house: House, query: str, session: t.SessionRef = S, client: AsyncClient | None = None, **more: Any
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


async def covered(house: House, session: t.SessionRef, first: int, last: int, text: str) -> t.SummaryInfo:
    """A summary over a range, as a host would report it."""
    change = t.RecordHostChangeRequest.HostCompaction(first_sequence=first, last_sequence=last, summary=text)
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
    return [part.text.text for item in items for part in item.message.parts if part.HasField("text")]
