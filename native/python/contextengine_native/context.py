"""A call as handlers see it: what grpc.aio's `ServicerContext` offers, as far as it is used."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, NoReturn, cast

import grpc

from contextengine_native._front import Call

CANCELLED = 1
UNKNOWN = 2
UNIMPLEMENTED = 12

Codec = Callable[[Any], Any] | None
Pairs = Iterable[tuple[str, str | bytes]] | None


class Aborted(grpc.aio.BaseError):
    """Ends the work of a call whose status is sent."""


class Context:
    """gRPC's side of one call."""

    __slots__ = (
        "_call",
        "_deadline",
        "_loop",
        "_reading",
        "_waiting",
        "_writing",
        "deserialize",
        "over",
        "serialize",
        "task",
    )

    def __init__(self, call: Call, first: bytes | None, loop: asyncio.AbstractEventLoop) -> None:
        self._call, self._loop = call, loop
        self._waiting = first
        """A message that came before anyone asked."""
        timeout = call.timeout
        self._deadline = None if timeout is None else loop.time() + timeout
        self._reading: asyncio.Future[Any] | None = None
        self._writing: asyncio.Future[None] | None = None
        self.over = False
        """True when the client was told how the call ended, or is gone."""
        self.task: asyncio.Task[None]
        self.serialize: Codec = None
        self.deserialize: Codec = None

    # What handlers ask.

    async def read(self) -> Any:
        """The next message; `grpc.aio.EOF` where there is none."""
        if (message := self._waiting) is not None:
            self._waiting = None
        elif self.over:
            return grpc.aio.EOF
        else:
            if self._reading is None or self._reading.done():
                self._reading = self._loop.create_future()
                self._call.read()
            message = await self._reading
            self._reading = None
        if self.deserialize is None or message is grpc.aio.EOF:
            return message
        return self.deserialize(message)

    async def write(self, message: Any) -> None:
        """Sends a message, and waits until the next may be sent."""
        self._open()
        self._writing = self._loop.create_future()
        self._call.write(self.encoded(message))
        await self._writing

    async def send_initial_metadata(self, metadata: Pairs) -> None:
        """Tells the client that the call stands. Raises UsageError where it does no more."""
        self._open()
        self._call.send_headers(_encoded(metadata))

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Pairs = ()
    ) -> NoReturn:
        """Ends the call, by raising."""
        self.finish(code.value[0], details, trailing_metadata)
        raise Aborted(details)

    async def abort_with_status(self, status: grpc.Status) -> NoReturn:
        """Ends the call, by raising."""
        await self.abort(status.code, status.details or "", status.trailing_metadata)

    def peer(self) -> str:
        """The other end."""
        return self._call.peer

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """The certificate that the client showed, by the name that gRPC gives it."""
        certificate = self._call.certificate
        if certificate is None:
            return {}
        return {"x509_pem_cert": [ssl.DER_cert_to_PEM_cert(certificate).encode()]}

    def time_remaining(self) -> float | None:
        """Seconds until the deadline, at least 0. None: there is none."""
        if self._deadline is None:
            return None
        return max(self._deadline - self._loop.time(), 0.0)

    async def requests(self) -> AsyncIterator[Any]:
        """The messages of the client, one by one."""
        while (message := await self.read()) is not grpc.aio.EOF:
            yield message

    # What the server tells.

    def came(self, message: Any) -> None:
        """What was asked for is there."""
        if self._reading is not None and not self._reading.done():
            self._reading.set_result(message)
        else:
            self._waiting = message

    def wrote(self) -> None:
        """There is room for the next message."""
        if self._writing is not None and not self._writing.done():
            self._writing.set_result(None)

    def gone(self, *, late: bool = False) -> None:
        """Nobody listens any more: the work is cancelled."""
        self.over = True
        if late:
            self._deadline = self._loop.time()
        for waiting in (self._reading, self._writing):
            if waiting is not None:
                waiting.cancel()
        self.task.cancel()

    def encoded(self, message: Any) -> bytes:
        """A reply as bytes."""
        return cast(bytes, message if self.serialize is None else self.serialize(message))

    def finish(self, code: int, text: str = "", metadata: Pairs = ()) -> None:
        """Tells the client how the call ended, unless it knows."""
        if not self.over:
            self.over = True
            self._call.finish(code, text, _encoded(metadata))

    def reply(self, message: Any) -> None:
        """Ends the call well with its one message."""
        if not self.over:
            encoded = self.encoded(message)
            self.over = True
            self._call.reply(encoded)

    def _open(self) -> None:
        if self.over:
            raise grpc.aio.UsageError("the call is over")


def _encoded(metadata: Pairs) -> list[tuple[str, bytes]]:
    return [
        (key, value.encode() if isinstance(value, str) else value) for key, value in metadata or ()
    ]
