"""A server of its own stays within its memory, whatever is sent at once, and goes on serving."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc

from contextengine.answers import answer_of
from contextengine.errors import from_rpc_error
from contextengine_proto.v1 import (
    context_engine_pb2_grpc,
    lifecycle_pb2,
    message_pb2,
    sessions_pb2,
    sessions_pb2_grpc,
)
from tests.acceptance.shell import PATIENCE_S, Serving, serving

MIB = 1 << 20
SETTINGS = (
    *("--set", "server.max_message_bytes=16MiB"),
    *("--set", "server.max_bytes_in_flight=32MiB"),
    *("--set", "server.memory_limit=400MiB"),
    *("--set", "sessions.cache_bytes=32MiB"),
)
"""For a container of 512 MiB."""
MOST = 500 * MIB


def peak(server: Serving) -> int:
    """The most memory that the process ever took, in bytes."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found.group(1)) * 1024


@asynccontextmanager
async def channel_to(server: Serving) -> AsyncIterator[Any]:
    options = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    async with grpc.aio.insecure_channel(server.address, options) as channel:
        yield channel


def message(size: int, id: str = "") -> message_pb2.Message:
    text = message_pb2.Part(text=message_pb2.TextPart(text="word " * (size // 5)))
    return message_pb2.Message(id=id, role=message_pb2.ROLE_USER, parts=[text])


def session(name: str) -> message_pb2.SessionRef:
    return message_pb2.SessionRef(agent_id="a", session_id=name)


async def outcome(call: Any) -> str:
    """OK, or the reason of the failure."""
    try:
        async with asyncio.timeout(2 * PATIENCE_S):
            await answer_of(call)
    except grpc.aio.AioRpcError as error:
        return str(from_rpc_error(error).reason)
    return "OK"


async def test_many_large_requests_at_once(tmp_path: Path) -> None:
    """Each is lawful; worked on together they take more than a gigabyte."""
    with serving(tmp_path, *SETTINGS) as server:
        async with channel_to(server) as channel:
            stub: Any = context_engine_pb2_grpc.ContextEngineStub(channel)
            body = message(12 * MIB)
            calls = [
                stub.Ingest(lifecycle_pb2.IngestRequest(session=session(f"s{n}"), message=body))
                for n in range(20)
            ]
            found = Counter(await asyncio.gather(*map(outcome, calls)))
            listing: Any = sessions_pb2_grpc.SessionsStub(channel)
            listed = await listing.List(sessions_pb2.SessionsListRequest())
        assert server.process.poll() is None
        assert peak(server) < MOST
    assert found.keys() <= {"OK", "OVERLOADED"}
    assert found["OK"] == len(listed.sessions) > 0


async def test_a_session_larger_than_all_that_may_be_in_flight(tmp_path: Path) -> None:
    """It is stored part by part, and compared so where it comes again."""
    count = 60
    photo = message_pb2.ImagePart(data=bytes(range(256)) * (4 * MIB // 256), mime_type="image/png")
    part = message_pb2.Part(image=photo)

    async def parts() -> AsyncIterator[Any]:
        header = sessions_pb2.ImportRequest.Header(session=session("s"), message_count=count)
        yield sessions_pb2.ImportRequest(header=header)
        for number in range(count):
            said = message_pb2.Message(id=f"m{number}", role=message_pb2.ROLE_USER, parts=[part])
            yield sessions_pb2.ImportRequest(message=said)

    # Who remembers facts reads 500 messages at a time.
    without = ("--set", "memory.enabled=false")
    with serving(tmp_path, *SETTINGS, *without) as server:
        async with channel_to(server) as channel:
            stub: Any = sessions_pb2_grpc.SessionsStub(channel)
            done = await stub.Import(parts(), timeout=2 * PATIENCE_S)
            again = await stub.Import(parts(), timeout=2 * PATIENCE_S)
        assert server.process.poll() is None
        assert peak(server) < MOST
    assert (done.stored_count, done.duplicate_count, done.revision) == (count, 0, 1)
    assert (again.stored_count, again.duplicate_count, again.revision) == (0, count, 1)


async def test_exports_whose_readers_stop_take_a_part_each(tmp_path: Path) -> None:
    """Sixteen of a session of 60 MiB, which together are more than the container has; one of them
    is read to its end after all."""
    count, readers = 60, 16
    header = sessions_pb2.ImportRequest.Header(session=session("s"), message_count=count)
    photo = message_pb2.ImagePart(data=bytes(range(256)) * (MIB // 256), mime_type="image/png")

    async def parts() -> AsyncIterator[Any]:
        yield sessions_pb2.ImportRequest(header=header)
        for number in range(count):
            part = message_pb2.Part(image=photo)
            said = message_pb2.Message(id=f"m{number}", role=message_pb2.ROLE_USER, parts=[part])
            yield sessions_pb2.ImportRequest(message=said)

    with serving(tmp_path, *SETTINGS, "--set", "memory.enabled=false") as server:
        async with channel_to(server) as channel:
            stub: Any = sessions_pb2_grpc.SessionsStub(channel)
            await stub.Import(parts(), timeout=2 * PATIENCE_S)
            asked = sessions_pb2.ExportRequest(session=session("s"))
            streams = [stub.Export(asked, timeout=2 * PATIENCE_S) for _ in range(readers)]
            for stream in streams:
                for _ in range(2):  # the session and its first message
                    assert await stream.read() is not grpc.aio.EOF
            await asyncio.sleep(3)  # whoever reads ahead of his reader does so now
            stopped = peak(server)
            ids = []
            while (part := await streams[0].read()) is not grpc.aio.EOF:
                ids += [part.message.message.id] * part.HasField("message")
            for stream in streams[1:]:
                stream.cancel()
        assert server.process.poll() is None
        assert peak(server) < MOST
    assert stopped < MOST
    assert ids == [f"m{number}" for number in range(1, count)]


async def test_what_goes_on_behind_a_session_is_counted_as_what_it_takes(tmp_path: Path) -> None:
    """A million messages of thirty bytes: their bytes alone would fit. All or none are stored, and
    what fits is."""
    header = sessions_pb2.ImportRequest.Header(session=session("s"))

    async def parts(count: int) -> AsyncIterator[Any]:
        yield sessions_pb2.ImportRequest(header=header)
        for number in range(count):
            yield sessions_pb2.ImportRequest(message=message(5, f"m{number}"))

    with serving(tmp_path, *SETTINGS, "--set", "memory.enabled=false") as server:
        async with channel_to(server) as channel:
            stub: Any = sessions_pb2_grpc.SessionsStub(channel)
            first = await stub.Import(parts(1), timeout=2 * PATIENCE_S)
            beyond = await outcome(stub.Import(parts(1_000_000)))
            then = await stub.Import(parts(20_000), timeout=2 * PATIENCE_S)
        assert server.process.poll() is None
        assert peak(server) < MOST
    assert (first.stored_count, beyond) == (1, "TOO_LARGE")
    assert (then.stored_count, then.duplicate_count, then.revision) == (19_999, 1, 2)
