"""Behind PgBouncer, which lends connections for a transaction (Debian: pgbouncer)."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import StoreRefused
from contextengine_server.store.postgres.store import PostgresStore
from contextengine_server.testing.store.rows import Pen
from tests import postgres


@pytest.fixture
def pooled(tmp_path: Path) -> Iterator[str]:
    """The URL of a database behind a pooler that has two connections to it."""
    postgres.require()
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("there is no PgBouncer here (Debian: apt-get install pgbouncer)")
    own = postgres.Cluster()
    own.start()
    port = postgres.free_port()
    settings = own.root / "pgbouncer.ini"
    settings.write_text(
        f"""[databases]
postgres = host=127.0.0.1 port={own.port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
"""
    )
    command = ["setpriv", "--pdeathsig", "TERM"]
    if os.getuid() == 0:
        user = pwd.getpwnam("postgres")
        command += [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([*command, program, settings], stdout=log, stderr=log)
    until = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.05)
    yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    process.terminate()
    process.wait(20)
    own.remove()


async def test_without_prepared_statements_it_works(pooled: str) -> None:
    """Usual commits and others of more sessions at once than the pooler has connections."""
    stores = [PostgresStore(pooled + "?prepared=false&pool=6") for _ in range(2)]
    for store in stores:
        await store.open()
    try:
        scopes = [Scope("acme", "main", f"s{n}") for n in range(12)]
        pens = [Pen(stores[n % 2], scope) for n, scope in enumerate(scopes)]
        for _ in range(8):
            await asyncio.gather(*(pen.write(count=2) for pen in pens))
        for n, (scope, pen) in enumerate(zip(scopes, pens, strict=True)):
            other = stores[1 - n % 2]
            assert await other.head(scope) == pen.head
            assert [row.sequence for row in await other.messages(scope)] == list(range(1, 17))
    finally:
        for store in stores:
            await store.close()


async def test_with_prepared_statements_it_is_refused_at_the_start(pooled: str) -> None:
    store = PostgresStore(pooled)
    with pytest.raises(StoreRefused, match="prepared=false"):
        await store.open()
    await store.close()
