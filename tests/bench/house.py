"""The processes of the bench: each on 127.0.0.1, on a port of its own, stopped by its pid."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
READY_WITHIN_S = 30.0


class BenchError(Exception):
    """The bench cannot go on, and why."""


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Process:
    """A child process that serves on `address`; what it prints goes to a file beside its data."""

    def __init__(
        self,
        name: str,
        command: list[str],
        address: str,
        log: Path,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.address, self.log = name, address, log
        self.started = time.perf_counter()
        with log.open("ab") as out:
            self._child = subprocess.Popen(
                command,
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(env or {})},
            )
        self.pid = self._child.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def listening(self) -> float:
        """Waits until it accepts connections; answers the seconds since its start."""
        host, _, port = self.address.rpartition(":")
        while True:
            with suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
                return time.perf_counter() - self.started
            self._still_starting()
            time.sleep(0.005)

    def serving(self) -> float:
        """Waits until its health is SERVING; answers the seconds since its start."""
        self.listening()
        with grpc.insecure_channel(self.address) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            while True:
                with suppress(grpc.RpcError):
                    reply = stub.Check(health_pb2.HealthCheckRequest(), timeout=1)
                    if reply.status == health_pb2.HealthCheckResponse.SERVING:
                        return time.perf_counter() - self.started
                self._still_starting()
                time.sleep(0.005)

    def _still_starting(self) -> None:
        if self._child.poll() is not None:
            raise BenchError(f"{self.name} ended at its start: {self.log.read_text()[-2000:]}")
        if time.perf_counter() - self.started > READY_WITHIN_S:
            raise BenchError(f"{self.name} is not ready after {READY_WITHIN_S:g} s, see {self.log}")

    def resident(self) -> int:
        """Bytes of memory that it takes now."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def stop(self) -> None:
        """Ends it: SIGTERM, and SIGKILL where that does not do it."""
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)
            try:
                self._child.wait(20)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()


def start_floor(directory: Path) -> Process:
    """The bare handler over the replies in `directory`."""
    address = f"127.0.0.1:{free_port()}"
    floor = Process(
        "floor",
        [sys.executable, str(HERE / "floor.py"), address, str(directory)],
        address,
        directory / "log",
    )
    floor.listening()
    return floor


def start_sink(directory: Path) -> Process:
    """The sink for spans."""
    address = f"127.0.0.1:{free_port()}"
    sink = Process(
        "sink", [sys.executable, str(HERE / "sink.py"), address], address, directory / "sink.log"
    )
    sink.listening()
    return sink


def launch_server(directory: Path, settings: Mapping[str, str] | None = None) -> Process:
    """Our server with its data in `directory`; not yet ready."""
    address = f"127.0.0.1:{free_port()}"
    directory.mkdir(parents=True, exist_ok=True)
    env = {
        "CONTEXTENGINE_SERVER__ADDRESS": address,
        "CONTEXTENGINE_STORE__URL": str(directory / "bench.db"),
        "CONTEXTENGINE_SESSIONS__CACHE_BYTES": "1GiB",
        **(settings or {}),
    }
    return Process(
        "server", [str(BIN / "contextengine"), "serve"], address, directory / "server.log", env
    )


def start_server(directory: Path, settings: Mapping[str, str] | None = None) -> Process:
    """Our server, ready."""
    server = launch_server(directory, settings)
    server.serving()
    return server
