"""Typing commands as a user does: the installed `contextengine`, in processes of its own or, where
much is typed, in this one."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from contextengine_server import cli
from tests import postgres, transports

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
AIRLINE, CODING = DATA / "airline_transcripts.jsonl", DATA / "coding_session.pi.jsonl"
PATIENCE_S = 60
"""How long a test waits for what must come: the machine may stand still for a while."""
COMMAND = Path(sys.executable).with_name("contextengine")


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    status: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Shell:
    """A directory to type in and the server to ask; no address: none is named."""

    directory: Path
    address: str = ""
    here: bool = False
    """Run the entry point in this process, which saves its start. Only with a server that runs
    elsewhere."""

    def environment(self, **more: str) -> dict[str, str]:
        kept = transports.environment()
        # Where no address is given none must answer by chance: port 1 is nobody's.
        found = {"CONTEXTENGINE_SERVER__ADDRESS": "127.0.0.1:1"}
        if self.address:
            found["CONTEXTENGINE_ADDRESS"] = self.address
        path = f"{COMMAND.parent}{os.pathsep}{kept.get('PATH', '')}"
        return kept | found | {"PATH": path} | more

    def run(self, *words: object, stdin: bytes = b"", status: int | None = 0, **more: str) -> Done:
        """Runs a command to its end; `status` is the exit status that it must have, None any."""
        run = self._run_here if self.here else self._run_process
        found = run([str(word) for word in words], stdin, self.environment(**more))
        assert status is None or found.status == status, (
            f"{words}: {found.status}\n{found.text}\n{found.err}"
        )
        assert "Traceback" not in found.err, found.err
        return found

    def _run_process(self, words: list[str], stdin: bytes, environment: dict[str, str]) -> Done:
        done = subprocess.run(
            [COMMAND, *words],
            input=stdin,
            capture_output=True,
            cwd=self.directory,
            env=environment,
            timeout=120,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr.decode())

    def _run_here(self, words: list[str], stdin: bytes, environment: dict[str, str]) -> Done:
        out, err = (
            io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)
        )
        status: object = 0
        with (
            mock.patch.object(sys, "argv", ["contextengine", *words]),
            mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")),
            mock.patch.dict(os.environ, environment, clear=True),
            contextlib.chdir(self.directory),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                cli.main()
            except SystemExit as ended:
                status = ended.code or 0
        assert isinstance(status, int)
        written = [stream.detach().getvalue() for stream in (out, err)]
        return Done(status, written[0], written[1].decode())


@dataclass
class Serving:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    address: str
    line: str

    def stop(self) -> int:
        """Asks it to end; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


def store_of(directory: Path) -> str:
    """The database of what runs in a directory: a file there, or one of PostgreSQL where that is
    asked for (`CONTEXTENGINE_POSTGRES=yes`)."""
    path = directory / "store.db"
    return postgres.place(path) if postgres.INSISTS else str(path)


@contextmanager
def serving(directory: Path, *words: object, address: str = "127.0.0.1:0") -> Iterator[Serving]:
    """A server on a free port, its database in `directory`."""
    with (directory / "server.log").open("w") as log:
        process = subprocess.Popen(
            [
                COMMAND,
                "serve",
                "--address",
                address,
                "--store",
                store_of(directory),
                *map(str, words),
            ],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=directory,
            env=Shell(directory).environment(),
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("ready on "), (directory / "server.log").read_text()
        yield Serving(process, line.split()[2], line)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(PATIENCE_S)
        process.stdout.close()
