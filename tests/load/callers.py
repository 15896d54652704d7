"""Callers in a process of their own: so many at once, each of which sends its next call when the
one before is answered, and comes back when it is told to where it is refused.

python -m tests.load.callers ADDRESS TOKEN KIND CALLERS PAUSE_MS SECONDS

Prints JSON: the seconds that each good answer took, refusals included, when its first try was sent;
how many tries failed, by status and reason; and how long all of it lasted.
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


def step(session: message_pb2.SessionRef) -> tuple[str, bytes]:
    """An Assemble that stores a call and its result. Without ids all of them are new."""
    call = message_pb2.Message(role=message_pb2.ROLE_ASSISTANT)
    call.parts.add().tool_call.CopyFrom(
        message_pb2.ToolCallPart(call_id="c", name="read", arguments_json=b'{"path":"a"}')
    )
    result = message_pb2.Message(role=message_pb2.ROLE_TOOL)
    answer = message_pb2.Part(text=message_pb2.TextPart(text="what the file holds " * 10))
    result.parts.add().tool_result.CopyFrom(message_pb2.ToolResultPart(call_id="c", parts=[answer]))
    wanted = assemble_pb2.AssembleRequest(
        session=session,
        ingest=[call, result],
        budget=budget_pb2.Budget(message_tokens=20_000),
    )
    return "Assemble", wanted.SerializeToString()


def batch(session: message_pb2.SessionRef) -> tuple[str, bytes]:
    """An IngestBatch of 200 messages of 1 KB."""
    text = message_pb2.TextPart(text="what somebody said of it " * 40)
    message = message_pb2.Message(role=message_pb2.ROLE_USER, parts=[message_pb2.Part(text=text)])
    wanted = lifecycle_pb2.IngestBatchRequest(session=session, messages=[message] * 200)
    return "IngestBatch", wanted.SerializeToString()


KINDS: dict[str, Callable[[message_pb2.SessionRef], tuple[str, bytes]]] = {
    "step": step,
    "batch": batch,
}


class Callers:
    """Some callers of one tenant."""

    def __init__(
        self, channels: Sequence[grpc.aio.Channel], token: str, kind: str, seconds: float
    ) -> None:
        self._channels = channels
        self._metadata = (("authorization", f"Bearer {token}"),)
        self._until = time.perf_counter() + seconds
        refs = [
            message_pb2.SessionRef(agent_id="load", session_id=f"{kind}{number}")
            for number in range(SESSIONS)
        ]
        self._requests = [KINDS[kind](ref) for ref in refs]
        self.good: list[float] = []
        self.failed: Counter[str] = Counter()

    async def run(self, number: int, pause_s: float) -> None:
        """One caller."""
        turn, channel = number, self._channels[number // TOGETHER]
        while (began := time.perf_counter()) < self._until:
            method, body = self._requests[turn % SESSIONS]
            send: Any = channel.unary_unary(METHOD + method)
            turn += 37
            if await self._tried(send, body, began):
                self.good.append(time.perf_counter() - began)
            await asyncio.sleep(pause_s)

    async def _tried(self, send: Any, body: bytes, began: float) -> bool:
        """One call, until it is answered well or the time is up."""
        while time.perf_counter() < self._until:
            left = GIVE_UP_S - (time.perf_counter() - began)
            try:
                await send(body, metadata=self._metadata, timeout=max(0.001, left))
            except grpc.aio.AioRpcError as error:
                known = from_rpc_error(error)
                self.failed[f"{error.code().name} {known.reason or error.details()}"] += 1
                wait = getattr(known, "retry_after", None)
                await asyncio.sleep(max(LEAST_RETRY_S, wait or 0.0))
            else:
                return True
        return False


async def main(address: str, token: str, kind: str, count: str, pause: str, seconds: str) -> None:
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]
    async with AsyncExitStack() as stack:
        channels = [
            await stack.enter_async_context(grpc.aio.insecure_channel(address, options))
            for _ in range(0, int(count), TOGETHER)
        ]
        callers = Callers(channels, token, kind, float(seconds))
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(int(count)):
                group.create_task(callers.run(number, float(pause) / 1000))
        lasted = time.perf_counter() - began
    json.dump({"good": callers.good, "failed": callers.failed, "lasted": lasted}, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
