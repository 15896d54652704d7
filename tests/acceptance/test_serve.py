"""Starting and ending: the ready line, what may not start and what it says to set, and the
drain."""

from __future__ import annotations

import hashlib
import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from contextengine import Client, SessionRef, user
from contextengine.calls import IMPORT
from contextengine.errors import ContextEngineError, Draining, Overloaded, SessionNotFound
from contextengine.types import ImportRequest, ImportResponse
from tests.acceptance.shell import PATIENCE_S, Shell, serving, store_of
from tests.databases import ON_SQLITE

TOKEN_SHA256 = "5fdebff59bdb4c9ab6e1c5a1a6ff2bd7f4ba5d1b7a2f3d4a5b6c7d8e9f0a1b2c"


def test_the_ready_line_says_where_who_and_what(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert (
            server.line.strip()
            == f"ready on {server.address} (plaintext; no tokens: every caller is tenant `default`;"
            f" store {store_of(tmp_path)})"
        )
        with Client(server.address) as client:
            assert client.engines.list().default_engine_id == "dag"
        assert server.stop() == 0


def test_flags_and_set_reach_the_settings(tmp_path: Path) -> None:
    tokens = f"auth.tokens=[{{sha256: {TOKEN_SHA256}, tenant: acme}}]"
    with serving(tmp_path, "--engine", "legacy", "--set", tokens, "--log-format", "json") as server:
        assert "callers by token, 1 known" in server.line
        assert server.stop() == 0
    assert '"event":"closed"' in (tmp_path / "server.log").read_text().replace('": "', '":"')


def test_a_store_in_memory_serves_and_says_once_that_it_keeps_nothing(tmp_path: Path) -> None:
    session = SessionRef(agent_id="a", session_id="s")
    with serving(tmp_path, "--store", "memory:") as server:
        assert server.line.rstrip().endswith("store in memory)")
        with Client(server.address) as client:
            written = client.ingest(session, user("the blue door"))
            found = client.recall.search(session, "doors", at_least_revision=written.revision)
            assert ["door" in hit.snippet for hit in found.hits] == [True]
            assert client.sessions.get(session).session.message_count == 1
            checks = {check.name: check for check in client.engines.doctor().checks}
            assert "is lost with the server" in checks["store.url"].found
        assert server.stop() == 0
    log = (tmp_path / "server.log").read_text()
    assert log.count("nothing that is stored survives a restart") == 1
    assert not (tmp_path / "store.db").exists()
    with serving(tmp_path, "--store", "memory:") as server, Client(server.address) as client:
        assert client.sessions.list().sessions == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--address", "0.0.0.0:0"), ("server.address", "server.tls.cert_file", "auth.tokens",
        "--insecure")),
        (("--address", "[::]:0", "--set", f"auth.tokens=[{{sha256: {TOKEN_SHA256}, tenant: a}}]"),
        ("server.tls",)),
        (("--engine", "nope"), ("'nope' is not registered", "layered, legacy", "engine.default")),
        (("--set", "server.adress=1"), ("server.adress", "did you mean server.address?")),
        (("--set", "server.drain_grace=-1s"), ("server.drain_grace",)),
        (("--set", "server.tls.cert_file=none.pem", "--set", "server.tls.key_file=none.key"),
        ("none.pem cannot be read",)),
        (("--set", "telemetry.metrics.prometheus.address=somewhere"),
        ("telemetry.metrics.prometheus.address", "must be host:port")),
        (("--set", "telemetry.metrics.prometheus.address=0.0.0.0:9464"),
        ("telemetry.metrics.prometheus", "insecure: true")),
        (("--config", "none.yaml"), ("none.yaml", "cannot be read")),
    ],
)  # fmt: skip
def test_what_may_not_start_says_what_to_set(
    alone: Shell, words: tuple[str, ...], said: tuple[str, ...]
) -> None:
    refused = alone.run("serve", "--store", "x.db", *words, status=2)
    assert refused.out == b""
    for text in said:
        assert text in refused.err
    assert not (alone.directory / "x.db").exists()


def test_a_port_in_use(alone: Shell) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        refused = alone.run("serve", "--address", address, "--store", "x.db", status=75)
        assert f"cannot listen on {address}: the port is in use by another process" in refused.err


