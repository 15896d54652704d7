"""Lending a model to the server in a thread: jobs in, completions out, over as many streams as it
takes. `aio_runtime` has the same for asyncio, where tasks take the place of threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Self, Unpack

from . import fields
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
from .transport import BlockingConnection, Stream
from .types import AttachRequest, AttachResponse


class Runtime:
    """Lends a harness's model for summaries. The server asks, the harness answers."""

    def __init__(self, connection: BlockingConnection) -> None:
        self._connection = connection

    def attach(
        self, requests: Iterable[AttachRequest], **more: Unpack[fields.Call]
    ) -> Stream[AttachResponse]:
        """Opens the stream. `requests` is read in a thread of its own: a Hello first, then an
        answer for each job."""
        return self._connection.stream_stream(ATTACH, requests, **more)

    def lend(
        self, complete: Callable[[Job], str | Completion], **hello: Unpack[fields.Lend]
    ) -> Lending:
        """Lends a model in threads until the answer's `stop`: each job is given to `complete`,
        which answers a text.

        It may answer a Completion instead, which says more; its ids are set here. What it raises is
        told to the server as a failure that may pass. A stream that breaks is opened anew, and
        answers that were not received go out again.
        """
        return Lending(self._connection, complete, build(AttachRequest.Hello, hello))


class Lending:
    """A model that is lent until `stop`, which leaving it as a context manager calls. Made by
    `Client.runtime.lend`."""

    def __init__(
        self,
        connection: BlockingConnection,
        complete: Callable[[Job], str | Completion],
        hello: AttachRequest.Hello,
    ) -> None:
        self._connection = connection
        self._complete = complete
        self._hello = AttachRequest(hello=hello)
        self._workers = ThreadPoolExecutor(
            max(1, hello.max_concurrent_jobs), "contextengine-lending"
        )
        self._said: SimpleQueue[AttachRequest | None] = SimpleQueue()
        self._stream: Stream[AttachResponse] | None = None
        self._answers: dict[str, AttachRequest] = {}
        self._unwanted: set[str] = set()
        self._welcome = threading.Event()
        self._stopped = threading.Event()
        self._error: ContextEngineError | None = None
        self._thread = threading.Thread(target=self._run, name="contextengine-lending", daemon=True)
        self._thread.start()

    def wait(self, timeout: float | None = None) -> None:
        """Waits until lending ends, at most `timeout` seconds. Raises the ContextEngineError that
        ended it."""
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Ends the stream. The server hands out elsewhere what was not answered."""
        self._stopped.set()
        if self._stream is not None:
            self._stream.cancel()
        self._thread.join()
        self._workers.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        pause = FIRST_PAUSE_S
        while not self._stopped.is_set():
            try:
                self._serve()
            except ContextEngineError as error:
                if self._stopped.is_set():
                    return
                if not is_borne(error):
                    self._error = error
                    return
            if self._welcome.is_set():
                pause = FIRST_PAUSE_S
            self._welcome.clear()
            self._stopped.wait(pause)
            pause = min(pause * 3, LONGEST_PAUSE_S)

    def _serve(self) -> None:
        """One stream, to its end."""
        self._said = said = SimpleQueue[AttachRequest | None]()
        # The queue is in place before the answers are read: one that comes now is in either, and
        # twice does no harm.
        for request in (self._hello, *list(self._answers.values())):
            said.put(request)
        self._stream = stream = self._connection.stream_stream(ATTACH, iter(said.get, None))
        try:
            if self._stopped.is_set():
                stream.cancel()
            for reply in stream:
                self._hear(reply)
        finally:
            said.put(None)

    def _hear(self, reply: AttachResponse) -> None:
        match reply.WhichOneof("kind"):
            case "welcome":
                self._welcome.set()
            case "job":
                self._workers.submit(self._work, reply.job)
            case "receipt":
                self._answers.pop(reply.receipt.job_id, None)
            case "cancel":
                self._unwanted.add(reply.cancel.job_id)

    def _work(self, job: Job) -> None:
        self._unwanted.discard(job.job_id)
        done = threading.Event()
        threading.Thread(target=self._keep, args=(job, done), daemon=True).start()
        try:
            answer = completed(job, self._complete(job))
        except Exception as error:
            answer = failed(job, error)
        finally:
            done.set()
        if job.job_id in self._unwanted:
            self._unwanted.discard(job.job_id)
            return
        self._answers[job.job_id] = answer
        self._said.put(answer)

    def _keep(self, job: Job, done: threading.Event) -> None:
        while not done.wait(keep_every(job)):
            self._said.put(kept(job))
