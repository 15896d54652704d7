"""What a server said of a call whose requests it did not read to their end, for asyncio."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Self

import grpc
import grpc.aio

UNSAID = (grpc.StatusCode.OK, grpc.StatusCode.INTERNAL)
"""What came first and tells no more than an INTERNAL behind it."""


class Said:
    """What a server said of a call, to be asked once the call has failed.

    A server that refuses a call whose client still writes has said why. Where the next write meets
    the call that is over, gRPC's client for asyncio puts INTERNAL in its place (grpc/grpc#36066);
    so what was said first counts.
    """

    def __init__(self, call: Any) -> None:
        """Listens to a call that has just begun."""
        self._first: grpc.aio.AioRpcError | None = None
        call.add_done_callback(self._hear)

    def _hear(self, call: Any) -> None:
        """A call has ended, and nothing else has set another status yet."""
        self._first = self._first or _status_of(call)

    def of(self, raised: grpc.aio.AioRpcError) -> grpc.aio.AioRpcError:
        """What was said where the call raised something: that, or what it hides."""
        first = self._first
        overwritten = raised.code() is grpc.StatusCode.INTERNAL
        return first if overwritten and first and first.code() not in UNSAID else raised


async def answer_of(call: Any) -> Any:
    """The reply of a call with many requests. Raises grpc.aio.AioRpcError: what the server said."""
    said = Said(call)
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise said.of(error) from None


class Replies:
    """The replies of a call with many requests, one by one. Raises what `answer_of` does."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._said = Said(call)
        self._replies = aiter(call)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await anext(self._replies)
        except grpc.aio.AioRpcError as error:
            raise self._said.of(error) from None

    def cancel(self) -> None:
        """Ends the call."""
        self._call.cancel()


def _status_of(call: Any) -> grpc.aio.AioRpcError:
    """The status of a call that has ended, at once."""
    return grpc.aio.AioRpcError(
        _now(call.code()),
        _now(call.initial_metadata()),
        _now(call.trailing_metadata()),
        details=_now(call.details()),
        debug_error_string=_now(call.debug_error_string()),
    )


def _now(known: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine answers that need not wait."""
    try:
        known.send(None)
    except StopIteration as done:
        return done.value
    known.close()
    return None