@ON_SQLITE
def test_a_store_in_use_and_one_that_is_none(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with serving(tmp_path) as server:
        refused = shell.run("serve", "--address", "127.0.0.1:0", "--store", "store.db", status=75)
        assert f"is in use by process {server.process.pid}" in refused.err
        asked = shell.run("sessions", "list", "--store", "store.db", status=1)
        assert f"is in use by process {server.process.pid}" in asked.err
        assert "--address" in asked.err
    (tmp_path / "text.db").write_text(
        "this is no database, but long enough to be read as one\n" * 40
    )
    refused = shell.run("serve", "--address", "127.0.0.1:0", "--store", "text.db", status=2)
    assert "text.db is not an SQLite database" in refused.err


def test_a_call_in_flight_is_finished_when_the_server_is_told_to_end(
    tmp_path: Path,
) -> None:
    """An import is half sent when the signal comes: it is finished, answered and stored; new calls
    are refused."""
    refused = threading.Event()
    ref = SessionRef(agent_id="a", session_id="s")

    def sent() -> Iterator[ImportRequest]:
        yield ImportRequest(header=ImportRequest.Header(session=ref))
        yield ImportRequest(message=user("before", id="1"))
        refused.wait()
        yield ImportRequest(message=user("after", id="2"))

    replies: list[ImportResponse] = []

    def send() -> None:
        """Sends it again where a call below had the only place at that moment."""
        while not replies:
            with suppress(Overloaded):
                replies.append(client.stream_unary(IMPORT, sent()))

    def heard(error: type[ContextEngineError], ask: Callable[[], object]) -> None:
        """Asks until the answer is this error."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            try:
                ask()
            except error:
                return
            except SessionNotFound:
                pass
            time.sleep(0.02)
        raise AssertionError(f"no call was answered with {error.__name__}")

    only_one = ("--set", "server.max_long_rpcs=1")
    # Longer than all that the test waits for: only an import that is done ends the drain.
    patient = ("--set", f"server.drain_grace={4 * PATIENCE_S}s")
    with (
        serving(tmp_path, *only_one, *patient) as server,
        Client(server.address, retry_for=0) as client,
    ):
        caller = threading.Thread(target=send)
        caller.start()
        try:
            # The server works on the import: there is no place for another call of its kind.
            heard(Overloaded, lambda: client.compact(SessionRef(agent_id="a", session_id="none")))
            client.engines.list()
            server.process.send_signal(signal.SIGTERM)
            heard(Draining, client.engines.list)
            assert not replies
        finally:
            refused.set()
            caller.join(PATIENCE_S)
        assert [reply.stored_count for reply in replies] == [2]
        assert server.process.wait(PATIENCE_S) == 0
    rows = (
        Shell(tmp_path)
        .run("export", "s", "--agent", "a", "--format", "openai", "--store", store_of(tmp_path))
        .json()
    )
    assert [message["content"] for message in rows["messages"]] == ["before", "after"]


def test_tokens_are_read_again_at_a_signal(tmp_path: Path) -> None:
    settings = tmp_path / "contextengine.yaml"

    def write(*tokens: str) -> None:
        rows = [
            {"sha256": hashlib.sha256(token.encode()).hexdigest(), "tenant": "acme"}
            for token in tokens
        ]
        settings.write_text(json.dumps({"auth": {"tokens": rows}}))

    def known(token: str) -> bool:
        done = shell.run("sessions", "list", "--token", token, status=None)
        return done.status == 0

    def until(condition: Callable[[], bool]) -> None:
        limit = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < limit
            time.sleep(0.1)

    write("one")
    with serving(tmp_path) as server:
        shell = Shell(tmp_path, server.address)
        assert known("one")
        assert not known("two")
        write("two")
        server.process.send_signal(signal.SIGHUP)
        until(lambda: known("two"))
        assert not known("one")
        settings.write_text("auth: {tokens: 7}")
        server.process.send_signal(signal.SIGHUP)
        log = tmp_path / "server.log"
        until(lambda: "not_reloaded" in log.read_text())
        assert "auth.tokens" in log.read_text()
        write("two")
        assert known("two")
