"""Connections that are cut while calls are under way, as load balancers and sleeping machines cut
them: no call fails of it."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from contextengine import types as t
from tests.clients.drivers import Driver, written
from tests.unit.client.conftest import Server

CALLS = 30
RESET = struct.pack("ii", 1, 0)
"""A socket that lingers for no time is reset where it is closed."""


class Cutting:
    """A way to a server that can be cut."""

    def __init__(self, target: str) -> None:
        self._host, _, self._port = target.rpartition(":")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection((self._host, int(self._port)))
                with self._lock:
                    self._sockets += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        self._end(source, sink)

    def _end(self, *ends: socket.socket) -> None:
        for end in ends:
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def cut(self) -> None:
        """Ends the connections that there are."""
        with self._lock:
            ends, self._sockets = self._sockets, []
        self._end(*ends)

    def close(self) -> None:
        self._listener.close()
        self.cut()


@pytest.fixture
def cutting(scripted: Server) -> Iterator[Cutting]:
    way = Cutting(scripted.address)
    yield way
    way.close()


def test_a_connection_that_is_cut_fails_no_call(alone: Driver, cutting: Cutting) -> None:
    alone.connect(cutting.address, retry_for=30)
    request = written(t.GetStatusRequest())
    asked = {"rpc": "ContextEngine.GetStatus", "request": request, "count": CALLS}
    errors: set[str] = set()
    over = threading.Event()

    def cuts() -> None:
        while not over.wait(0.1):
            cutting.cut()

    thread = threading.Thread(target=cuts)
    thread.start()
    end = time.monotonic() + 5
    try:
        while time.monotonic() < end:
            for answer in alone.ask("together", **asked)["answers"]:
                if "error" in answer:
                    errors.add(f"{answer['error']['code']}: {answer['error']['message']}")
    finally:
        over.set()
        thread.join()
    assert not errors
