"""Worker processes for Python work that would hold up the event loop: niced, started at the first
use, killed when late.

A worker is a fresh interpreter that runs `summarize.workers.process`. It inherits no thread, no
lock and no gRPC, and imports only what the functions that it is given need. Requests and replies
are pickles over its standard input and output.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import ParamSpec, TypeVar

from contextengine_server.fairness.turns import FairQueue, Weight, equal
from contextengine_server.summarize.request import LENGTH, SummarizerFailed

P = ParamSpec("P")
R = TypeVar("R")

_MODULE = "contextengine_server.summarize.workers.process"
_FAREWELL_SECONDS = 2.0


class WorkerFailed(SummarizerFailed):
    """The function raised in the worker, or its worker died or was late. The text names the type of
    what was raised."""


class WorkerPool:
    """At most `workers` processes at a niceness of `nice`, each with one function at a time; where
    all are busy, tenants come by turns.

    Belongs to one event loop. A call that takes longer than `deadline` seconds, or is cancelled,
    costs its worker, and the next call gets a fresh one.
    """

    def __init__(
        self, workers: int = 1, nice: int = 10, *, deadline: float = 30.0, weight: Weight = equal
    ) -> None:
        self._nice = nice
        self._deadline = deadline
        self._free = workers
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue(weight)
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._closed = False

    async def run(
        self, tenant: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """What a module's function returns when called in a worker, on behalf of a tenant.
        Arguments and result must be picklable.

        The time spent waiting for a free worker does not count against the deadline. Raises
        WorkerFailed.
        """
        payload = pickle.dumps((function, args, kwargs), pickle.HIGHEST_PROTOCOL)
        async with self._place(tenant):
            try:
                async with asyncio.timeout(self._deadline):
                    ok, value = pickle.loads(await self._call(payload))
            except TimeoutError:
                raise WorkerFailed(f"took longer than {self._deadline:g} s") from None
        if not ok:
            raise WorkerFailed(str(value))
        result: R = value
        return result

    @asynccontextmanager
    async def _place(self, tenant: str) -> AsyncIterator[None]:
        """Within this context a worker is free for the tenant."""
        if self._free:
            self._free -= 1
        else:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.push(tenant, turn)
            try:
                await turn
            except asyncio.CancelledError:
                if not self._waiting.remove(tenant, turn) and not turn.cancelled():
                    self._leave()  # it was its turn, at the same moment
                raise
        try:
            yield
        finally:
            self._leave()

    def _leave(self) -> None:
        """Gives a place to who is next."""
        while (turn := self._waiting.pop()) is not None:
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    async def close(self) -> None:
        """Ends all workers, those at work as well. Safe twice."""
        self._closed = True
        idle, self._idle = self._idle, []
        busy = self._all.difference(idle)
        self._all = set()
        await asyncio.gather(
            *(worker.end() for worker in idle), *(worker.kill() for worker in busy)
        )

    async def _call(self, payload: bytes) -> bytes:
        reused = bool(self._idle)
        try:
            return await self._call_once(payload)
        except _Died:
            if not reused:
                raise WorkerFailed("its worker died") from None
        # A worker may have died while it was idle, and that is not this call's fault.
        try:
            return await self._call_once(payload)
        except _Died:
            raise WorkerFailed("its worker died") from None

    async def _call_once(self, payload: bytes) -> bytes:
        worker = self._idle.pop() if self._idle else await self._start()
        done = False
        try:
            reply = await worker.call(payload)
            done = True
            return reply
        finally:
            # Whatever else ended the call, the worker may still be at it: its next reply would be
            # another call's.
            if done and not self._closed:
                self._idle.append(worker)
            else:
                self._all.discard(worker)
                await worker.kill()

    async def _start(self) -> _Worker:
        if self._closed:
            raise WorkerFailed("the workers are closed")
        try:
            worker = await _Worker.start(self._nice)
        except OSError as error:  # no file descriptors, processes or memory are left
            raise WorkerFailed(f"no worker can be started: {error.strerror}") from error
        self._all.add(worker)
        return worker


class _Died(Exception):
    """The worker is gone."""


def _spawn(nice: int) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """A new worker process and the socket to it."""
    ours, theirs = socket.socketpair()
    # Popen and not the loop's own subprocesses: it starts a process without the fork handlers that
    # gRPC registers, which must not run while a server serves. -P: the working directory is not
    # searched for modules.
    command = [sys.executable, "-P", "-m", _MODULE, str(nice)]
    try:
        with theirs:
            return subprocess.Popen(command, stdin=theirs.fileno(), stdout=theirs.fileno()), ours
    except BaseException:
        ours.close()
        raise


class _Worker:
    """One process, and the socket to its standard input and output."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.process = process
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls, nice: int) -> _Worker:
        process, ours = _spawn(nice)
        try:
            return cls(process, *await asyncio.open_connection(sock=ours))
        except BaseException:
            ours.close()
            process.kill()
            process.wait()
            raise

    async def call(self, payload: bytes) -> bytes:
        """What the worker answers. Raises _Died."""
        try:
            self._writer.write(LENGTH.pack(len(payload)) + payload)
            await self._writer.drain()
            (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
            return await self._reader.readexactly(length)
        except (OSError, asyncio.IncompleteReadError):
            raise _Died from None

    async def end(self) -> None:
        """Lets an idle worker leave by itself, and kills one that does not."""
        self._writer.close()
        try:
            await asyncio.to_thread(self.process.wait, _FAREWELL_SECONDS)
        except subprocess.TimeoutExpired:
            await self.kill()

    async def kill(self) -> None:
        """Ends the process at once, and sees it gone."""
        self._writer.close()
        self.process.kill()
        # Shielded: a cancelled caller must not leave a dead process unreaped.
        await asyncio.shield(asyncio.to_thread(self.process.wait))
