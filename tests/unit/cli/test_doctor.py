"""What the doctor sees where no server answers."""

from __future__ import annotations

from pathlib import Path

from contextengine_server.cli.doctor import offline_checks
from contextengine_server.config.settings import Settings
from contextengine_server.store.rows import Assignment
from contextengine_server.store.sqlite.store import SqliteStore


async def test_assignments_of_tenants_that_stand_in_no_setting_are_looked_at(
    tmp_path: Path,
) -> None:
    """Of tenants that signed tokens or client certificates name, say."""
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    await store.assign(Assignment("of-a-certificate", "", "", "nonesuch"))
    await store.close()
    settings = Settings(store={"url": str(path)}, server={"address": "127.0.0.1:0"})
    found = [check for check in await offline_checks(settings) if check.name == "engine.assignment"]
    assert [check.found for check in found] == [
        "nonesuch is assigned to tenant of-a-certificate, which nothing serves: "
        + found[0].found.partition("serves: ")[2]
    ]
