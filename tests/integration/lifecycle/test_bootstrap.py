"""Bootstrap: host and session are introduced to each other; optional, and safe twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, user
from tests.integration.harness import House, house, problem, ref, texts

HOST = t.HostInfo(
    host_id="openclaw-embedded",
    version="2026.1",
    capabilities=["bootstrap", "after-turn", "a-capability-of-the-future"],
    renders=["anthropic.messages"],
    locator="/sessions/one.jsonl",
)


async def test_bootstrap_is_optional(house: House) -> None:
    await house.client.ingest(ref(), user("hello"))
    assert texts((await house.client.assemble(ref())).items) == ["hello"]
    assert not (await house.client.get_status(ref())).HasField("host")


async def test_it_creates_the_session(house: House) -> None:
    reply = await house.client.bootstrap(ref("s1", key="main"), host=HOST)
    assert (reply.session_id, reply.created, reply.rotated) == ("s1", True, False)
    assert (reply.revision, reply.last_sequence, reply.encoding) == (1, 0, "o200k_base")
    assert (await house.client.get_status(ref("s1"))).session_key == "main"


async def test_the_hosts_words_are_kept_through_a_restart(house: House) -> None:
    await house.client.bootstrap(ref(), host=HOST)
    await house.restart()
    assert (await house.client.get_status(ref())).host == HOST


async def test_the_same_twice_changes_nothing(house: House) -> None:
    history = [user("one"), assistant("two")]
    said: dict[str, Any] = {
        "host": HOST,
        "model": "claude-sonnet-4-5",
        "window": 50_000,
        "history": history,
    }
    first = await house.client.bootstrap(ref("s1", key="main"), **said)
    again = await house.client.bootstrap(ref("s1", key="main"), **said)
    assert (first.revision, first.created, first.last_sequence) == (1, True, 2)
    assert (again.revision, again.created, again.last_sequence) == (1, False, 2)
    assert [item.disposition for item in first.stored] == [t.StoredMessage.DISPOSITION_STORED] * 2
    assert [item.disposition for item in again.stored] == [
        t.StoredMessage.DISPOSITION_DUPLICATE
    ] * 2
    assert len(await house.rows(ref("s1"))) == 2


async def test_the_same_twice_from_two_lives_of_a_host(house: House) -> None:
    await house.client.bootstrap(ref(), host=HOST)
    newer = t.HostInfo(host_id="openclaw-embedded", version="2026.2")
    assert (await house.client.bootstrap(ref(), host=newer)).revision == 2
    assert (await house.client.get_status(ref())).host == newer


async def test_history_without_ids_is_safe_twice_by_its_request_id(house: House) -> None:
    history = [user("one", id=""), user("one", id="")]
    request = t.BootstrapRequest(session=ref(), history=history, request_id="r1")
    first = await house.stub.Bootstrap(request)
    again = await house.stub.Bootstrap(request)
    assert [item.sequence for item in first.stored] == [1, 2]
    assert again.stored == first.stored
    assert again.revision == first.revision == 1
    assert len(await house.rows(ref())) == 2


async def test_a_conflict_in_history_is_listed_and_stops_nothing(house: House) -> None:
    await house.client.ingest(ref(), user("as stored", id="m1"))
    reply = await house.client.bootstrap(
        ref(), history=[user("edited", id="m1"), user("new", id="m2")]
    )
    conflict, stored = reply.stored
    assert conflict.disposition == t.StoredMessage.DISPOSITION_CONFLICT
    assert conflict.content_hash != conflict.conflicting_hash != b""
    assert stored.disposition == t.StoredMessage.DISPOSITION_STORED
    assert texts(await house.rows(ref())) == ["as stored", "new"]


async def test_one_bootstrap_raises_the_revision_by_one(house: House) -> None:
    await house.client.ingest(ref(), user("one"))
    reply = await house.client.bootstrap(
        ref("s1", key="main"), host=HOST, model="gpt-5", history=[user("two")]
    )
    assert (reply.revision, reply.created) == (2, False)
    status = await house.client.get_status(ref())
    assert (status.session_key, status.model, status.host, status.message_count) == (
        "main",
        "gpt-5",
        HOST,
        2,
    )


async def test_a_wrong_message_in_history_leaves_no_session_behind(house: House) -> None:
    with pytest.raises(ContextEngineError) as caught:
        await house.client.bootstrap(ref(), host=HOST, history=[user("one"), t.Message()])
    assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["history[1].role"])
    assert (await house.client.sessions.list()).sessions == []


async def test_what_dag_says_of_itself(house: House) -> None:
    info = (await house.client.bootstrap(ref())).engine
    assert (info.id, info.owns_compaction) == ("dag", True)
    assert info.version
    assert info.name
    assert info.host_auto_compaction == t.HOST_AUTO_COMPACTION_DISABLE
    assert info.tail_steps == 8
    assert info.compaction_threshold == 1
    assert info.turn_maintenance_mode == "background"


async def test_what_legacy_says_of_itself(tmp_path: Path) -> None:
    async with house(tmp_path, **{"engine.default": "legacy"}) as legacy:
        info = (await legacy.client.bootstrap(ref())).engine
    assert (info.id, info.owns_compaction) == ("legacy", False)
    assert info.host_auto_compaction == t.HOST_AUTO_COMPACTION_KEEP
    assert info.compaction_threshold == 0
    assert info.tail_steps >= 1


async def test_engine_info_follows_the_options(tmp_path: Path) -> None:
    options = {
        "engine.dag": {"freshTailTurns": 3, "contextThreshold": 0.5, "deferCompaction": False}
    }
    async with house(tmp_path, **options) as tuned:
        info = (await tuned.client.bootstrap(ref())).engine
    assert info.tail_steps == 3
    assert info.compaction_threshold == pytest.approx(0.5)
    assert info.turn_maintenance_mode == "foreground"
