"""Short ways to ask for assemblies and to say messages, and what the tests of several rooms
share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from contextengine import assistant, tool_call, tool_result, user
from contextengine import types as t
from contextengine.formats import read_transcript
from contextengine_server.context.scope import Scope
from contextengine_server.session.address import Ref
from contextengine_server.store.debts import Debt
from tests.integration.harness import House, ref
from tests.integration.harness import house as living

from .judging import Judge

ASSEMBLE = "/contextengine.v1.ContextEngine/Assemble"
AIRLINE = "tests/data/airline_transcripts.jsonl"
CODING = "tests/data/coding_session.pi.jsonl"
Cause = t.EpochCause
Kind = t.Decision.Kind


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    """One service for all tests of a module; each has a session of its own. Tests that use it run
    in the module's loop."""
    async with living(tmp_path_factory.mktemp("shared")) as house:
        yield house


@pytest.fixture
def session(request: pytest.FixtureRequest) -> t.SessionRef:
    """A session of the test's own."""
    return ref(request.node.name)


async def ask(house: House, session: t.SessionRef, **fields: Any) -> t.AssembleResponse:
    """An assembly, asked for without a client's help: no ids are set, nothing is held."""
    reply: t.AssembleResponse = await house.stub.Assemble(
        t.AssembleRequest(session=session, **fields)
    )
    return reply


async def ask_bytes(house: House, session: t.SessionRef, **fields: Any) -> bytes:
    """The reply as it is on the wire."""
    invoke: Any = house.channel.unary_unary(
        ASSEMBLE, request_serializer=t.AssembleRequest.SerializeToString
    )
    reply: bytes = await invoke(t.AssembleRequest(session=session, **fields))
    return reply


async def store(house: House, session: t.SessionRef, messages: Sequence[t.Message]) -> int:
    """Stores messages as they are; the revision."""
    reply = await house.stub.IngestBatch(t.IngestBatchRequest(session=session, messages=messages))
    return int(reply.revision)


async def judged(
    house: House, reply: t.AssembleResponse, session: t.SessionRef, tail: int | None = None
) -> list[tuple[int, str]]:
    """The laws that a reply breaks, held against the session as it was then. `tail`: the steps it
    declares, if not the default."""
    return Judge.of(await house.export(session, as_of_revision=reply.revision), tail).verdict(reply)


async def assign(house: House, session: t.SessionRef, engine: str = "", **options: Any) -> None:
    """An operator's choice of the engine, or of its options, for one session."""
    await house.engine_stub.Assign(
        t.AssignRequest(
            scope=session,
            engine_id=engine,
            options_json=json.dumps(options).encode() if options else b"",
        )
    )


async def scope_of(house: House, session: t.SessionRef) -> Scope:
    """The session as the service knows it."""
    return (
        await house.app.core.addresses.find("default", Ref(session.agent_id, session.session_id))
    ).scope


async def quiet(house: House, session: t.SessionRef) -> None:
    """From now on nothing is compacted in the background: a debt that is held stands in the way of
    any other. It may also be evicted from the cache, and the service restarted."""
    debt = Debt(await scope_of(house, session), "compact", queued_ms=0, held=True)
    await house.app.store.add_debt(debt)


@asynccontextmanager
async def held_back(house: House, session: t.SessionRef) -> AsyncIterator[None]:
    """Background work on a session waits, so that what is owed can be seen."""
    scope = await scope_of(house, session)
    async with house.app.core.sessions.open(scope) as warm, warm.compaction:
        yield


async def owed(house: House, session: t.SessionRef) -> int:
    """How many background jobs wait or run for a session."""
    return len((await house.client.get_status(session)).jobs)


async def settled(house: House, session: t.SessionRef) -> t.GetStatusResponse:
    """The session's status once no compaction is owed. That summaries are to be made again waits
    for who was to write them."""
    while True:
        status = await house.client.get_status(session)
        if all(job.kind == "remake" for job in status.jobs):
            return status
        await asyncio.sleep(0.02)


def live(messages: Iterable[t.Message], *, store_new: bool = False) -> t.LiveList:
    return t.LiveList(messages=messages, store_new=store_new)


def window(size: int | None = None, **parts: Any) -> t.Budget:
    """A budget by its window; parts that are not named are 0."""
    nothing = {"output_reserve": 0, "safety_margin": 0, "rot_buffer": 0}
    if size is not None:
        nothing["window"] = size
    return t.Budget(window=t.WindowBudget(**(nothing | parts)))


def say(name: str, words: int = 3) -> t.Message:
    """A user's message with its id and so many words."""
    return user(prose(name, words), id=name)


def reply_with(name: str, words: int = 3) -> t.Message:
    """The model's message."""
    return assistant(prose(name, words), id=name)


def calls(name: str, *ids: str) -> t.Message:
    """The model's message with calls of these ids."""
    return assistant(tool_calls=[tool_call(each, "run", {"of": each}) for each in ids], id=name)


def result(name: str, call_id: str, words: int = 3) -> t.Message:
    """A tool's answer."""
    return tool_result(call_id, prose(name, words), name="run", id=name)


def talk(turns: int, words: int = 20, prefix: str = "m") -> list[t.Message]:
    """A conversation: a user's message and the answer, as many times."""
    messages = []
    for turn in range(turns):
        messages += [
            say(f"{prefix}{2 * turn + 1}", words),
            reply_with(f"{prefix}{2 * turn + 2}", words),
        ]
    return messages


def prose(name: str, words: int) -> str:
    """A text that no other name has: about two tokens a word."""
    return " ".join(f"{name} word{number}" for number in range(max(1, words // 2)))


def without_ids(messages: Iterable[t.Message]) -> list[t.Message]:
    """Copies without ids."""
    copies = []
    for message in messages:
        copy = t.Message()
        copy.CopyFrom(message)
        copy.ClearField("id")
        copies.append(copy)
    return copies


def ids_of(items: Iterable[Any]) -> list[str]:
    """The ids of items, messages or exported rows."""
    return [getattr(item, "message", item).id for item in items]


def origins(reply: t.AssembleResponse) -> list[str]:
    """Where the items come from, in words: `3`, `summary`, `synthetic`, `live 2`."""
    said = []
    for item in reply.items:
        kind = item.origin.WhichOneof("kind")
        said.append(
            {
                "sequence": str(item.origin.sequence),
                "summary_id": "summary",
                "synthetic": "synthetic",
                "live_index": f"live {item.origin.live_index}",
            }[kind]
        )
    return said


def hashes(reply: t.AssembleResponse) -> list[bytes]:
    return [item.content_hash for item in reply.items]


def epoch(reply: t.AssembleResponse) -> str:
    return reply.context_projection.epoch


def transcripts(path: str, every: int = 1) -> dict[str, list[t.Message]]:
    """The sessions of a file, or each so-manieth of them, by id. A message without an id of its own
    gets one."""
    found: dict[str, list[t.Message]] = {}
    for number, transcript in enumerate(read_transcript(path)):
        if number % every:
            continue
        for at, message in enumerate(transcript.messages):
            message.id = message.id or f"{transcript.session_id}-{at}"
        found[transcript.session_id] = transcript.messages
    return found
