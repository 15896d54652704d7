"""The way of a call from its bytes to its servicer and back.

One wrapper does it all, in this order: trace, caller, admission; size, parsing, the servicer's
work, encoding; metrics and the status. Handlers are made from the protos' descriptors. Requests
arrive as bytes, so that broken ones are answered by us, and replies may leave as bytes, so that a
servicer that holds them encoded hands them over as they are.

A servicer is a plain class whose methods are named like the rpcs, by `contract.attribute_name`:

    async def assemble(self, request: AssembleRequest, call: Call) -> AssembleResponse | bytes async
    def import_(self, requests: AsyncIterator[ImportRequest], call: Call) -> ImportResponse | bytes
    async def watch(self, request: WatchRequest, call: Call) -> AsyncIterator[WatchResponse | bytes]
    (a generator)

Work is cancelled (CancelledError) when the client goes away, when the deadline passes (gRPC keeps
the clock, and answers DEADLINE_EXCEEDED), and when the server drains and cannot wait longer.
Whatever work raises is answered by `api.pipeline.errors`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from time import perf_counter
from typing import Any, NoReturn, TypeAlias

import grpc
from google.protobuf.message import DecodeError, Message

from contextengine_server.api.pipeline import contract, errors, unserved
from contextengine_server.api.pipeline.admission import Admission
from contextengine_server.api.pipeline.audit import Audit
from contextengine_server.api.pipeline.auth import Authenticator, authorize
from contextengine_server.api.pipeline.bytes_in_flight import (
    GATHERED_BYTES,
    SMALL_BYTES,
    BytesInFlight,
)
from contextengine_server.api.pipeline.call import METADATA, Call, Context, Meter
from contextengine_server.api.pipeline.contract import Rpc
from contextengine_server.errors import (
    MalformedRequest,
    PermissionDenied,
    TooLarge,
    Unauthenticated,
)
from contextengine_server.fairness.place import NO_PLACE, PLACE
from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.telemetry.tracing import CURRENT, Tracer

__all__ = ["Call", "Handlers", "Pipeline", "Reply"]

Reply = Message | bytes
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


LAST_WRITE_S = 0.5
"""How long a part of a stream that is stopped may take to go out: its client may not be reading."""


class Handlers(grpc.GenericRpcHandler):
    """Looks a handler up by its path, when the headers of a call are there and no body yet."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        METADATA.set(handler_call_details.invocation_metadata)
        return self._handlers.get(handler_call_details.method)


