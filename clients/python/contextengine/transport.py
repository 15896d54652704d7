# Generated from aio_transport.py by `make sync`. Change that module instead.
"""Calls that block: sends requests, and turns what gRPC raises into typed errors.

`aio_transport` is the same for asyncio.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import cached_property
from itertools import chain, islice
from typing import Any, ClassVar, Generic, Self, TypeVar

import grpc
from google.protobuf.message import Message as ProtoMessage

from .attempts import Attempts
from .calls import AFTER_TURN, Call
from .connection import Connection
from .errors import ContextEngineError, from_rpc_error
from .pending import Pending
from .probe import Probe
from .requests import build
from .types import SessionRef

Request = TypeVar("Request", bound=ProtoMessage)
Response = TypeVar("Response", bound=ProtoMessage)


class Stream(Generic[Response]):
    """Replies of a stream, one by one. As a context manager it ends the call when left."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._replies = iter(call)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Response:
        try:
            reply: Response = next(self._replies)
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error
        return reply

    def cancel(self) -> None:
        """Ends the call, from any thread.

        Whoever waits for a reply gets a ContextEngineError of code CANCELLED.
        """
        self._call.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()


class BlockingConnection(Connection):
    """A connection whose calls wait for their replies. Safe to share between threads."""

    _library: ClassVar[Any] = grpc

    def close(self) -> None:
        """Ends calls that run and closes the connection. What waits to be sent stays in the spill
        file, if there is one."""
        self._channel.close()
        if self.queue is not None:
            self.queue.close()

    def flush(self, session: SessionRef | None = None, *, timeout: float | None = None) -> None:
        """Sends what waits, of a session or of all, the oldest first. Raises ContextEngineError
        where some of it cannot be sent, of several sessions the first one's: it goes on with the
        others, all within one timeout.

        What the service refuses for what it is goes to `rejected`. Calls need not wait for each
        other: an entry goes only after the one before it was answered, and one that two calls send
        is stored once.
        """
        if self.queue is None or not self.queue.count(session):
            return
        attempts = Attempts(self.timeout_of(AFTER_TURN, timeout), time.monotonic)
        first: ContextEngineError | None = None
        for one in self.queue.sessions() if session is None else [session]:
            try:
                self._flush(self.queue, one, attempts)
            except ContextEngineError as error:
                first = first or error
                if attempts.remaining() == 0:
                    break
        if first is not None:
            raise first

    def _flush(self, queue: Pending, session: SessionRef, attempts: Attempts) -> None:
        while (entry := queue.first(session)) is not None:
            try:
                self.send(AFTER_TURN, entry, attempts.timeout())
            except ContextEngineError as error:
                queue.failed(entry, error)
            else:
                queue.sent(entry)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def unary(
        self, call: Call[Request, Response], timeout: float | None = None, **fields: object
    ) -> Response:
        """One request, one reply."""
        return self.send(call, build(call.request, fields), timeout)

    def send(
        self, call: Call[Request, Response], request: Request, timeout: float | None = None
    ) -> Response:
        """One request that is ready, one reply."""
        if not self._guarded:
            return self._sent(call, request, timeout)
        if self._breaker.asks:
            self._probe.ask()
        trial = self._breaker.admit()
        try:
            reply = self._sent(call, request, timeout)
        except ContextEngineError as error:
            self._breaker.failed(error, trial)
            raise
        except BaseException:
            self._breaker.abandoned(trial)
            raise
        self._breaker.answered()
        return reply

    def _sent(
        self, call: Call[Request, Response], request: Request, timeout: float | None
    ) -> Response:
        """As often as it may help."""
        invoke = self._callable("unary_unary", call)
        attempts = self._attempts(call, timeout)
        while True:
            try:
                reply: Response = invoke(
                    request, timeout=attempts.remaining(), metadata=self._call_metadata(request)
                )
            except grpc.RpcError as raised:
                error = from_rpc_error(raised)
                pause = attempts.pause(error)
                if pause is None:
                    raise error from raised
            else:
                self._absence.end()
                return reply
            time.sleep(pause)

    @cached_property
    def _probe(self) -> Probe:
        return Probe(self._breaker, self._question)

    def unary_stream(
        self, call: Call[Request, Response], timeout: float | None = None, **fields: object
    ) -> Stream[Response]:
        """One request, many replies."""
        request = build(call.request, fields)
        invoke = self._callable("unary_stream", call)
        return Stream(invoke(request, **self._stream_arguments(call, timeout, request)))

    def stream_unary(
        self,
        call: Call[Request, Response],
        requests: Iterable[Request],
        timeout: float | None = None,
    ) -> Response:
        """Many requests, one reply."""
        invoke = self._callable("stream_unary", call)
        rest = iter(requests)
        first = list(islice(rest, 1))
        how = self._stream_arguments(call, timeout, *first)
        try:
            reply: Response = invoke(chain(first, rest), **how)
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error
        return reply

    def stream_stream(
        self,
        call: Call[Request, Response],
        requests: Iterable[Request],
        timeout: float | None = None,
    ) -> Stream[Response]:
        """Requests and replies as they come."""
        invoke = self._callable("stream_stream", call)
        how = self._stream_arguments(call, timeout)
        return Stream(invoke(iter(requests), **how))
