"""Bad requests and exactly what they are answered, for every rpc of the contract; none of them
changes anything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from google.protobuf.message import Message

from contextengine import types as t
from contextengine.messages import user
from contextengine_server.api.pipeline import contract, unserved
from contextengine_server.api.pipeline.contract import Rpc
from tests.integration.bad_input.cases import S
from tests.integration.bad_input.requests import GOOD, history
from tests.integration.bad_input.table import CASES, EMPTY
from tests.integration.bad_input.test_every_field import SERVED, ask, short, state
from tests.integration.harness import House, house, problem, ref

LIMIT = 65_536


pytestmark = pytest.mark.asyncio(loop_scope="module")
"""Nothing here changes anything, so one server serves all."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with house(tmp_path_factory.mktemp("home")) as made:
        await made.client.ingest(ref("old"), user("a session of before"))
        await made.client.ingest_batch(S, history())
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def narrow(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    """A house with small limits, and a session that takes four messages more."""
    settings = {
        "server.max_message_bytes": LIMIT,
        "sessions.max_message_bytes": 2_000,
        "sessions.max_batch_messages": 5,
        "sessions.max_session_messages": 7,
    }
    async with house(tmp_path_factory.mktemp("narrow"), **settings) as made:
        await made.client.ingest_batch(S, history())
        yield made


async def test_every_rpc_has_its_cases() -> None:
    """An rpc that is new is neither unserved nor in the table until somebody has thought of what
    can be wrong with it."""
    served = {short(rpc) for rpc in SERVED}
    assert set(CASES) == served
    assert set(EMPTY) <= served
    assert {rpc.method for rpc in contract.rpcs()} == {rpc.method for rpc in SERVED} | set(
        unserved.UNSERVED
    )
    for name, cases in CASES.items():
        assert len({(case.what, *case.fields) for case in cases}) == len(cases), (
            f"{name} has a case twice"
        )
        assert (
            cases or not next(rpc for rpc in SERVED if short(rpc) == name).request.DESCRIPTOR.fields
        )


@pytest.mark.parametrize("rpc", SERVED, ids=short)
async def test_what_is_answered(home: House, rpc: Rpc) -> None:
    wrong = []
    before = await state(home, S)
    for case in CASES[short(rpc)]:
        answer = await ask(home, rpc, list(case.requests))
        if answer.error is None:
            wrong.append(f"{case.what}: {answer.code}")
            continue
        said = problem(answer.error)
        if said != (case.code, case.reason, list(case.fields)):
            wrong.append(f"{case.what}: {said} {answer.error}")
        if case.metadata and answer.error.metadata != case.metadata:
            wrong.append(f"{case.what}: {answer.error.metadata}")
        if await state(home, S) != before:
            wrong.append(f"{case.what}: something changed")
            before = await state(home, S)
    assert wrong == []


@pytest.mark.parametrize("rpc", SERVED, ids=short)
async def test_an_empty_request(home: House, rpc: Rpc) -> None:
    before = await state(home, S)
    answer = await ask(home, rpc, [] if rpc.streams_in else [rpc.request()])
    field = EMPTY.get(short(rpc), "session.agent_id")
    if field:
        assert answer.error is not None
        assert problem(answer.error) == ("INVALID_ARGUMENT", "INVALID_FIELD", [field])
    else:
        assert answer.code == "OK", answer.error
    assert await state(home, S) == before


@pytest.mark.parametrize("rpc", SERVED, ids=short)
async def test_bytes_that_are_no_request(home: House, rpc: Rpc) -> None:
    before = await state(home, S)
    good = GOOD[short(rpc)](S)[0].SerializeToString()
    malformed = {
        "noise": b"\xff\xff\xff\xff",
        "a field cut short": good + b"\x0a\x7f\x01",
        "a varint without end": b"\x08" + b"\xff" * 11,
        "a group without end": b"\x0b" * 200,
        "a length beyond all": b"\x0a\xff\xff\xff\xff\x0f",
    }
    if rpc.request.DESCRIPTOR.fields and not rpc.streams_in:
        malformed["field number 0"] = b"\x00\x00"
        malformed["text that is not UTF-8"] = _not_utf8(rpc)
    for what, raw in malformed.items():
        answer = await home.raw(rpc, raw)
        assert answer.error is not None, what
        assert problem(answer.error)[:2] == ("INVALID_ARGUMENT", "MALFORMED_REQUEST"), what
        assert answer.error.metadata["type"] == rpc.request.DESCRIPTOR.full_name
    assert await state(home, S) == before


def _not_utf8(rpc: Rpc) -> bytes:
    """The request's first text, as bytes that are no text."""
    for field in rpc.request.DESCRIPTOR.fields:
        if field.type == field.TYPE_STRING:
            return bytes([field.number << 3 | 2, 2, 0xC3, 0x28])
        if field.message_type is not None and field.message_type.name == "SessionRef":
            return bytes([field.number << 3 | 2, 4, 0x0A, 2, 0xC3, 0x28])
    raise AssertionError("no text in this request")


@pytest.mark.parametrize("rpc", SERVED, ids=short)
async def test_a_request_above_the_limit(narrow: House, rpc: Rpc) -> None:
    before = await state(narrow, S)
    unknown = (
        b"\xf2\x7f"  # field 2046, which no message has: any request may be as large as one likes
    )
    for size in (LIMIT + 1, 4 * LIMIT):
        raw = unknown + _varint(size - 6) + b"x" * (size - 6)
        answer = await narrow.raw(rpc, raw)
        assert answer.error is not None
        assert problem(answer.error)[:2] == ("RESOURCE_EXHAUSTED", "TOO_LARGE")
        assert answer.error.metadata["limit"] == str(LIMIT)
        assert int(answer.error.metadata["size"]) > LIMIT
    answer = await narrow.raw(rpc, b"x" * 3_000_000)
    assert answer.code == "RESOURCE_EXHAUSTED", "far above it, the transport itself refuses"
    assert await state(narrow, S) == before


def _varint(value: int) -> bytes:
    return bytes(
        [value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14 & 0x7F | 0x80, value >> 21]
    )


BULKY: dict[str, Callable[[list[t.Message]], list[Message]]] = {
    "ContextEngine/Bootstrap": lambda m: [t.BootstrapRequest(session=S, history=m)],
    "ContextEngine/IngestBatch": lambda m: [t.IngestBatchRequest(session=S, messages=m)],
    "ContextEngine/Assemble": lambda m: [t.AssembleRequest(session=S, ingest=m)],
    "ContextEngine/AfterTurn": lambda m: [t.AfterTurnRequest(session=S, messages=m)],
    "Sessions/Import": lambda m: [
        t.ImportRequest(header=t.ImportRequest.Header(session=ref("copy"))),
        *(t.ImportRequest(message=message) for message in m),
    ],
}
"""The rpcs that take messages, many at once."""


@pytest.mark.parametrize("name", BULKY)
async def test_a_message_a_batch_or_a_session_above_its_limit(narrow: House, name: str) -> None:
    (rpc,) = [rpc for rpc in SERVED if short(rpc) == name]
    before = await state(narrow, S)
    bulks = {
        "message": [user("x" * 2_000)],
        "session": [user(str(n)) for n in range(5)] * (2 if rpc.streams_in else 1),
    }
    if not rpc.streams_in:
        bulks["batch"] = [user(str(n)) for n in range(6)]
    for what, messages in bulks.items():
        answer = await ask(narrow, rpc, BULKY[name](messages))
        assert answer.error is not None, what
        assert problem(answer.error)[:2] == ("RESOURCE_EXHAUSTED", "TOO_LARGE"), what
        assert "limit" in answer.error.metadata
        assert await state(narrow, S) == before
