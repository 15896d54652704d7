"""A PostgreSQL of the tests' own: on loopback, in a temporary folder, under a user who is not root,
and gone with the process.

`CONTEXTENGINE_POSTGRES=yes` insists: what needs it fails where it cannot be had, and databases of
tests that do not care which store they have are made in it. Else what needs it is skipped there.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Coroutine
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import pytest

from contextengine_server.store.postgres import database
from contextengine_server.store.postgres.connections import Connections
from contextengine_server.store.postgres.migrations import TABLES
from contextengine_server.store.postgres.options import parse

T = TypeVar("T")

INSISTS = os.environ.get("CONTEXTENGINE_POSTGRES", "") == "yes"
"""Whether databases are PostgreSQL's wherever a test leaves it open."""

_PATIENCE_S = 60
_KEPT = 12
"""Databases at once. Then the oldest is emptied, which takes a tenth of making one."""
_TEMPLATE = "made"
_QUICK = {
    # Nothing of it outlives the tests, and a crash of the server alone loses nothing.
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "max_wal_size": "256MB",
    "autovacuum": "on",
}


def _folder() -> Path | None:
    """Where the programs of PostgreSQL are."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    for folder in (*debian, *([Path(found).resolve().parent] if found else [])):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    return None


def missing() -> str:
    """Why there can be no PostgreSQL here; empty: there can."""
    if _folder() is None:
        return "there is no PostgreSQL here (Debian: apt-get install postgresql)"
    if os.getuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            return "PostgreSQL does not run as root, and there is no user postgres"
    return ""


def require() -> None:
    """Skips a test where there can be no PostgreSQL, or fails it where that is insisted on."""
    why = missing()
    if why and INSISTS:
        pytest.fail(why)
    if why:
        pytest.skip(why)


class Cluster:
    """One running PostgreSQL. Databases in it are made by name. `of`: whose standby it is."""

    def __init__(self, of: Cluster | None = None, **settings: str) -> None:
        folder = _folder()
        assert folder is not None, missing()
        self._bin = folder
        self._settings = {**_QUICK, **settings}
        self.root = Path(tempfile.mkdtemp(prefix="contextengine-postgres-"))
        # By a program and not by Python: a fork of this process would run gRPC's handlers of forks,
        # which end it where threads of gRPC are at work.
        self._as = ["setpriv", "--pdeathsig", "QUIT"]
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.root, user.pw_uid, user.pw_gid)
            self._as += [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        self.data = self.root / "data"
        if of is None:
            self.run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                      "--locale=C.UTF-8", "--no-sync")  # fmt: skip
        else:
            self.run("pg_basebackup", "-D", self.data, "-R", "-X", "stream", "-c", "fast",
                      "-d", of.url("postgres"), "--no-sync")  # fmt: skip
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, program: str, *arguments: object) -> None:
        """Runs one of PostgreSQL's programs to its end, which must be a good one."""
        command = [*self._as, str(self._bin / program), *map(str, arguments)]
        done = subprocess.run(command, cwd=self.root, capture_output=True, check=False)
        assert done.returncode == 0, (done.stderr + done.stdout).decode()

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        settings = {
            **self._settings,
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.root / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._as, self._bin / "postgres", "-D", self.data, *options],
                cwd=self.root,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + _PATIENCE_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                said = (self.root / "log").read_text()[-2000:]
                pytest.fail(f"PostgreSQL did not start ({self._process.poll()}):\n{said}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        async def ask() -> bool:
            try:
                await (await asyncpg.connect(self.url("postgres"), timeout=5)).close()
            except (OSError, asyncpg.PostgresError):
                return False
            return True

        return aside(ask())

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Ends it by its process id: SIGINT ends sessions, SIGQUIT everything at once as a crash
        does."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(_PATIENCE_S)

    def promote(self) -> None:
        """Makes a standby the primary, and waits until it is."""
        try:
            self.run("pg_ctl", "promote", "-D", self.data, "-w", "-t", "20")
        except AssertionError as error:
            said = (self.root / "log").read_text()[-2000:]
            raise AssertionError(f"{error}\n{said}") from None

    def remove(self) -> None:
        """Ends it for good."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.root, ignore_errors=True)

    def url(self, name: str) -> str:
        """Of a database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def execute(self, *statements: str, name: str = "postgres") -> None:
        """Runs statements outside a transaction, in a database."""

        async def run() -> None:
            raw = await asyncpg.connect(self.url(name))
            try:
                for statement in statements:
                    await raw.execute(statement)
            finally:
                await raw.close()

        aside(run())


def free_port() -> int:
    """Below those that kernels give to whoever names none: it is free also between two lives."""
    for port in random.SystemRandom().sample(range(10_000, 32_000), 200):
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
    raise AssertionError("of 200 ports none is free")


def aside(work: Coroutine[Any, Any, T]) -> T:
    """Runs work to its end on a loop of its own, also where this thread runs one."""
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(asyncio.run(work))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


@cache
def cluster() -> Cluster:
    """The one of this process."""
    made = Cluster()
    atexit.register(made.remove)
    made.start()
    made.execute(f"CREATE DATABASE {_TEMPLATE}")

    async def prepare() -> None:
        await database.prepare(Connections(parse(made.url(_TEMPLATE))), "the template")

    aside(prepare())
    return made


_databases: OrderedDict[str, str] = OrderedDict()
"""Databases by what they stand for."""


def place(path: Path) -> str:
    """The URL of the database that a path stands for; where there is none yet, with empty tables of
    the present schema."""
    one = cluster()
    if str(path) not in _databases:
        if len(_databases) < _KEPT:
            name = f"test{len(_databases)}"
            one.execute(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
        else:
            _, name = _databases.popitem(last=False)
            one.execute("; ".join(f"DELETE FROM {table}" for table in TABLES), name=name)
        _databases[str(path)] = name
    _databases.move_to_end(str(path))
    return one.url(_databases[str(path)])
