"""Lending a model to the server as a coroutine: jobs in, completions out, over as many streams as
it takes. `runtime` has the same for threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Unpack

from . import fields
from .aio_transport import AsyncConnection, AsyncStream
from .calls import ATTACH
from .errors import ContextEngineError, is_borne
from .jobs import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    Completion,
    Job,
    completed,
    failed,
    keep_every,
    kept,
)
from .requests import build
from .types import AttachRequest, AttachResponse


class AsyncRuntime:
    """Lends a harness's model for summaries. The server asks, the harness answers."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    def attach(
        self, requests: AsyncIterable[AttachRequest], **more: Unpack[fields.Call]
    ) -> AsyncStream[AttachResponse]:
        """Opens the stream. `requests` is read as they come: a Hello first, then an answer for each
        job."""
        return self._connection.stream_stream(ATTACH, requests, **more)

    async def lend(
        self, complete: Callable[[Job], Awaitable[str | Completion]], **hello: Unpack[fields.Lend]
    ) -> None:
        """Lends a model until it is cancelled: each job is given to `complete`, which answers a
        text.

        It may answer a Completion instead, which says more; its ids are set here. What it raises is
        told to the server as a failure that may pass; a job that is no longer wanted is cancelled.
        A stream that breaks is opened anew, and answers that were not received go out again. Raises
        the ContextEngineError that no new stream would mend.
        """
        await AsyncLending(self._connection, complete, build(AttachRequest.Hello, hello)).run()


class AsyncLending:
    """A model that is lent. Made by `AsyncClient.runtime.lend`."""

    def __init__(
        self,
        connection: AsyncConnection,
        complete: Callable[[Job], Awaitable[str | Completion]],
        hello: AttachRequest.Hello,
    ) -> None:
        self._connection = connection
        self._complete = complete
        self._hello = AttachRequest(hello=hello)
        self._said: asyncio.Queue[AttachRequest] = asyncio.Queue()
        self._answers: dict[str, AttachRequest] = {}
        self._jobs: dict[str, asyncio.Task[None]] = {}
        self._welcomed = False

    async def run(self) -> None:
        """Works until it is cancelled. Raises the ContextEngineError that no new stream would
        mend."""
        pause = FIRST_PAUSE_S
        try:
            while True:
                try:
                    await self._serve()
                except ContextEngineError as error:
                    if not is_borne(error):
                        raise
                if self._welcomed:
                    pause = FIRST_PAUSE_S
                self._welcomed = False
                await asyncio.sleep(pause)
                pause = min(pause * 3, LONGEST_PAUSE_S)
        finally:
            for job in self._jobs.values():
                job.cancel()

    async def _serve(self) -> None:
        """One stream, to its end."""
        self._said = asyncio.Queue()
        for request in (self._hello, *self._answers.values()):
            self._said.put_nowait(request)
        async with self._connection.stream_stream(ATTACH, self._requests(self._said)) as stream:
            async for reply in stream:
                self._hear(reply)

    async def _requests(self, said: asyncio.Queue[AttachRequest]) -> AsyncIterator[AttachRequest]:
        while True:
            yield await said.get()

    def _hear(self, reply: AttachResponse) -> None:
        match reply.WhichOneof("kind"):
            case "welcome":
                self._welcomed = True
            case "job":
                id = reply.job.job_id
                self._jobs[id] = task = asyncio.ensure_future(self._work(reply.job))
                task.add_done_callback(
                    lambda done: self._jobs.get(id) is done and self._jobs.pop(id)
                )
            case "receipt":
                self._answers.pop(reply.receipt.job_id, None)
            case "cancel" if (task_ := self._jobs.get(reply.cancel.job_id)) is not None:
                task_.cancel()

    async def _work(self, job: Job) -> None:
        keeping = asyncio.ensure_future(self._keep(job))
        try:
            answer = completed(job, await self._complete(job))
        except Exception as error:
            answer = failed(job, error)
        finally:
            keeping.cancel()
        self._answers[job.job_id] = answer
        self._said.put_nowait(answer)

    async def _keep(self, job: Job) -> None:
        while True:
            await asyncio.sleep(keep_every(job))
            self._said.put_nowait(kept(job))
