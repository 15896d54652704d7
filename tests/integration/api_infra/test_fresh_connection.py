"""Far more calls at once than are worked on, on a connection that has just begun.

HTTP/2 tells a client in the server's first frame how many streams a connection takes. What a client
sends beyond it, because it did not wait for that frame or because the server counts calls that are
over, HTTP/2 refuses by itself (RST_STREAM, REFUSED_STREAM): a bare UNAVAILABLE, which no metric of
ours counts. So more come here than a connection takes, and all that is refused is refused by us.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import grpc
import pytest

from contextengine import attempts, user
from contextengine import types as t
from contextengine.errors import from_rpc_error
from contextengine_proto.v1 import lifecycle_pb2
from tests.integration.harness import PATIENCE_S, House, ref

CALLERS = 3_200


async def sessions_of(house: House) -> set[str]:
    listed, page = set[str](), ""
    while True:
        found = await house.client.sessions.list(page_size=1_000, page_token=page)
        listed |= {one.session_id for one in found.sessions}
        page = found.next_page_token
        if not page:
            return listed


async def test_every_refusal_is_typed_and_counted_and_changes_nothing(house: House) -> None:
    heard: Counter[str] = Counter()
    done: set[str] = set()

    async def call(number: int) -> None:
        name = f"s{number}"
        message = t.Message(id="m", role=t.ROLE_USER, parts=[t.Part(text=t.TextPart(text=name))])
        request = lifecycle_pb2.IngestRequest(session=ref(name), message=message)
        try:
            await house.stub.Ingest(request, timeout=PATIENCE_S)
        except grpc.aio.AioRpcError as error:
            known = from_rpc_error(error)
            later = "later" if getattr(known, "retry_after", None) else "bare"
            heard[f"{error.code().name} {known.reason} {later}"] += 1
        else:
            heard["OK"] += 1
            done.add(name)

    await asyncio.gather(*map(call, range(CALLERS)))
    assert heard.keys() <= {"OK", "RESOURCE_EXHAUSTED OVERLOADED later"}, heard
    refused = sum(
        value
        for key, value in house.app.metrics.snapshot().items()
        if key.startswith(("contextengine.calls.refused{kind=calls", "contextengine.bytes.refused"))
    )
    assert refused == CALLERS - len(done)
    assert await sessions_of(house) == done


async def test_the_shipped_client_brings_all_of_them_through(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each comes back when it is told to. How often is no matter of the connection's but of how
    fast the machine is, so it is as often as its deadline lets it."""
    monkeypatch.setattr(attempts, "MAX_ATTEMPTS", 1_000)
    client = house.client_of()

    async def call(number: int) -> None:
        await client.ingest(ref(f"s{number}"), user("once"), timeout=PATIENCE_S)

    await asyncio.gather(*map(call, range(CALLERS)))
    assert len(await sessions_of(house)) == CALLERS
