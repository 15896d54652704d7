"""Lending a model to the server in a thread: jobs in, completions out, over as many streams as it
takes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Self

from .calls import ATTACH
from .errors import ContextEngineError, is_borne
from .transport import BlockingConnection, Stream
from .types import AttachRequest, AttachResponse

Job = AttachResponse.Job
Completion = AttachRequest.Completion

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
"""Between two streams: three times as long after each that did not get through."""
OFTEN_S, SELDOM_S = 1.0, 20.0
"""A lease is extended after a third of its time, within these bounds: the clocks of two machines
differ."""

log = logging.getLogger("contextengine")


def keep_every(job: Job) -> float:
    """After how many seconds a job's lease is to be extended."""
    return min(
        max((job.lease_expire_time.ToNanoseconds() / 1e9 - time.time()) / 3, OFTEN_S), SELDOM_S
    )


def kept(job: Job) -> AttachRequest:
    """Still working on it."""
    return AttachRequest(
        keep_lease=AttachRequest.KeepLease(job_id=job.job_id, lease_id=job.lease_id)
    )


def completed(job: Job, answer: str | Completion) -> AttachRequest:
    """The answer to a job: a text, or a completion that lacks no more than its ids."""
    completion = Completion(text=answer) if isinstance(answer, str) else answer
    request = AttachRequest(completion=completion)
    request.completion.job_id, request.completion.lease_id = job.job_id, job.lease_id
    return request


def failed(job: Job, error: Exception) -> AttachRequest:
    """The answer where the model failed. What the error says stays here."""
    log.warning("the lent model failed on job %s", job.job_id, exc_info=error)
    return completed(job, Completion(error="model_failed", retryable=True))


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
