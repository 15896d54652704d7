"""Count the code that one call runs through: functions, modules, rooms, and moves between rooms.

A server is started in this process and warmed by some turns. Then Ingest and Assemble are sent to
it over a real channel, some times, while every thread is profiled; of each, the walk that came most
often counts. A call is counted when it enters a function of the server; a move is a call in another
room than the one before. `--list` prints the way itself, `--json` the numbers.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import grpc

import contextengine_server
from contextengine_proto.v1 import assemble_pb2, context_engine_pb2_grpc, lifecycle_pb2, message_pb2
from contextengine_server.app import running
from contextengine_server.config.load import load_settings

SERVER = f"{Path(contextengine_server.__file__).parent}/"
TURNS = 30
ASKED = 30
"""How often each call is sent: what works in the background enters between its steps now and then,
each time elsewhere, so that the walk that comes most often is the call's own."""


@dataclass
class Walk:
    """The functions that a call entered, in order."""

    steps: list[tuple[str, str]] = field(default_factory=list)
    """(module path below the server, function)."""

    def numbers(self) -> dict[str, int]:
        """What is counted of it."""
        rooms = [room(module) for module, _ in self.steps]
        return {
            "calls": len(self.steps),
            "functions": len(set(self.steps)),
            "modules": len({module for module, _ in self.steps}),
            "rooms": len(set(rooms)),
            "moves": sum(before != after for before, after in itertools.pairwise(rooms)),
        }


def room(module: str) -> str:
    """The room of a module: the first folder, or the module itself at the top."""
    return module.split("/", maxsplit=1)[0].removesuffix(".py")


class Recorder:
    """Records while it is switched on."""

    def __init__(self) -> None:
        self.walk = Walk()
        self.on = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if self.on and event == "call" and frame.f_code.co_filename.startswith(SERVER):
            module = frame.f_code.co_filename[len(SERVER) :]
            self.walk.steps.append((module, frame.f_code.co_qualname))

    @contextmanager
    def recording(self) -> Iterator[Walk]:
        """What is entered meanwhile."""
        self.walk = Walk()
        self.on = True
        try:
            yield self.walk
        finally:
            self.on = False


def message(number: int, role: message_pb2.Role) -> message_pb2.Message:
    """A short message."""
    said = message_pb2.Message(id=f"m{number}", role=role)
    said.parts.add().text.text = f"message {number}: the quick brown fox jumps over the lazy dog"
    return said


def calls(address: str, record: Recorder) -> dict[str, Walk]:
    """Sends the calls from a thread of its own."""
    session = message_pb2.SessionRef(agent_id="walker", session_id="walk")
    walks: dict[str, list[Walk]] = {"Ingest": [], "Assemble": []}
    with grpc.insecure_channel(address) as channel:
        stub = context_engine_pb2_grpc.ContextEngineStub(channel)
        for number in range(TURNS):
            role = message_pb2.ROLE_ASSISTANT if number % 2 else message_pb2.ROLE_USER
            stub.Ingest(lifecycle_pb2.IngestRequest(session=session, message=message(number, role)))
            request = assemble_pb2.AssembleRequest(session=session)
            request.budget.message_tokens = 50_000
            stub.Assemble(request)

        def ask(name: str, send: Callable[[], object]) -> None:
            with record.recording() as walk:
                send()
            walks[name].append(walk)

        for number in range(TURNS, TURNS + ASKED):
            one = lifecycle_pb2.IngestRequest(
                session=session, message=message(number, message_pb2.ROLE_USER)
            )
            ask("Ingest", lambda: stub.Ingest(one))  # noqa: B023 - asked at once
            again = assemble_pb2.AssembleRequest(session=session)
            again.budget.message_tokens = 50_000
            ask("Assemble", lambda: stub.Assemble(again))  # noqa: B023
    return {name: usual(each) for name, each in walks.items()}


def usual(walks: list[Walk]) -> Walk:
    """The walk that came most often."""
    often = Counter(tuple(walk.steps) for walk in walks)
    return max(walks, key=lambda walk: often[tuple(walk.steps)])


async def walked() -> dict[str, Walk]:
    """The walks of both calls through a server that is warm."""
    record = Recorder()
    threading.setprofile(record)
    sys.setprofile(record)
    with tempfile.TemporaryDirectory() as directory:
        flags = {"server.address": "127.0.0.1:0", "store.url": f"sqlite:///{directory}/walk.db"}
        settings = load_settings(flags=flags, environ={})
        async with running(settings) as app:
            await asyncio.sleep(2.0)  # what starts once has started
            return await asyncio.to_thread(calls, app.address, record)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--list", action="store_true", help="print every call")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    options = parser.parse_args()
    walks = asyncio.run(walked())
    if options.json:
        print(json.dumps({name: walk.numbers() for name, walk in walks.items()}))
        return
    for name, walk in walks.items():
        print(name, " ".join(f"{what}={count}" for what, count in walk.numbers().items()))
        if options.list:
            for module, function in walk.steps:
                print(f"    {module}:{function}")


if __name__ == "__main__":
    main()
