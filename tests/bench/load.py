"""The load: gRPC calls from a compiled program (`driver/`), which makes up each request as it goes
out and costs a small part of what the barest server does.

A load is a script of calls that some lanes do, one after the other, each lane as a harness does: a
call in flight, and the next when it is answered. In a request `%SERIAL%` stands for the number of
its script, which no other has, so that a request is one that nobody has sent before. What counts is
what was answered between two moments at which all lanes were at work.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from .house import HERE, BenchError, Process

WARM_S = 0.7
"""Connecting, and the first calls, which find caches cold."""

SERIAL = "%SERIAL%"
"""Stands in a request for eight digits."""

_BUILT_WITHIN_S = 300
_SCRIPTS = count(1, 1_000_000)
"""Where each load begins to number its scripts."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a script."""

    method: str
    """`package.Service/Rpc`; the floor answers by the last part."""
    bodies: Sequence[bytes]
    """Encoded requests: they go round with the scripts."""
    per_lane: bool = False
    """Lane n sends body n instead."""
    known: bool = False
    """Names the list that the reply of the lane's last such call made."""
    every: int = 0
    """Only every so many scripts have it. 0: all."""


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent."""

    script: Sequence[Step]
    lanes: int = 16
    """Calls in flight."""
    connections: int = 4
    scripts_per_s: float = 0
    """Offered in all, by the clock: one that finds its lane busy waits, and its wait counts. 0: as
    many as are answered."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """Of the calls of one method, in seconds."""

    calls: int
    p50: float
    p99: float
    p999: float
    max: float
    bytes: float
    """The mean reply."""
    latest: Sequence[tuple[float, float]] = ()
    """The slowest hundred: when each was answered, since 1970, and how long it took."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One turn of a load."""

    rate: float
    """Calls answered a second."""
    cpu: float
    """Seconds of the server's processor time a call."""
    own: float
    """Those of the driver."""
    calls: int
    """Answered in all, before and after what counts too."""
    scripts: int
    """Begun in all."""
    first: int
    """The number of the first of them; the others follow."""
    all: Latencies
    methods: Mapping[str, Latencies] = field(default_factory=dict)

    @property
    def p50(self) -> float:
        """The median latency."""
        return self.all.p50

    @property
    def p99(self) -> float:
        """The latency that one call in a hundred exceeds."""
        return self.all.p99

    @property
    def p999(self) -> float:
        """The latency that one call in a thousand exceeds."""
        return self.all.p999

    @property
    def reply_bytes(self) -> float:
        """The mean reply."""
        return self.all.bytes


def drive(load: Load, server: Process, seconds: float) -> Slice:
    """Drives a server for about `seconds` and answers what it did. Raises BenchError where a call
    failed."""
    program = build()
    with tempfile.TemporaryDirectory(prefix="bench-load-") as scratch:
        script = []
        for index, step in enumerate(load.script):
            file = Path(scratch) / str(index)
            file.write_bytes(b"".join(len(one).to_bytes(4, "big") + one for one in step.bodies))
            script.append(
                {
                    "method": step.method,
                    "bodies": str(file),
                    "per_lane": step.per_lane,
                    "known": step.known,
                    "every": step.every,
                }
            )
        asked: dict[str, Any] = {
            "address": server.address,
            "pid": server.pid,
            "connections": load.connections,
            "lanes": load.lanes,
            "rate": load.scripts_per_s,
            "warm": WARM_S,
            "seconds": seconds,
            "first": next(_SCRIPTS),
            "script": script,
        }
        done = subprocess.run(
            [str(program)],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds + 60,
        )
    if done.returncode:
        raise BenchError(f"the load failed:\n{done.stderr[-2000:]}")
    told = json.loads(done.stdout)
    if told.get("failure"):
        raise BenchError(f"a call failed: {told['failure']}")
    if told["answered"] != told["sent"]:
        raise BenchError(f"{told['sent']} calls were sent, and {told['answered']} were answered")
    methods = {name: Latencies(**one) for name, one in told["methods"].items()}
    return Slice(
        rate=told["rate"],
        cpu=told["cpu"],
        own=told["own"],
        calls=told["answered"],
        scripts=told["scripts"],
        first=asked["first"],
        all=methods.pop(""),
        methods=methods,
    )


@cache
def build() -> Path:
    """The driver, built beside what else is built. Raises BenchError where it cannot be."""
    go = shutil.which("go")
    if go is None:
        raise BenchError("go is not on PATH: install Go 1.23 or newer, which builds the load")
    program = HERE.parents[1] / "build" / "bench-driver"
    made = subprocess.run(
        [go, "build", "-buildvcs=false", "-o", str(program), "."],
        check=False,
        cwd=HERE / "driver",
        capture_output=True,
        text=True,
        timeout=_BUILT_WITHIN_S,
    )
    if made.returncode:
        raise BenchError(f"the load could not be built:\n{made.stderr[-2000:]}")
    return program
