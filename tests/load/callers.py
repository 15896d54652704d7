"""Callers in a process of their own: so many at once, each of which sends its next call when the
one before is answered, and comes back when it is told to where it is refused. Or calls at a rate,
sent when their time has come whatever became of those before, each once.

python -m tests.load.callers ADDRESS TOKEN KIND CALLERS PAUSE_MS SECONDS [RATE]

RATE: calls a second; 0: the callers. Then CALLERS says how many connections they take, as for so
many callers.

Prints JSON: the seconds that each good answer took, refusals included, when its first try was sent;
how many tries failed, by status and reason; how long all of it lasted; and how many calls were
sent.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

import grpc

from contextengine.errors import from_rpc_error
from contextengine_proto.v1 import assemble_pb2, budget_pb2, lifecycle_pb2, message_pb2

METHOD = "/contextengine.v1.ContextEngine/"
GIVE_UP_S = 30.0
"""How long a caller tries one call."""
SESSIONS = 2_000
"""Of each tenant; callers take them in turn, so that none becomes long."""
LEAST_RETRY_S = 0.05
TOGETHER = 256
"""Callers on one connection: fewer than a connection takes, beyond which gRPC itself has them
wait."""


def step() -> assemble_pb2.AssembleRequest:
    """An Assemble that stores a call and its result. Without ids all of them are new."""
    call = message_pb2.Message(role=message_pb2.ROLE_ASSISTANT)
    call.parts.add().tool_call.CopyFrom(
        message_pb2.ToolCallPart(call_id="c", name="read", arguments_json=b'{"path":"a"}')
    )
    result = message_pb2.Message(role=message_pb2.ROLE_TOOL)
    answer = message_pb2.Part(text=message_pb2.TextPart(text="what the file holds " * 10))
    result.parts.add().tool_result.CopyFrom(message_pb2.ToolResultPart(call_id="c", parts=[answer]))
    return assemble_pb2.AssembleRequest(
        ingest=[call, result], budget=budget_pb2.Budget(message_tokens=20_000)
    )


def batch() -> lifecycle_pb2.IngestBatchRequest:
    """An IngestBatch of 200 messages of 1 KB."""
    text = message_pb2.TextPart(text="what somebody said of it " * 40)
    message = message_pb2.Message(role=message_pb2.ROLE_USER, parts=[message_pb2.Part(text=text)])
    return lifecycle_pb2.IngestBatchRequest(messages=[message] * 200)


KINDS: dict[str, tuple[str, Callable[[], Any]]] = {
    "step": ("Assemble", step),
    "batch": ("IngestBatch", batch),
}


MOST_OPEN = 20_000
"""Calls that are in flight at most at a rate: beyond it the process, and not the server, has no
room."""
TICK_S = 0.002
"""How often it is looked which calls are due. A process that is behind sends all that are due by
then."""


class Callers:
    """Some callers of one tenant."""

    def __init__(
        self, channels: Sequence[grpc.aio.Channel], token: str, kind: str, seconds: float
    ) -> None:
        self._channels = channels
        self._metadata = (("authorization", f"Bearer {token}"),)
        method, make = KINDS[kind]
        request = make()
        self._method, self._kind, self._type = METHOD + method, kind, type(request)
        self._said: bytes = request.SerializeToString()
        self._until = time.perf_counter() + seconds
        self.good: list[float] = []
        self.failed: Counter[str] = Counter()
        self.sent = 0

    async def offer(self, rate: float) -> None:
        """Calls at a rate until the time is up; what is in flight by then is not waited for."""
        began, open_calls = time.perf_counter(), set[asyncio.Task[None]]()
        while (now := time.perf_counter()) < self._until:
            due = min(int((now - began) * rate) - self.sent, MOST_OPEN - len(open_calls))
            for _ in range(due):
                task = asyncio.create_task(self._once(self.sent))
                open_calls.add(task)
                task.add_done_callback(open_calls.discard)
                self.sent += 1
            await asyncio.sleep(TICK_S)
        for task in open_calls:
            task.cancel()

    def _body(self, turn: int) -> bytes:
        """A request about one of the sessions. Put together as it is sent: all of them at once
        would take the first seconds, and hundreds of megabytes."""
        name = f"{self._kind}{turn % SESSIONS}"
        session = message_pb2.SessionRef(agent_id="load", session_id=name)
        named: bytes = self._type(session=session).SerializeToString()
        return named + self._said

    async def _once(self, number: int) -> None:
        body = self._body(number * 37)
        send: Any = self._channels[number % len(self._channels)].unary_unary(self._method)
        began = time.perf_counter()
        try:
            await send(body, metadata=self._metadata, timeout=GIVE_UP_S)
        except grpc.aio.AioRpcError as error:
            self._refused(error)
        else:
            self.good.append(time.perf_counter() - began)

    def _refused(self, error: grpc.aio.AioRpcError) -> float:
        """Counts it; answers the seconds to wait."""
        known = from_rpc_error(error)
        self.failed[f"{error.code().name} {known.reason or error.details()}"] += 1
        return max(LEAST_RETRY_S, getattr(known, "retry_after", None) or 0.0)

    async def run(self, number: int, pause_s: float) -> None:
        """One caller."""
        turn, channel = number, self._channels[number // TOGETHER]
        while (began := time.perf_counter()) < self._until:
            body = self._body(turn)
            send: Any = channel.unary_unary(self._method)
            turn += 37
            if await self._tried(send, body, began):
                self.good.append(time.perf_counter() - began)
            await asyncio.sleep(pause_s)

    async def _tried(self, send: Any, body: bytes, began: float) -> bool:
        """One call, until it is answered well or the time is up."""
        while time.perf_counter() < self._until:
            left = GIVE_UP_S - (time.perf_counter() - began)
            self.sent += 1
            try:
                await send(body, metadata=self._metadata, timeout=max(0.001, left))
            except grpc.aio.AioRpcError as error:
                await asyncio.sleep(self._refused(error))
            else:
                return True
        return False


async def main(
    address: str, token: str, kind: str, count: str, pause: str, seconds: str, rate: str = "0"
) -> None:
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]
    async with AsyncExitStack() as stack:
        channels = [
            await stack.enter_async_context(grpc.aio.insecure_channel(address, options))
            for _ in range(0, int(count), TOGETHER)
        ]
        for channel in channels:  # what is due while it connects would come all at once
            await channel.channel_ready()
        callers = Callers(channels, token, kind, float(seconds))
        began = time.perf_counter()
        if float(rate):
            await callers.offer(float(rate))
        else:
            async with asyncio.TaskGroup() as group:
                for number in range(int(count)):
                    group.create_task(callers.run(number, float(pause) / 1000))
        lasted = time.perf_counter() - began
    said = {"good": callers.good, "failed": callers.failed, "lasted": lasted, "sent": callers.sent}
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
