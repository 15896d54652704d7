"""Three servers over one PostgreSQL under load: they are killed, paused for longer than their
leases and transactions last, one of them has a clock that is an hour ahead, and the database is
restarted, in good order and as in a crash. No acknowledged message is lost, none is there twice, no
law is broken, and no assembly of an epoch fails to begin as the one before it.

CONTEXTENGINE_POSTGRES_KILLS (200), CONTEXTENGINE_POSTGRES_RESTARTS (20) and
CONTEXTENGINE_POSTGRES_PAUSES (2) say how often."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from contextengine import types as t
from contextengine_proto.v1 import context_engine_pb2_grpc
from tests import postgres

from .killing import Child, Load, Told, missing

KILLS = int(os.environ.get("CONTEXTENGINE_POSTGRES_KILLS", "200"))
RESTARTS = int(os.environ.get("CONTEXTENGINE_POSTGRES_RESTARTS", "20"))
PAUSES = int(os.environ.get("CONTEXTENGINE_POSTGRES_PAUSES", "2"))
PAUSED_S = 20.0
STEP_S = 0.2
"""How long a writer rests after each step: what is looked for is what deaths do, not what fits."""
AGAIN = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
)
"""What a caller sends again."""
_FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
AHEAD = (
    {"LD_PRELOAD": str(_FAKETIME), "FAKETIME": "+1h", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    if _FAKETIME.exists()
    else {}
)
"""The environment of a server whose clock is an hour ahead (Debian: faketime)."""


class Everywhere(Load):
    """Writers that ask any server, and send again at any what was not answered."""

    def __init__(self, seed: int, children: list[Child]) -> None:
        super().__init__(seed, 6)
        self.children = children
        self.wrong: list[str] = []
        self.heard: Counter[str] = Counter()
        self.done = asyncio.Event()

    async def write(self, name: str, told: Told) -> None:
        channels = [grpc.aio.insecure_channel(f"127.0.0.1:{one.port}") for one in self.children]
        stubs = [context_engine_pb2_grpc.ContextEngineStub(one) for one in channels]
        before: tuple[str, list[bytes]] = "", []
        while not self.done.is_set():
            messages = [self.message() for _ in range(self.random.choice((1, 1, 2, 5)))]
            told.unknown |= {message.id for message in messages}
            request = t.AssembleRequest(
                session=t.SessionRef(agent_id="soak", session_id=name),
                ingest=messages,
                budget=t.Budget(message_tokens=4_000),
            )
            while True:
                try:
                    reply = await self.random.choice(stubs).Assemble(request, timeout=15)
                    break
                except grpc.aio.AioRpcError as error:
                    self._heard(error)
                    await asyncio.sleep(0.05)
            for message, item in zip(messages, reply.stored, strict=True):
                told.note(message, item.sequence)
                told.unknown.discard(message.id)
            epoch, hashes = (
                reply.context_projection.epoch,
                [item.content_hash for item in reply.items],
            )
            if epoch == before[0] and hashes[: len(before[1])] != before[1]:
                self.wrong.append(f"{name}: an epoch goes on with another beginning")
            before = epoch, hashes
            await asyncio.sleep(STEP_S)
        for channel in channels:
            await channel.close()

    def message(self) -> t.Message:
        made = super().message()
        made.parts[0].text.text = made.parts[0].text.text[: self.random.choice((50, 500, 4_000))]
        return made

    def _heard(self, error: grpc.aio.AioRpcError) -> None:
        self.heard[error.code().name] += 1
        if error.code() not in AGAIN:
            self.wrong.append(f"{error.code()}: {error.details()}")
        for key, value in error.trailing_metadata() or ():
            if key == "grpc-status-details-bin" and error.code() is grpc.StatusCode.UNAVAILABLE:
                details = status_pb2.Status.FromString(value).details
                if not any(one.Is(error_details_pb2.RetryInfo.DESCRIPTOR) for one in details):
                    self.wrong.append(f"UNAVAILABLE without RetryInfo: {error.details()}")
                self.heard["with RetryInfo"] += 1


class Fleet:
    """The servers. One that is killed starts anew beside what happens next, so that at times one
    alone serves."""

    def __init__(self, children: list[Child], seed: int) -> None:
        self._children, self._chance = children, random.Random(seed)
        self._starting: dict[int, asyncio.Task[None]] = {}

    async def one(self) -> Child:
        """One that serves, and is not the only one."""
        while len(serving := self._serving()) < 2:
            await asyncio.wait(self._starting.values(), return_when=asyncio.FIRST_COMPLETED)
        return self._chance.choice(serving)

    async def kill(self) -> None:
        """Kills one."""
        child = await self.one()
        await child.kill()
        self._starting[self._children.index(child)] = asyncio.create_task(child.start())

    async def all_serve(self) -> None:
        """Waits until none is starting. Raises what a start failed with."""
        await asyncio.gather(*self._starting.values())
        self._starting.clear()

    def _serving(self) -> list[Child]:
        for number, task in list(self._starting.items()):
            if task.done():
                self._starting.pop(number).result()
        return [one for n, one in enumerate(self._children) if n not in self._starting]


async def _acknowledged_more(load: Everywhere, count: int) -> None:
    def known() -> int:
        return sum(len(told.acknowledged) for told in load.told.values())

    until = known() + count
    async with asyncio.timeout(120):
        while known() < until:
            await asyncio.sleep(0.02)


@pytest.mark.timeout(0)
async def test_three_servers_lose_and_double_nothing(tmp_path: Path) -> None:
    postgres.require()
    own = postgres.Cluster()
    chance = random.Random(20_261_126)
    children: list[Child] = []
    try:
        own.start()
        url = own.url("postgres") + "?wait=5"
        children += [
            Child(tmp_path / f"{n}.db", url, **(AHEAD if n == 2 else {})) for n in range(3)
        ]
        for child in children:
            await child.start()
        load, fleet = Everywhere(20_261_126, children), Fleet(children, 20_261_126)
        began = time.monotonic()
        writers = [asyncio.create_task(load.write(name, told)) for name, told in load.told.items()]
        writers.append(asyncio.create_task(load.write("s0", load.told["s0"])))
        what = ["kill"] * KILLS + ["restart"] * RESTARTS + ["pause"] * PAUSES
        chance.shuffle(what)
        for number, happens in enumerate(what):
            await _acknowledged_more(load, 10)
            if happens == "kill":
                await fleet.kill()
            elif happens == "restart":
                await fleet.all_serve()  # none starts without a database
                how = chance.choice((signal.SIGINT, signal.SIGQUIT))
                await asyncio.to_thread(own.stop, how)
                await asyncio.to_thread(own.start)
            else:
                child = await fleet.one()
                assert child.process is not None
                child.process.send_signal(signal.SIGSTOP)
                await asyncio.sleep(PAUSED_S)
                child.process.send_signal(signal.SIGCONT)
            assert not load.wrong, f"{number}: {happens}: " + "; ".join(load.wrong[:5])
            for writer in writers:
                if writer.done():
                    writer.result()
        await fleet.all_serve()
        await _acknowledged_more(load, 50)
        load.done.set()
        await asyncio.gather(*writers)
        lasted = time.monotonic() - began
        for child in children:
            problems = await missing(child.port, load)
            assert not problems, "; ".join(problems[:5])
        assert not load.wrong, "; ".join(load.wrong[:5])
        known = sum(len(told.acknowledged) for told in load.told.values())
        ahead = ", one clock an hour ahead" if AHEAD else ""
        print(
            f"\n{KILLS} kills, {RESTARTS} restarts of the database, {PAUSES} pauses of"
            f" {PAUSED_S:g} s{ahead}, in {lasted:.0f} s: {known} messages acknowledged, none lost,"
            f" none twice, no law broken; callers heard {dict(load.heard)}"
        )
    finally:
        for child in children:
            if child.process is not None and child.process.returncode is None:
                await child.kill()
        own.remove()
