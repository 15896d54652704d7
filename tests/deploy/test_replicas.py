"""The compose file of two servers over one PostgreSQL, and nginx in front of real ones."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import compose_spec
import pytest
import yaml

from contextengine import AsyncClient
from contextengine.affinity import SESSION_HEADER
from contextengine.messages import user
from contextengine_server.config.load import load_settings
from contextengine_server.plugins.stores import kind_of
from tests import postgres
from tests.acceptance.shell import ROOT
from tests.integration.harness import budget, ref
from tests.soak.killing import Child, free_port
from tests.unit.client.conftest import Server

from .composed import with_variables

DEPLOY = ROOT / "deploy"
OVER = yaml.safe_load((DEPLOY / "compose.replicas.yaml").read_text())
SERVERS = ("contextengine", "contextengine-2")
NGINX = (DEPLOY / "nginx" / "nginx.conf").read_text()
WITH_NGINX = pytest.mark.skipif(
    not shutil.which("nginx"), reason="nginx is not installed (Debian: nginx)"
)


def test_the_compose_file_is_one() -> None:
    compose_spec.PyCompose.from_yaml((DEPLOY / "compose.replicas.yaml").read_text()).validate()
    base = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for name, service in OVER["services"].items():
        assert set(service.get("depends_on", ())) <= {*base, *OVER["services"]}, name
        if name not in base:
            assert re.search(r":\d+\.\d+", service["image"]), f"{name}: pin {service['image']}"
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), f"{name}: {port} is published to everybody"
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in OVER["volumes"] or (DEPLOY / source).exists(), f"{name}: {volume}"


def test_the_servers_have_one_database_and_are_scraped() -> None:
    found = [OVER["services"][name]["environment"] for name in SERVERS]
    assert found[0] == found[1]
    settings = load_settings(None, {}, with_variables(found[0], POSTGRES_PASSWORD="secret"))
    place = kind_of(settings.store.url).place(settings.store.url)
    assert place == "postgresql://contextengine@postgres/contextengine"
    replicas, alone = (
        yaml.safe_load((DEPLOY / "prometheus" / f"{name}.yml").read_text())
        for name in ("replicas", "prometheus")
    )
    [job] = replicas["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"{name}:9464" for name in SERVERS]}]
    assert replicas | {"scrape_configs": 0} == alone | {"scrape_configs": 0}
    assert re.findall(r"server (\S+):50051 ", NGINX) == list(SERVERS)


@WITH_NGINX
async def test_a_server_that_stops_fails_no_call_behind_nginx(tmp_path: Path) -> None:
    postgres.require()
    url = postgres.place(tmp_path)
    children = [Child(tmp_path / name, url) for name in SERVERS]
    for child in children:
        await child.start()
    sessions = [ref(session=f"s{number}") for number in range(6)]  # either server has some
    try:
        async with (
            fronted(tmp_path, [child.port for child in children]) as front,
            AsyncClient(front, retry_for=60) as client,
        ):
            for number in range(60):
                if number == 20:  # one is replaced
                    await children[0].end()
                    await children[0].start()
                if number == 40:  # the other goes for good
                    await children[1].end()
                for session in sessions:
                    await client.ingest(session, user(f"text {number}", id=f"m{number}"))
            for session in sessions:
                reply = await client.assemble(session, budget=budget(50_000))
                ids = [one.message.id for one in reply.items]
                assert ids == [f"m{number}" for number in range(60)]
    finally:
        for child in children:
            await child.end()


@asynccontextmanager
async def fronted(folder: Path, ports: Sequence[int]) -> AsyncIterator[str]:
    """The address of nginx before two servers, as it is deployed."""
    front = free_port()
    text = NGINX.replace("listen 50050", f"listen 127.0.0.1:{front}")
    text = re.sub(r"/tmp/", f"{folder}/", text)
    for name, port in zip(SERVERS, ports, strict=True):
        text = text.replace(f"server {name}:50051", f"server 127.0.0.1:{port}")
    (folder / "nginx.conf").write_text(text)
    nginx = await asyncio.create_subprocess_exec(
        "nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"
    )
    try:
        yield f"127.0.0.1:{front}"
    finally:
        nginx.terminate()
        await nginx.wait()


@WITH_NGINX
async def test_nginx_keeps_a_session_at_one_server(tmp_path: Path) -> None:
    servers = [Server(), Server()]
    try:
        ports = [int(server.address.rpartition(":")[2]) for server in servers]
        async with fronted(tmp_path, ports) as front, AsyncClient(front, retry_for=60) as client:
            for _ in range(3):
                for number in range(30):
                    await client.get_status(ref(session=f"s{number}"))
            kept = [{one.get(SESSION_HEADER) for one in server.metadata} for server in servers]
            for _ in range(30):  # nothing names a session: to anybody
                await client.engines.list()
        assert all(kept)
        assert sum(map(len, kept)) == len(set.union(*kept)) == 30
        assert all(None in {one.get(SESSION_HEADER) for one in s.metadata} for s in servers)
    finally:
        for server in servers:
            server.stop()