class Pipeline:
    """What every call goes through. `max_message_bytes` holds for each request, each reply and each
    part of a stream."""

    def __init__(
        self,
        *,
        admission: Admission,
        authenticator: Authenticator,
        tracer: Tracer,
        metrics: Metrics,
        max_message_bytes: int,
        in_flight: BytesInFlight,
    ) -> None:
        self._admission, self._authenticator, self._tracer = admission, authenticator, tracer
        self._asks_who = authenticator.required
        self._metrics, self._max_bytes = metrics, max_message_bytes
        self._bytes = in_flight
        self._audit = Audit()

    def handlers(self, servicers: Mapping[str, object]) -> Handlers:
        """A handler for every rpc of the contract.

        `servicers` has the servicer of each full service name. An rpc without a method there must
        be in the table of `unserved`, and none may be in both: ValueError.
        """
        if strangers := servicers.keys() - set(contract.services()):
            raise ValueError(f"no such service in the contract: {', '.join(sorted(strangers))}")
        served = {
            rpc.method: work
            for rpc in contract.rpcs()
            if (work := getattr(servicers.get(rpc.service), rpc.attribute, None)) is not None
        }
        unserved.check(served, (rpc.method for rpc in contract.rpcs()))
        meters = {f"/{rpc.method}": Meter(self._metrics, rpc) for rpc in contract.rpcs()}
        return Handlers(
            {
                path: self._handler(meter, served.get(meter.rpc.method))
                for path, meter in meters.items()
            }
        )

    async def revise(self) -> None:
        """Ends the streams whose credentials name nobody any more, or somebody else."""
        for call in tuple(self._admission.streams.calls):
            if isinstance(call, Call) and not await self._authenticator.still(
                call.metadata, call.context.auth_context(), call.caller
            ):
                call.stop(Unauthenticated("these credentials hold no more: call again with others"))

    def _handler(self, meter: Meter, work: Callable[..., Any] | None) -> Handler:
        # To gRPC every request is a stream, of which it takes nothing until it is asked: whoever is
        # refused is so before a body of his is in memory, however large. Neither deserializers nor
        # serializers are given: both ends of a handler are bytes.
        rpc = meter.rpc
        if work is None:
            handle = self._refusing(meter)
        elif rpc.streams_out:
            handle = self._to_many(meter, work)
        elif rpc.streams_in:
            handle = self._many_to_one(meter, work)
        else:
            handle = self._one_to_one(meter, work)
        if rpc.streams_out:
            return grpc.stream_stream_rpc_method_handler(handle)
        return grpc.stream_unary_rpc_method_handler(handle)

    def _one_to_one(
        self, meter: Meter, work: Callable[[Message, Call], Awaitable[Reply]]
    ) -> Callable[..., Any]:
        async def handle(unused: object, context: Context) -> bytes:
            call = Call(meter.rpc, context)
            try:
                await self._enter(call)
                # No name stands for the request here: gRPC holds this frame as long as the reply.
                reply = self._encode(
                    await work(await self._next(call, meter) or await _missing(call), call),
                    call,
                    meter,
                )
            except BaseException as error:
                await self._fail(call, error, meter)
            self._leave(call, "OK", meter)
            return reply

        return handle

    def _many_to_one(
        self, meter: Meter, work: Callable[[AsyncIterator[Message], Call], Awaitable[Reply]]
    ) -> Callable[..., Any]:
        async def handle(unused: object, context: Context) -> bytes:
            call = Call(meter.rpc, context)
            try:
                await self._enter(call)
                call.give_back = partial(self._bytes.give, call)
                async with aclosing(self._requests(call, meter)) as requests:
                    reply = self._encode(await work(requests, call), call, meter)
            except BaseException as error:
                await self._fail(call, error, meter)
            self._leave(call, "OK", meter)
            return reply

        return handle

    def _to_many(
        self, meter: Meter, work: Callable[[Any, Call], AsyncGenerator[Reply, None]]
    ) -> Callable[..., Any]:
        async def handle(unused: object, context: Context) -> None:
            call = Call(meter.rpc, context)
            try:
                await self._enter(call)
                source = (
                    self._requests(call, meter)
                    if meter.rpc.streams_in
                    else await self._next(call, meter) or await _missing(call)
                )
                async with aclosing(work(source, call)) as replies:
                    async for reply in replies:
                        part = self._encode(reply, call, meter)
                        await _write(context, part)
                        if len(part) > SMALL_BYTES:
                            self._bytes.give(call, len(part))
            except BaseException as error:
                await self._fail(call, error, meter)
            self._leave(call, "OK", meter)

        return handle

    def _refusing(self, meter: Meter) -> Callable[..., Any]:
        async def handle(unused: object, context: Context) -> None:
            call = Call(meter.rpc, context)
            try:
                await self._enter(call)
                unserved.refuse(meter.rpc.method)
            except BaseException as error:
                await self._fail(call, error, meter)

        return handle

    async def _enter(self, call: Call) -> None:
        """Knows who calls, admits the call, and waits for its turn to be worked on."""
        rpc = call.rpc
        call.task.set_name(rpc.method)  # whoever looks what holds the loop sees it
        if self._tracer.on:
            call.trace = self._tracer.begin(rpc.method, call.metadata, call.context.peer)
            if call.trace.sampled:
                # Each call has a task of its own, so that nothing need be put back.
                CURRENT.set(call.trace)
        if self._asks_who:
            known = self._authenticator
            call.caller = known.caller(call.metadata) or await known.identify(
                call.metadata, call.context.auth_context()
            )
            if rpc.long_lived:
                call.end_with_credentials()
        if rpc.operator_only:
            authorize(call.caller, rpc.method)
            self._audit.operated(call)
        admission, turn = self._admission, None
        if len(admission.few) < admission.room and rpc.kind == "calls":
            admission.few[call] = None
        else:
            turn = admission.enter(call, admission.kind_of(rpc.kind))
        call.admission = admission
        PLACE.set(call)
        if turn is not None:
            await turn
        call.began = perf_counter()

    def _leave(self, call: Call, status: str, meter: Meter) -> None:
        now = perf_counter()
        if call.ending is not None:
            call.ending.cancel()
        few = self._admission.few
        if call in few:
            del few[call]
        elif call.admission is not None:
            took_s = now - call.began if status == "OK" and call.working else None
            call.admission.leave(call, call.admission.kind_of(call.rpc.kind), took_s)
        latency = meter.by_status.get(status) or meter.latency(status)
        latency.observe(now - call.started)
        # The task's context would hold the call, and the call the task: a circle, which stands
        # until the collector comes by.
        PLACE.set(NO_PLACE)
        if call.trace.sampled:
            call.trace.finish(status)

    async def _fail(self, call: Call, error: BaseException, meter: Meter) -> NoReturn:
        """Answers the call with what `error` means, by raising."""
        if isinstance(error, asyncio.CancelledError):
            if call.stopped is not None:
                error = call.stopped
            elif call.task.cancelling():
                # gRPC did it: the client went away, or the deadline passed, which gRPC keeps and
                # answers by itself.
                self._leave(call, "DEADLINE_EXCEEDED" if call.is_late() else "CANCELLED", meter)
                raise error
        elif isinstance(error, (grpc.aio.BaseError, KeyboardInterrupt, SystemExit)):
            # The transport broke under a stream, or the process ends.
            self._leave(call, "CANCELLED", meter)
            raise error
        elif isinstance(error, (Unauthenticated, PermissionDenied)):
            self._audit.refused(call, error)
        status = errors.to_status(errors.as_domain_error(error, call.rpc.method, call.trace))
        self._leave(call, status.code.name, meter)
        call.raw = b""
        _forget(error)
        try:
            await call.context.abort_with_status(status)
        except grpc.aio.AbortError as aborted:
            # By the loop's next turn gRPC has caught it.
            call.task.get_loop().call_soon(_forget, aborted)
            raise

    async def _next(self, call: Call, meter: Meter) -> Message | None:
        """The next request of a call; None where there is none."""
        in_flight, rpc = self._bytes, meter.rpc
        if rpc.long_lived and rpc.streams_in:
            # It may be silent for hours.
            raw = await call.context.read()
        else:
            if in_flight.waiting or len(in_flight.reading) >= in_flight.places:
                await in_flight.turn(call)
            in_flight.reading[call] = call.task.get_loop().time()
            try:
                raw = await call.context.read()
            finally:
                del in_flight.reading[call]
                if in_flight.waiting:
                    in_flight.wake()
        if raw is grpc.aio.EOF:
            return None
        call.raw, size = raw, len(raw)
        meter.received.value += size
        if size > self._max_bytes:
            raise self._too_large(rpc, "request", size, "send less at once")
        # What is gathered counts whatever its size: it has no other limit.
        call.counts = size + GATHERED_BYTES if rpc.streams_in and not rpc.streams_out else size
        if call.counts > SMALL_BYTES or call.counts > size:
            in_flight.take(call, call.counts, "request")
        kind = meter.rpc.request
        try:
            return kind.FromString(raw)
        except DecodeError as error:
            name = kind.DESCRIPTOR.full_name
            raise MalformedRequest(
                f"{meter.rpc.method}: {size} bytes are not a {name}:"
                f" {str(error).rpartition(': ')[2]}",
                metadata={"rpc": meter.rpc.method, "type": name},
            ) from None

    def _encode(self, reply: Reply, call: Call, meter: Meter) -> bytes:
        encoded = reply if isinstance(reply, bytes) else reply.SerializeToString()
        size = len(encoded)
        if size > self._max_bytes:
            raise self._too_large(
                meter.rpc,
                "reply",
                size,
                "ask for less at once: a smaller budget or page, or a delta",
            )
        if size > SMALL_BYTES:
            self._bytes.take(call, size, "reply")
        meter.sent.value += size
        return encoded

    async def _requests(self, call: Call, meter: Meter) -> AsyncGenerator[Message, None]:
        while (request := await self._next(call, meter)) is not None:
            yield request
            if meter.rpc.streams_out and len(call.raw) > SMALL_BYTES:
                self._bytes.give(call, len(call.raw))
        if not meter.rpc.streams_out:
            await _whole(call)

    def _too_large(self, rpc: Rpc, what: str, size: int, advice: str) -> TooLarge:
        return TooLarge(
            f"{rpc.method}: the {what} has {size} bytes, the limit is {self._max_bytes}"
            f" (max_message_bytes); {advice}",
            metadata={"size": str(size), "limit": str(self._max_bytes)},
        )


async def _whole(call: Call) -> None:
    """Fails where the call was cancelled. gRPC ends the requests of a cancelled call like those of
    a finished one, and tells later that it was cancelled; sending fails at once then, so that half
    an import is never taken for a whole one."""
    await call.context.send_initial_metadata(())


def _forget(error: BaseException | None) -> None:
    """Lets go of what the frames of a failure hold. gRPC keeps the failure of a call with the call,
    in a circle with its frames: a request would stay in memory until circles are looked for."""
    while error is not None:
        error.__traceback__ = None
        error = error.__context__


async def _missing(call: Call) -> NoReturn:
    await _whole(call)
    raise MalformedRequest(f"{call.rpc.method}: the call ended without a request")


async def _write(context: Context, reply: bytes) -> None:
    """Sends a part of a stream. Where the call is stopped meanwhile, the part goes out first: gRPC
    refuses to send a status into an unfinished write, and the client would wait for the end of its
    stream for good."""
    writing = asyncio.ensure_future(context.write(reply))
    try:
        await asyncio.shield(writing)
    except asyncio.CancelledError:
        await asyncio.wait([writing], timeout=LAST_WRITE_S)
        if not writing.done():
            writing.cancel()
        raise
