"""Sessions that operators keep apart by pattern: ignored ones are passed through, stateless ones
are read and never written."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contextengine import AsyncClient, ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, tool_call, user
from tests.integration.harness import House, budget, house, problem, ref, texts

APART: dict[str, Any] = {
    "sessions.ignored": [{"key": "cron:**"}, {"agent": "robot-*"}],
    "sessions.stateless": [{"key": "sub:*"}, {"session": "frozen"}],
}
DEGRADED = t.AssembleResponse.OUTCOME_DEGRADED
FITS = t.AssembleResponse.OUTCOME_FITS
IGNORED = [ref("", key="cron:daily:7"), ref("s1", key="cron:x"), ref("s1", agent="robot-3")]
STATELESS = [ref("", key="sub:1"), ref("frozen"), ref("x", key="sub:2")]


@pytest.fixture
async def apart(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, **APART) as made:
        yield made


async def write(client: AsyncClient, session: t.SessionRef) -> list[object]:
    """Everything that would change a session."""
    usage = t.Usage(input_tokens=3)
    return [
        await client.ingest(session, user("one")),
        await client.ingest_batch(session, [user("two"), user("three")]),
        await client.after_turn(session, [user("four"), assistant("five")]),
        await client.report_usage(session, usage=usage),
        await client.update_model(session, model="gpt-5"),
        await client.record_host_change(
            session, rewind=t.RecordHostChangeRequest.Rewind(after_sequence=1)
        ),
        await client.reset_session(session),
        await client.end_session(session),
    ]


@pytest.mark.parametrize("session", IGNORED)
async def test_nothing_of_an_ignored_session_is_stored(apart: House, session: t.SessionRef) -> None:
    client = apart.client
    introduced = await client.bootstrap(session, history=[user("before")])
    assert (introduced.engine.id, introduced.revision) == ("dag", 0)
    for reply in await write(client, session):
        assert reply == type(reply)()
    said = [user("go"), assistant(tool_calls=[tool_call("c1", "look")]), user("never mind")]
    for more in ({"ingest": said}, {"live": t.LiveList(messages=said, store_new=True)}):
        answer = await client.assemble(session, **more)
        assert (answer.outcome, answer.outcome_reason) == (DEGRADED, "SESSION_IGNORED")
        assert texts(answer.items) == [
            "go",
            "call:look",
            "No result was recorded for this tool call.",
            "never mind",
        ]
        assert list(answer.stored) == []
    compacted = await client.compact(session, force=True)
    assert (compacted.compacted, compacted.ok) == (False, True)
    assert "ignored" in compacted.reason
    status = await client.get_status(session)
    assert status == t.GetStatusResponse(
        session_id=session.session_id or session.session_key, treatment="ignored"
    )
    assert (await client.sessions.list()).sessions == []


@pytest.mark.parametrize("session", STATELESS)
@pytest.mark.parametrize("engine", ["dag", "legacy"])
async def test_a_stateless_session_is_read_and_never_written(
    session: t.SessionRef, engine: str, tmp_path: Path
) -> None:
    async with house(tmp_path) as before:
        known = [user("known", id="u1"), assistant("yes", id="a1")]
        await before.client.ingest_batch(session, known)
        revision = (await before.client.get_status(session)).revision
    async with house(tmp_path, **{"engine.default": engine, **APART}) as made:
        client = made.client
        for reply in await write(client, session):
            assert reply == type(reply)()
        read = await client.assemble(session)
        assert (read.outcome, texts(read.items)) == (FITS, ["known", "yes"])
        again = [assistant("yes", id="a1"), user("new")]
        for more in (
            {"ingest": again},
            {"live": t.LiveList(messages=[user("known", id="u1"), *again], store_new=True)},
        ):
            answer = await client.assemble(session, **more)
            assert texts(answer.items) == ["known", "yes", "new"]
            assert (answer.outcome, answer.outcome_reason) == (DEGRADED, "SESSION_STATELESS")
            assert list(answer.stored) == []
        assert texts((await client.assemble(session)).items) == ["known", "yes"]
        status = await client.get_status(session)
        assert (status.treatment, status.revision, status.message_count) == (
            "stateless",
            revision,
            2,
        )


async def test_a_session_named_by_its_id_is_known_by_its_key(tmp_path: Path) -> None:
    async with house(tmp_path) as before:
        await before.client.ingest(ref("s9", key="cron:y"), user("known"))
    async with house(tmp_path, **APART) as made:
        assert (await made.client.get_status(ref("s9"))).treatment == "ignored"
        answer = await made.client.assemble(ref("s9"), ingest=[user("new")])
        assert texts(answer.items) == ["new"]


async def test_others_are_kept_and_a_budget_holds_for_all(apart: House) -> None:
    client = apart.client
    kept = ref("s1", key="main")
    await client.ingest(kept, user("hello"))
    status = await client.get_status(kept)
    assert (status.treatment, status.message_count) == ("", 1)
    with pytest.raises(ContextEngineError) as refused:
        await client.get_status(ref("s2"))
    assert problem(refused.value)[1] == "SESSION_NOT_FOUND"
    said = [user(f"q{at} " + "word " * 100) for at in range(30)]
    answer = await client.assemble(IGNORED[0], ingest=said, budget=budget(600))
    assert answer.estimated_tokens <= 600


async def test_the_doctor_says_so(apart: House) -> None:
    found = {check.name: check.found for check in (await apart.client.engines.doctor()).checks}
    assert found["sessions.treatment"] == "by pattern sessions are ignored (2) or stateless (2)"
