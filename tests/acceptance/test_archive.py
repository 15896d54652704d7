"""`contextengine archive`: by hand, with what an operator writes down, against a server that speaks
S3."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from contextengine import AsyncClient
from contextengine import types as t
from contextengine.messages import user
from tests.acceptance.shell import Shell, serving, store_of
from tests.object_server import KEY, SECRET, object_server

WORD = "xyzzy-what-was-said"


async def test_a_session_goes_by_hand_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with object_server(monkeypatch) as objects:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        bucket = objects.bucket("by-hand")
        credentials = tmp_path / "credentials"
        credentials.write_text(
            f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
        )
        settings = {
            "archive": {
                "url": "s3://by-hand/some/where",
                "endpoint": objects.endpoint,
                "credentials_file": str(credentials),
                "rules": [{"after": "1s"}],
            }
        }
        config = tmp_path / "cold.yaml"
        config.write_text(json.dumps(settings))  # which is YAML
        shell = Shell(tmp_path)
        session = t.SessionRef(agent_id="main", session_id="s1")
        with serving(tmp_path, "--config", str(config)) as server:
            async with AsyncClient(server.address) as client:
                for number in range(20):
                    await client.ingest(session, user(f"{WORD} {number}", id=f"m{number}"))
                before = await client.assemble(session, budget=t.Budget(message_tokens=4_000))
        await asyncio.sleep(1.1)
        command = ("archive", "--config", str(config), "--store", store_of(tmp_path))
        told = shell.run(*command, "--dry-run", "--json").json()
        assert [one["session"] for one in told["sessions"]] == ["s1"]
        assert bucket.names() == []
        assert "1 sessions" in shell.run(*command).text
        [name] = bucket.names()
        assert name.startswith("some/where/")
        assert shell.run(*command, "--json").json()["sessions"] == []
        with serving(tmp_path, "--config", str(config)) as server:
            listed = ("sessions", "list", "--address", server.address)
            assert "s1 (archived)" in shell.run(*listed).text
            async with AsyncClient(server.address) as client:
                after = await client.assemble(session, budget=t.Budget(message_tokens=4_000))
            assert "archived" not in shell.run(*listed).text
        assert after.items == before.items
        refused = shell.run("archive", "--store", store_of(tmp_path), status=2)
        assert "archive.rules" in refused.err
        credentials.write_text("[default]\naws_access_key_id = x\n")
        wrong = shell.run(*command, status=1).err
        assert "aws_secret_access_key" in wrong
        assert KEY not in wrong
        served = shell.run(
            "serve", "--config", str(config), "--store", store_of(tmp_path), status=2
        )
        assert "archive.credentials_file" in served.err
        told = shell.run(
            "doctor", "--config", str(config), "--store", store_of(tmp_path), status=1
        ).text
        assert "archive.credentials_file" in told
