"""h2load as the load: calls of gRPC are POSTs whose body is a prefix of five bytes and the encoded
request.

h2load sends one fixed body a process. So a load on one session is one process with some
connections, and a load on n sessions is n processes with one connection and one call in flight
each; the floor is driven by as many. Every call is logged with its time, and what counts is what
ended between two moments at which all processes were at work.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .house import BenchError, Process

WARM_S = 0.7
"""Connecting, and the first calls, which find caches cold."""


def framed(message: bytes) -> bytes:
    """A message as gRPC sends it: not compressed, its length, itself."""
    return struct.pack(">BI", 0, len(message)) + message


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent: each of `bodies` by a process of its own, or one body over several
    connections."""

    method: str
    """`package.Service/Rpc`; the floor answers by the last part."""
    bodies: tuple[Path, ...]
    """Files of framed requests."""
    connections: int = 1
    streams: int = 1
    """Calls in flight on each connection."""
    calls_per_s: float = 0
    """Offered in all; 0: as many as are answered."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One turn of a load."""

    rate: float
    """Calls answered a second."""
    p50: float
    """Seconds."""
    p99: float
    """Seconds."""
    calls: int
    """Answered in all, before and after the window too."""
    unfinished: int
    """Sent but not answered when the load ended: at most one for each call in flight."""
    reply_bytes: float
    """The mean reply."""
    cpu: float
    """Seconds of the server's processor time a call."""


def drive(load: Load, server: Process, seconds: float) -> Slice:
    """Drives a server for about `seconds` and answers what it did. Raises BenchError where a call
    failed."""
    h2load = shutil.which("h2load")
    if h2load is None:
        raise BenchError(
            "h2load is not on PATH: install nghttp2-client (apt-get install nghttp2-client, or brew"
            " install nghttp2)"
        )
    many = len(load.bodies) > 1
    if many and (load.connections, load.streams) != (1, 1):
        raise BenchError("a load of several bodies has one call in flight for each")
    workers = len(load.bodies) * load.connections
    spawning = 0.3 + 0.03 * len(load.bodies)
    lasting = WARM_S + spawning + seconds
    with tempfile.TemporaryDirectory(prefix="bench-load-") as scratch:
        started = time.time()
        children = []
        for index, body in enumerate(load.bodies):
            command = [
                h2load, "-t1", f"-c{load.connections}", f"-m{load.streams}",
                "-D", f"{round(lasting * 1000)}ms", "-d", str(body),
                f"--log-file={scratch}/{index}",
                "-H", "content-type: application/grpc", "-H", "te: trailers",
            ]  # fmt: skip
            if load.calls_per_s:
                command.append(f"--rps={max(1, round(load.calls_per_s / workers))}")
            command.append(f"http://{server.address}/{load.method}")
            children.append(
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            )
        time.sleep(WARM_S)
        begin, cpu = time.time(), server.cpu()
        time.sleep(max(0.0, min(seconds, started + lasting - 0.1 - begin)))
        end, cpu = time.time(), server.cpu() - cpu
        outputs = [child.communicate(timeout=lasting + 30)[0].decode() for child in children]
        lines = []
        for index in range(len(children)):
            lines += Path(scratch, str(index)).read_text(encoding="ascii").splitlines()
    return _slice(load, outputs, lines, begin, end, cpu)


def _slice(
    load: Load, outputs: Sequence[str], lines: Sequence[str], begin: float, end: float, cpu: float
) -> Slice:
    calls = unfinished = data = 0
    for output in outputs:
        report = _report(output)
        if report["failed"] or report["errored"] or report["2xx"] < report["done"]:
            raise BenchError(f"calls of {load.method} failed:\n{output}")
        calls += report["done"]
        unfinished += report["started"] - report["done"]
        data += report["data"]
    latencies = []
    for line in lines:
        start, _, took = line.split("\t")
        ended = (int(start) + int(took)) / 1e6
        if begin <= ended < end:
            latencies.append(int(took) / 1e6)
    if not latencies:
        raise BenchError(
            f"no call of {load.method} was answered in {end - begin:.1f} s:\n{outputs[0]}"
        )
    latencies.sort()
    return Slice(
        rate=len(latencies) / (end - begin),
        p50=quantile(latencies, 0.5),
        p99=quantile(latencies, 0.99),
        calls=calls,
        unfinished=unfinished,
        reply_bytes=data / max(1, calls) - 5,
        cpu=cpu / len(latencies),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which this share of the values lies."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _report(output: str) -> dict[str, int]:
    """h2load's own counts."""
    found = {}
    for line in output.splitlines():
        if line.startswith("requests:"):
            for item in line.removeprefix("requests:").split(","):
                number, name = item.split()
                found[name] = int(number)
        elif line.startswith("status codes:"):
            found["2xx"] = int(line.split()[2])
        elif line.startswith("traffic:"):
            found["data"] = int(line.rpartition("(")[2].partition(")")[0])
    if found.keys() < {"started", "done", "failed", "2xx", "data"}:
        raise BenchError(f"h2load said nothing that is understood:\n{output}")
    return found
