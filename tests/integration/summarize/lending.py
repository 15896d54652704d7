"""Harnesses that lend their models over a real channel, sessions that have something to summarize,
and who asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import grpc

from contextengine import types as t
from contextengine_proto.v1 import runtime_pb2 as pb
from contextengine_proto.v1 import runtime_pb2_grpc

from ..harness import House, budget, ref
from .provider import GOOD

SECRET = "hunter2hunter2"
PATIENCE_S = 60


class Harness:
    """One stream of Attach, from the harness's end."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self._reading: asyncio.Task[Any] | None = None

    async def say(self, **kind: Any) -> None:
        await self.stream.write(pb.AttachRequest(**kind))

    def reads(self) -> asyncio.Task[Any]:
        """What the server says next, once it does. A read that is given up would end the stream: it
        goes on instead."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(self.stream.read())
        return self._reading

    async def hears(self) -> pb.AttachResponse:
        """What the server says next."""
        async with asyncio.timeout(PATIENCE_S):
            said: Any = await asyncio.shield(self.reads())
        self._reading = None
        assert isinstance(said, pb.AttachResponse), "the stream ended"
        return said

    async def job(self) -> pb.AttachResponse.Job:
        said = await self.hears()
        assert said.WhichOneof("kind") == "job", said
        return said.job

    async def answer(self, job: pb.AttachResponse.Job, text: str = GOOD, **more: Any) -> None:
        await self.say(
            completion={"job_id": job.job_id, "lease_id": job.lease_id, "text": text, **more}
        )

    async def receipt(self) -> pb.AttachResponse.Receipt:
        said = await self.hears()
        assert said.WhichOneof("kind") == "receipt", said
        return said.receipt

    async def does(self, job: pb.AttachResponse.Job, text: str = GOOD, **more: Any) -> None:
        """Answers, and sees that it is accepted."""
        await self.answer(job, text, **more)
        receipt = await self.receipt()
        assert (receipt.job_id, receipt.accepted, receipt.reason) == (job.job_id, True, "")

    async def cancelled(self) -> pb.AttachResponse.Cancel:
        said = await self.hears()
        assert said.WhichOneof("kind") == "cancel", said
        return said.cancel

    async def was_told_nothing(self) -> None:
        """Nothing was said to it since it last listened: what it is answered now comes first."""
        await self.say(completion={"job_id": "of nobody", "lease_id": "none"})
        assert (await self.receipt()).job_id == "of nobody"

    async def leave(self) -> None:
        """Ends the stream, and sees it ended."""
        await self.stream.done_writing()
        async with asyncio.timeout(PATIENCE_S):
            assert await self.reads() is grpc.aio.EOF


@asynccontextmanager
async def attached(
    at: House, *, token: str = "", channel: grpc.aio.Channel | None = None, **hello: Any
) -> AsyncIterator[Harness]:
    """A harness that is attached."""
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    stub: Any = runtime_pb2_grpc.RuntimeStub(channel or at.channel)
    harness = Harness(stub.Attach(metadata=metadata))
    try:
        await harness.say(hello={"host_id": "harness", **hello})
        welcome = await harness.hears()
        assert welcome.welcome.stream_id
        yield harness
    finally:
        harness.stream.cancel()
        if harness._reading is not None:
            await asyncio.gather(harness._reading, return_exceptions=True)


async def first_of(*harnesses: Harness) -> tuple[pb.AttachResponse.Job, Harness]:
    """The job that is handed to one of them, and to whom."""
    await asyncio.wait([one.reads() for one in harnesses], return_when=asyncio.FIRST_COMPLETED)
    told = next(one for one in harnesses if one.reads().done())
    return await told.job(), told


_number = count(1)


async def talk(at: House, client: Any = None, text: str = "The build went on. ") -> t.SessionRef:
    """A new session, worth a summary."""
    named = ref(f"s{next(_number)}")
    said = [
        t.Message(
            id=f"m{n}",
            role=t.ROLE_ASSISTANT if n % 2 else t.ROLE_USER,
            parts=[t.Part(text=t.TextPart(text=f"Step {n}: DB_PASSWORD={SECRET}. " + text * 60))],
        )
        for n in range(8)
    ]
    await (client or at.client).ingest_batch(session=named, messages=said)
    return named


@asynccontextmanager
async def compacting(
    at: House, session: t.SessionRef, client: Any = None, **more: Any
) -> AsyncIterator[asyncio.Task[t.CompactResponse]]:
    """A compaction under way, which is over when this is left."""
    call = (client or at.client).compact(session=session, budget=budget(4_000), force=True, **more)
    task = asyncio.ensure_future(call)
    try:
        yield task
        async with asyncio.timeout(PATIENCE_S):
            await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def written_by(at: House, session: t.SessionRef, client: Any = None) -> list[str]:
    """Who wrote the session's summaries, in order."""
    return [summary.info.summarizer for summary in (await at.export(session, client)).summaries]


async def until(condition: Callable[[], bool]) -> None:
    """Waits for something that comes soon."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)
