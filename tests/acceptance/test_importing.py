"""`contextengine import` while something goes wrong: killed in the middle and run again nothing is
doubled and nothing lost; and what it says meanwhile and of what it passed over."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from tests.acceptance.shell import AIRLINE, CODING, COMMAND, PATIENCE_S, Shell, serving


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with serving(tmp_path_factory.mktemp("server")) as server:
        yield Shell(tmp_path_factory.mktemp("typing"), server.address)


class Strait:
    """A way to a server through which so many bytes go, and then nothing for as long as it is
    open."""

    def __init__(self, target: str, most: int) -> None:
        host, _, port = target.rpartition(":")
        self._target, self._left = (host, int(port)), most
        self.full = threading.Event()
        self._closed = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._meet, daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        self._listening.close()

    def _meet(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(self._target)
                for source, target, counted in ((near, far, True), (far, near, False)):
                    words = (source, target, counted)
                    threading.Thread(target=self._pump, args=words, daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        with suppress(OSError):
            while chunk := source.recv(16_384):
                if counted:
                    self._left -= len(chunk)
                if self._left < 0:
                    self.full.set()
                    self._closed.wait()
                target.sendall(chunk)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)


@contextmanager
def strait(target: str, most: int) -> Iterator[Strait]:
    with closing(Strait(target, most)) as made:
        yield made


def killed(shell: Shell, file: Path, agent: str, most: int) -> None:
    """Imports a file until the server was sent so many bytes, and kills the command."""
    with strait(shell.address, most) as way:
        through = Shell(shell.directory, way.address)
        process = subprocess.Popen(
            [COMMAND, "import", file, "--agent", agent],
            cwd=shell.directory,
            env=through.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert way.full.wait(PATIENCE_S)
            assert process.poll() is None
        finally:
            process.kill()
            process.wait()


def sessions(shell: Shell, agent: str) -> dict[str, int]:
    """The messages of each session of an agent."""
    listed = shell.run("sessions", "list", "--agent", agent, "--limit", "1000", "--json").json()
    return {row["session_id"]: int(row["message_count"]) for row in listed}


def test_killed_between_sessions_it_goes_on_with_those_that_lack(shell: Shell) -> None:
    killed(shell, AIRLINE, "halfway", 1_000_000)
    there = sessions(shell, "halfway")
    assert 0 < len(there) < 120
    done = shell.run("import", AIRLINE, "--agent", "halfway", "--json").json()["sessions"]
    assert {one["session_id"] for one in done if one["known"]} == there.keys()
    assert sum(one["known"] for one in done) == sum(there.values())
    assert sum(one["stored"] + one["known"] for one in done) == 3_202
    shell.run("import", AIRLINE, "--agent", "whole")
    assert sessions(shell, "halfway") == sessions(shell, "whole")


def test_killed_within_a_session_it_leaves_nothing_of_it_and_then_stores_it_once(
    shell: Shell,
) -> None:
    killed(shell, CODING, "torn", 300_000)
    assert sessions(shell, "torn") == {}
    (done,) = shell.run("import", CODING, "--agent", "torn", "--json").json()["sessions"]
    assert (done["stored"], done["known"]) == (914, 0)
    shell.run("import", CODING, "--agent", "untorn")
    exported = [
        shell.run("export", done["session_id"], "--agent", agent, "--format", "native").out
        for agent in ("torn", "untorn")
    ]
    assert exported[0] == exported[1]


def test_who_looks_on_sees_how_far_it_is(shell: Shell) -> None:
    ours, theirs = pty.openpty()
    seen = bytearray()

    def look() -> None:
        with suppress(OSError):  # the other end is closed
            while piece := os.read(ours, 65_536):
                seen.extend(piece)

    looking = threading.Thread(target=look)
    looking.start()
    done = subprocess.run(
        [COMMAND, "import", CODING, "--agent", "watched"],
        cwd=shell.directory,
        env=shell.environment(TERM="xterm", COLUMNS="120"),
        stdout=subprocess.PIPE,
        stderr=theirs,
        timeout=PATIENCE_S,
        check=True,
    )
    os.close(theirs)
    looking.join()
    os.close(ours)
    (session,) = sessions(shell, "watched")
    assert f"session {session}" in done.stdout.decode()
    assert session in seen.decode()
    assert "914 messages" in seen.decode()
    # Nothing of it is among what others read, and where nobody looks on nothing is drawn.
    assert b"\x1b" not in done.stdout
    assert shell.run("import", CODING, "--agent", "watched").err == ""


def test_files_that_are_passed_over_are_named_with_the_reason(shell: Shell) -> None:
    folder = shell.directory / "home"
    folder.mkdir()
    line = json.dumps({"role": "user", "content": "hi"})
    (folder / "a.jsonl").write_text(line + "\n", encoding="utf-8")
    for number in range(25):
        (folder / f"settings-{number:02}.json").write_text("{}", encoding="utf-8")
    done = shell.run("import", folder, "--agent", "named").text.splitlines()
    assert "passed over: 25 files of no known format" in done
    named = [one for one in done if one.startswith("  ")]
    assert len(named) == 21
    assert f"{folder / 'settings-00.json'}: no known format" in named[0]
    assert named[-1] == "  and 5 more"
    told = shell.run("import", folder, "--agent", "named", "--json").json()["passed_over"]
    assert (told["count"], len(told["files"])) == (25, 20)
    assert told["files"][0]["file"] == str(folder / "settings-00.json")
    assert told["files"][0]["why"].startswith("no known format")
