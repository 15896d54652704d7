"""A plugin for Hermes, unchanged, serves sessions over gRPC: what it leaves out stays stored, what
it writes becomes summaries, and what it may not do is not done."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, system, tool_call, tool_result, user
from contextengine_server.plugins.engines import installed_engines
from tests.integration.harness import House, budget, house, problem, ref, texts
from tests.integration.plugins.field import LEDGER, installed

LONG = " and so on" * 60
MARK = "[LEDGER NOTE]"


@pytest.fixture(autouse=True)
def looked_for_anew() -> Iterator[None]:
    installed_engines.cache_clear()
    yield
    installed_engines.cache_clear()


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[House]:
    settings = {"plugins.directory": installed(tmp_path, LEDGER), "engine.default": "ledger"}
    async with house(tmp_path, **settings) as made:
        yield made


def turns(count: int, start: int = 0) -> list[t.Message]:
    said = []
    for n in range(start, start + count):
        said += [
            user(f"q{n}" + LONG),
            assistant(tool_calls=[tool_call(f"c{n}", "look")]),
            tool_result(f"c{n}", f"r{n}" + LONG),
            assistant(f"a{n}"),
        ]
    return said


async def test_it_is_listed_with_its_owner_and_compacts_itself(home: House) -> None:
    [one] = [one for one in (await home.client.engines.list()).engines if one.info.id == "ledger"]
    assert (one.owner, one.available) == ("plugin:hermes-ledger", True)
    assert (one.info.version, one.info.owns_compaction) == ("0.3.1", True)
    assert one.info.host_auto_compaction == t.HOST_AUTO_COMPACTION_DISABLE
    assert one.info.compaction_threshold == pytest.approx(0.6)
    assert one.info.name.startswith("Ledger: keeps every message")


async def test_its_note_becomes_a_summary_and_nothing_is_lost(home: House, tmp_path: Path) -> None:
    said = [system("be brief"), *turns(10)]
    await home.client.ingest_batch(ref(), said)
    done = await home.client.compact(ref(), force=True, budget=budget(3_000), focus="parsers")
    assert done.compacted, done.reason
    [summary] = done.summaries
    assert summary.summarizer == "ledger"
    reply = await home.client.assemble(ref(), budget=budget(3_000))
    assert reply.outcome == t.AssembleResponse.OUTCOME_FITS
    shown = texts(reply.items)
    assert shown[0] == "be brief"
    [note] = [text for text in shown if MARK in text]
    assert "about parsers" in note
    assert shown[-4:] == texts(said)[-4:]
    assert texts(await home.rows(ref())) == texts(said), "all of it is stored"
    found = await home.client.recall.expand(ref(), summary_ids=[summary.id])
    assert f"q1{LONG}" in texts(found.items)
    [session] = {row[0] for row in sqlite3.connect(
        tmp_path / "plugins" / ".hermes" / "ledger.db"
    ).execute("select session from rows")}  # fmt: skip
    assert session == "default:agent:s1"


async def test_it_is_asked_again_with_its_own_note_in_the_list(home: House) -> None:
    await home.client.ingest_batch(ref(), turns(8))
    assert (await home.client.compact(ref(), force=True, budget=budget(3_000))).compacted
    await home.client.ingest_batch(ref(), turns(8, 8))
    again = await home.client.compact(ref(), force=True, budget=budget(3_000))
    assert again.compacted
    reply = await home.client.assemble(ref(), budget=budget(3_000))
    notes = [text for text in texts(reply.items) if MARK in text]
    assert len(notes) == 1, "the newer stands for the older"
    assert texts(await home.rows(ref())) == texts(turns(16))


async def test_a_restart_goes_on_where_it_was(home: House) -> None:
    await home.client.ingest_batch(ref(), turns(8))
    await home.client.compact(ref(), force=True, budget=budget(3_000))
    before = await home.client.assemble(ref(), budget=budget(3_000))
    await home.restart()
    after = await home.client.assemble(ref(), budget=budget(3_000))
    assert after.items == before.items
    assert after.context_projection.epoch == before.context_projection.epoch
    await home.client.ingest_batch(ref(), turns(8, 8))
    assert (await home.client.compact(ref(), force=True, budget=budget(3_000))).compacted


async def test_its_threshold_decides_what_is_due(home: House) -> None:
    """Below it nothing is queued and nothing compacted; above, a compaction is."""
    await home.client.ingest_batch(ref(), turns(4))
    asked = await home.client.should_compact(ref(), budget=budget(10_000))
    assert not asked.should_compact
    done = await home.client.compact(ref(), budget=budget(10_000))
    assert (done.compacted, done.reason) == (False, "below threshold")
    await home.client.ingest_batch(ref(), turns(12, 4))
    assert (await home.client.should_compact(ref(), budget=budget(5_000))).should_compact
    assert (await home.client.compact(ref(), budget=budget(5_000))).compacted


async def test_sessions_have_an_engine_each(home: House, tmp_path: Path) -> None:
    for name in ("s1", "s2"):
        await home.client.ingest_batch(ref(name), turns(8))
        done = await home.client.compact(ref(name), force=True, budget=budget(3_000))
        assert [one.summarizer for one in done.summaries] == ["ledger"]
    file = sqlite3.connect(tmp_path / "plugins" / ".hermes" / "ledger.db")
    kept = dict(file.execute("select session, count(*) from rows group by session").fetchall())
    assert set(kept) == {"default:agent:s1", "default:agent:s2"}
    assert len(set(kept.values())) == 1


async def test_a_proposal_shows_its_note_before_it_is_taken(home: House) -> None:
    await home.client.ingest_batch(ref(), turns(8))
    proposed = await home.client.compact(
        ref(), force=True, budget=budget(3_000), propose_only=True, return_list=True,
        request_id="one",
    )  # fmt: skip
    assert any(MARK in text for text in texts(proposed.items))
    assert (await home.client.get_status(ref())).summary_count == 0
    await home.client.commit_compaction(ref(), proposed.proposal_id, True)
    assert (await home.client.get_status(ref())).summary_count == 1


async def call(home: House, name: str, arguments: dict[str, Any] | bytes) -> t.CallToolResponse:
    given = arguments if isinstance(arguments, bytes) else orjson.dumps(arguments)
    return await home.client.call_tool(ref(), name, arguments_json=given)


def ledger_rows(directory: Path, role: str) -> list[str]:
    file = sqlite3.connect(directory / "plugins" / ".hermes" / "ledger.db")
    try:
        rows = file.execute("select content from rows where role = ?", (role,)).fetchall()
    finally:
        file.close()
    return [content for (content,) in rows]


async def test_its_own_tools_are_listed_and_run(home: House) -> None:
    """Beside those of the server; with the live list, and with what it keeps itself."""
    await home.client.ingest_batch(ref(), turns(8))
    listed = {tool.name: tool for tool in (await home.client.list_tools(ref())).tools}
    assert {"ctx_search", "memory_search", "ledger_find"} <= set(listed)
    assert listed["ledger_find"].description == "Search the ledger."
    assert orjson.loads(listed["ledger_find"].input_schema_json)["properties"].keys() == {"query"}
    called = await call(home, "ledger_find", {"query": "q3"})
    assert orjson.loads(called.result_json) == {"success": True, "hits": 1}
    assert not called.is_error
    assert called.tokens > 0
    assert (await home.client.compact(ref(), force=True, budget=budget(3_000))).compacted
    called = await call(home, "ledger_find", {"query": "q3"})
    assert orjson.loads(called.result_json)["hits"] >= 1, "it left q3 out, and knows it"
    found = await call(home, "ctx_search", {"query": "q3"})
    assert orjson.loads(found.result_json)["hits"]


async def test_a_tool_of_its_own_that_fails_is_told_to_the_model(home: House) -> None:
    await home.client.ingest_batch(ref(), turns(2))
    failed = await call(home, "ledger_find", {"wrong": 1})
    assert failed.is_error
    assert orjson.loads(failed.result_json)["error"]["code"] == "tool_failed"
    assert (await home.client.get_status(ref())).engine_failure.operation == "call_tool"
    not_json = await call(home, "ledger_find", b"{")
    assert orjson.loads(not_json.result_json)["error"]["code"] == "invalid_arguments"
    unknown = await call(home, "ledger_burn", {})
    assert orjson.loads(unknown.result_json)["error"]["code"] == "unknown_tool"


async def test_what_it_says_of_itself_is_in_the_status(home: House) -> None:
    await home.client.ingest_batch(ref(), turns(8))
    before = orjson.loads((await home.client.get_status(ref())).engine_status_json)
    assert "ledger_rows" not in before, "it is not at work for the session yet"
    await home.client.compact(ref(), force=True, budget=budget(3_000))
    said = orjson.loads((await home.client.get_status(ref())).engine_status_json)
    assert said["compression_count"] == 1
    assert said["ledger_rows"] > 0
    assert said["steps"] == 24, "the server's own words stand"


async def test_it_hears_that_a_session_ends_and_that_it_is_reset(
    home: House, tmp_path: Path
) -> None:
    """Once each, of all that was said and with the messages as they were; also of a session that it
    was never asked for. A turn is no end."""
    await home.client.after_turn(ref(), turns(2))
    assert not (tmp_path / "plugins" / ".hermes" / "ledger.db").exists()
    for _ in range(2):
        await home.client.end_session(ref())
    assert ledger_rows(tmp_path, "ended") == [f"q0{LONG}", "", f"r0{LONG}", "a0",
                                              f"q1{LONG}", "", f"r1{LONG}", "a1"]  # fmt: skip
    await home.client.ingest(ref(), user("more"))
    await home.client.reset_session(ref(), request_id="r")
    assert ledger_rows(tmp_path, "ended")[-1] == "more"
    assert len(ledger_rows(tmp_path, "ended")) == 8 + 9
    await home.client.reset_session(ref(), request_id="r")
    assert ledger_rows(tmp_path, "reset") == [""]


async def test_an_end_that_it_fails_at_is_an_end(tmp_path: Path) -> None:
    code = LEDGER["engine.py"].replace("for message in messages:", "for message in nothing:", 1)
    settings = {"plugins.directory": installed(tmp_path, LEDGER | {"engine.py": code})}
    async with house(tmp_path, **settings, **{"engine.default": "ledger"}) as home:
        await home.client.ingest_batch(ref(), turns(2))
        await home.client.end_session(ref())
        status = await home.client.get_status(ref())
        assert status.ended
        assert status.engine_failure.operation == "end_session"


ENGINE = LEDGER["engine.py"]
BEGINS = "        start = 1 if messages"


def answering(code: str) -> dict[str, str]:
    """The plugin, but that its compress() does this."""
    return LEDGER | {"engine.py": ENGINE.replace(BEGINS, f"        {code}\n{BEGINS}")}


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("raise RuntimeError('the password is swordfish')", "RuntimeError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("return 'a list'", "answered a str and no list of messages"),
        ("return [1]", "answered a list whose item 0 is a int"),
        ("return [{'content': 'x'}]", "answered a list whose item 0 has no role of a message"),
    ],
)
async def test_what_is_no_answer_is_its_failure(tmp_path: Path, code: str, how: str) -> None:
    settings = {"plugins.directory": installed(tmp_path, answering(code))}
    async with house(tmp_path, **settings, **{"engine.default": "ledger"}) as home:
        await home.client.ingest_batch(ref(), turns(8))
        with pytest.raises(ContextEngineError) as caught:
            await home.client.compact(ref(), force=True, budget=budget(3_000))
        assert problem(caught.value)[:2] == ("INTERNAL", "ENGINE_FAILED")
        assert caught.value.metadata["how"] == how
        assert "swordfish" not in str(caught.value)
        failure = (await home.client.get_status(ref())).engine_failure
        assert (failure.engine_id, failure.operation) == ("ledger", "compact")
        assert texts(await home.rows(ref())) == texts(turns(8))
        [check] = [
            one for one in (await home.client.engines.doctor()).checks
            if one.name == "engine.failures"
        ]  # fmt: skip
        assert "ledger failed 1 times, first at compact" in check.found


async def test_what_no_law_lets_go_stays_whatever_it_answers(tmp_path: Path) -> None:
    """It leaves results out, and whatever else it can."""
    code = "return [m for m in messages[1:-1] if m['role'] == 'assistant'][-4:]"
    settings = {"plugins.directory": installed(tmp_path, answering(code))}
    said = [system("be brief"), *turns(12), user("the last question")]
    async with house(tmp_path, **settings, **{"engine.default": "ledger"}) as home:
        await home.client.ingest_batch(ref(), said)
        await home.client.compact(ref(), force=True, budget=budget(3_000))
        reply = await home.client.assemble(ref(), budget=budget(3_000))
        assert reply.outcome == t.AssembleResponse.OUTCOME_FITS
        shown = texts(reply.items)
        assert (shown[0], shown[-1]) == ("be brief", "the last question")
        calls = [text for text in shown if text.startswith("call:")]
        results = [text for text in shown if text.startswith("r") and LONG in text]
        assert len(calls) == len(results), "a call stands or falls with its result"
        assert texts(await home.rows(ref())) == texts(said)
