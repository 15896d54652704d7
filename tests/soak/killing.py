"""A real server as a child process that is killed under load, and what its writers were told before
it died."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from contextengine import types as t
from contextengine_proto.v1 import context_engine_pb2_grpc, sessions_pb2_grpc
from tests import transports
from tests.integration.assemble.judging import Judge
from tests.integration.harness import LARGE, Exported

READY_S = 180.0
PORTS = range(10_000, 32_000)
"""Below those that kernels give to whoever names none: from 32768 Linux, others from 49152."""


def free_port() -> int:
    """A port of loopback that nobody holds now, and that the kernel gives nobody of its own accord:
    it is free also while a server is between two lives."""
    for port in random.SystemRandom().sample(PORTS, 200):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError(f"of 200 ports from {PORTS.start} to {PORTS.stop} none is free")


class Child:
    """`contextengine serve` as a process of its own. What it says goes to a file beside the
    store. `url`: of a store that is no file; `more`: variables of its environment."""

    def __init__(self, store: Path, url: str = "", **more: str) -> None:
        self.store, self.log, self.port = store, store.with_suffix(".log"), free_port()
        self._url, self._more = url or str(store), more
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Starts it and waits until it says that it serves."""
        command = Path(sys.executable).with_name("contextengine")
        arguments = ["serve", "--address", f"127.0.0.1:{self.port}", "--store", self._url]
        with self.log.open("wb") as log:
            self.process = await asyncio.create_subprocess_exec(
                str(command),
                *arguments,
                stdout=log,
                stderr=asyncio.subprocess.STDOUT,
                env=transports.environment() | self._more,
            )
        async with asyncio.timeout(READY_S):
            while str(self.port) not in self.said():
                assert self.process.returncode is None, (
                    f"exit {self.process.returncode}: {self.said()}"
                )
                await asyncio.sleep(0.02)

    def said(self) -> str:
        """What it has said in this life."""
        return self.log.read_text()

    async def kill(self) -> None:
        """SIGKILL: nothing is flushed, nobody is told."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()

    async def end(self) -> None:
        """SIGTERM, then wait."""
        if self.process is not None and self.process.returncode is None:
            self.process.terminate()
            await asyncio.wait_for(self.process.wait(), READY_S)


@dataclass
class Told:
    """What the writers of a session know: acknowledged messages by sequence, and ids whose fate
    they do not know."""

    acknowledged: dict[int, bytes] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)

    def note(self, message: t.Message, sequence: int) -> None:
        """The server said that the message is stored there."""
        body = message.SerializeToString(deterministic=True)
        assert self.acknowledged.setdefault(sequence, body) == body, (
            f"two messages were acknowledged as {sequence}"
        )


class Load:
    """Writers that go on until the server dies: batches, single messages and steps, on sessions of
    their own and a shared one."""

    def __init__(self, seed: int, sessions: int = 4) -> None:
        self.random = random.Random(seed)
        self.told = {f"s{number}": Told() for number in range(sessions)}
        self.serial = 0

    async def run(self, port: int, seconds: float) -> None:
        """Writes until the time is up or the server is gone."""
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = context_engine_pb2_grpc.ContextEngineStub(channel)
            names = [*self.told, "s0"]
            writers = [asyncio.create_task(self._write(stub, name)) for name in names]
            await asyncio.wait(writers, timeout=seconds)

    async def stop(self, task: asyncio.Task[None]) -> None:
        """Ends the writers after the server is gone."""
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    def message(self) -> t.Message:
        """A message that no other is equal to."""
        self.serial += 1
        text = f"message {self.serial} " + "x" * self.random.choice((0, 50, 2_000, 30_000))
        native = t.Native(format="test", json=f'{{"n": {self.serial}}}'.encode())
        return t.Message(
            id=f"m{self.serial}",
            role=t.Role.ROLE_USER,
            parts=[t.Part(text=t.TextPart(text=text))],
            native=native,
        )

    async def _write(self, stub: context_engine_pb2_grpc.ContextEngineAsyncStub, name: str) -> None:
        told = self.told[name]
        session = t.SessionRef(agent_id="soak", session_id=name)
        while True:
            messages = [self.message() for _ in range(self.random.choice((1, 1, 2, 20)))]
            ids = {message.id for message in messages}
            told.unknown |= ids
            try:
                if self.random.random() < 0.5:
                    batch = await stub.IngestBatch(
                        t.IngestBatchRequest(session=session, messages=messages)
                    )
                    stored = batch.stored
                else:
                    budget = t.Budget(message_tokens=4_000)
                    step = await stub.Assemble(
                        t.AssembleRequest(session=session, ingest=messages, budget=budget)
                    )
                    stored = step.stored
            except grpc.RpcError:
                return
            for message, item in zip(messages, stored, strict=True):
                told.note(message, item.sequence)
            told.unknown -= ids


async def missing(port: int, load: Load) -> list[str]:
    """What was acknowledged and is not there once, in order, byte for byte; what is there and
    should not be; and what laws an assembly over it breaks."""
    problems: list[str] = []
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", LARGE) as channel:
        sessions = sessions_pb2_grpc.SessionsStub(channel)
        engine = context_engine_pb2_grpc.ContextEngineStub(channel)
        for name, told in load.told.items():
            if not told.acknowledged:
                continue
            session = t.SessionRef(agent_id="soak", session_id=name)
            reply = await engine.Assemble(
                t.AssembleRequest(session=session, budget=t.Budget(message_tokens=20_000))
            )
            kept = Exported(t.SessionInfo(), [], [])
            async for part in sessions.Export(
                t.ExportRequest(session=session, as_of_revision=reply.revision)
            ):
                if part.WhichOneof("kind") == "message":
                    kept.messages.append(part.message)
                elif part.WhichOneof("kind") == "summary":
                    kept.summaries.append(part.summary)
            found = {row.sequence: row.message for row in kept.messages}
            problems += [f"{name}: law {law}: {why}" for law, why in Judge.of(kept).verdict(reply)]
            if sorted(found) != list(range(1, len(found) + 1)):
                problems.append(f"{name}: sequences have gaps or repeat")
            for sequence, body in told.acknowledged.items():
                there = found.get(sequence)
                if there is None or there.SerializeToString(deterministic=True) != body:
                    problems.append(f"{name}: message {sequence} is not what was acknowledged")
            ids = [message.id for message in found.values()]
            if len(set(ids)) != len(ids):
                problems.append(f"{name}: a message is stored twice")
            known = {t.Message.FromString(body).id for body in told.acknowledged.values()}
            if set(ids) - known - told.unknown:
                problems.append(f"{name}: messages are stored that nobody sent")
            # What was in flight when the server died may have been stored: from now on it is known.
            for sequence, message in found.items():
                told.note(message, sequence)
            told.unknown -= set(ids)
    return problems


async def rounds(directory: Path, count: int, seed: int) -> dict[str, int]:
    """Kills a loaded server `count` times; answers what happened. Raises AssertionError with what
    was lost."""
    load = Load(seed)
    child = Child(directory / "soak.db")
    try:
        await child.start()
        for number in range(count):
            writing = asyncio.create_task(load.run(child.port, 20))
            await asyncio.sleep(load.random.uniform(0.05, 1.0))
            await child.kill()
            await load.stop(writing)
            await child.start()
            try:
                problems = await missing(child.port, load)
            except grpc.RpcError as error:
                raise AssertionError(
                    f"after kill {number + 1}: {error}\n{child.said()[-4_000:]}"
                ) from error
            assert not problems, f"after kill {number + 1}: " + "; ".join(problems[:5])
    finally:
        await child.end()
    return {
        "kills": count,
        "messages": sum(len(told.acknowledged) for told in load.told.values()),
        "sent": load.serial,
    }
