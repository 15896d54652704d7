"""What a server said of a call whose requests it did not read to their end, for asyncio."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import grpc
import grpc.aio

UNSAID = (grpc.StatusCode.OK, grpc.StatusCode.INTERNAL)
"""What came first and tells no more than an INTERNAL behind it."""


async def answer_of(call: Any) -> Any:
    """The reply of a call with many requests. Raises grpc.aio.AioRpcError: what the server said.

    A server that refuses a call whose client still writes has said why. Where the next write meets
    the call that is over, gRPC's client for asyncio puts INTERNAL in its place (grpc/grpc#36066);
    so what was said first counts here.
    """
    said: list[grpc.aio.AioRpcError] = []
    call.add_done_callback(lambda ended: said.append(_status_of(ended)))
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.INTERNAL and said and said[0].code() not in UNSAID:
            raise said[0] from None
        raise


def _status_of(call: Any) -> grpc.aio.AioRpcError:
    """The status of a call that has just ended, before anything else can set another."""
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
