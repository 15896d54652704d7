"""Doctor of a session: every damage that a row can take is found; what follows from the messages is
mended, what was said is not."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import user
from tests.integration.assemble.asking import ask, hashes
from tests.integration.harness import RUNTIME, House, budget, problem, ref

from .asking import S, deep, find, sequences, work, write

OK, WARNING, ERROR = (
    t.DoctorResponse.STATUS_OK,
    t.DoctorResponse.STATUS_WARNING,
    t.DoctorResponse.STATUS_ERROR,
)
EVERYONE = "WHERE session = 's1'"


async def looked(
    house: House, session: t.SessionRef = S, *, repair: bool = False
) -> dict[str, t.DoctorResponse.Status]:
    """What Doctor finds in a session: the kinds of issues with their status; nothing where all is
    well."""
    reply = await house.client.engines.doctor(session=session, repair=repair)
    found = {
        check.name.removeprefix("session.integrity."): check.status
        for check in reply.checks
        if check.name.startswith("session.integrity")
    }
    assert found
    assert reply.ok == (ERROR not in found.values())
    for check in reply.checks:
        assert bool(check.advice) == (check.status != OK) or not check.name.startswith(
            "session.integrity"
        )
    return {} if found == {"session.integrity": OK} else found


@contextmanager
def surgery(house: House) -> Iterator[sqlite3.Connection]:
    """The database, to be damaged while no server runs."""
    with closing(sqlite3.connect(house.database)) as db, db:
        yield db


async def damaged(house: House, *statements: str) -> None:
    """Another life of the server, over a database that was damaged in between."""
    await house.stop()
    with surgery(house) as db:
        for statement in statements:
            assert db.execute(statement).rowcount > 0, statement
    await house.start()


async def indexed(house: House, session: t.SessionRef = S) -> None:
    """Waits until the index has come to everything."""
    await find(house, "word", session)


async def test_healthy_sessions_have_no_issue(house: House) -> None:
    await deep(house)
    await house.client.bootstrap(ref("child"), continues=S)
    await write(house, ref("child"), *work(40))
    await write(house, ref("empty"), "word")
    await house.client.reset_session(ref("empty"))
    await write(house, ref("rewound"), *work(1), *work(2))
    await house.client.record_host_change(
        ref("rewound"), rewind=t.RecordHostChangeRequest.Rewind(after_sequence=6)
    )
    await write(house, ref("rewound"), "word")
    for session in (S, ref("child"), ref("empty"), ref("rewound")):
        await indexed(house, session)
        before = (await house.client.get_status(session)).revision
        assert await looked(house, session) == {}
        assert await looked(house, session, repair=True) == {}
        assert (await house.client.get_status(session)).revision == before


MENDED = [
    ("stale_counts", "UPDATE sessions SET message_count = message_count + 3 WHERE session = '{}'"),
    (
        "stale_counts",
        "UPDATE sessions SET message_tokens = 1, summary_count = 0 WHERE session = '{}'",
    ),
    ("stale_facts", "UPDATE messages SET start = start + 7 WHERE session = '{}' AND start > 500"),
    (
        "stale_facts",
        "UPDATE messages SET step = NULL, start = NULL WHERE session = '{}' AND sequence = 50",
    ),
]


async def test_what_follows_from_the_messages_is_mended(house: House) -> None:
    sessions = [ref(f"s{number}") for number in range(len(MENDED))]
    before = []
    for session in sessions:
        await deep(house, session, turns=24)
        await indexed(house, session)
        before.append(await ask(house, session, budget=budget(1_500)))
    await damaged(house, *(sql.format(f"s{number}") for number, (_, sql) in enumerate(MENDED)))
    for session, (kind, _), was in zip(sessions, MENDED, before, strict=True):
        assert await looked(house, session) == {kind: WARNING}
        assert await looked(house, session, repair=True) == {kind: OK}
        assert await looked(house, session) == {}
        assert hashes(await ask(house, session, budget=budget(1_500))) == hashes(was)
        await write(house, session, "a session that was mended can be written to")


STRAY = """
    INSERT INTO requests (tenant, agent, session, request_id, digest, reply, created_revision)
    VALUES ('default', 'agent', '{}', 'r-from-nowhere', x'00', 'words', 99999)
"""


async def test_answers_of_no_revision_are_erased_of_a_session_that_is_gone_as_well(
    house: House,
) -> None:
    gone = ref("gone")
    for session in (S, gone):
        await write(house, session, "word")
        await indexed(house, session)
    await house.client.sessions.delete(gone)
    await damaged(house, STRAY.format(S.session_id), STRAY.format(gone.session_id))
    for session in (S, gone):
        assert await looked(house, session) == {"stray_answers": WARNING}
        assert await looked(house, session, repair=True) == {"stray_answers": OK}
    assert await looked(house) == {}
    reply = await house.client.engines.doctor(session=gone)
    assert not [check for check in reply.checks if check.name.startswith("session.integrity")]
    await house.stop()
    with surgery(house) as db:
        assert db.execute(
            "SELECT COUNT(*) FROM requests WHERE request_id = 'r-from-nowhere'"
        ).fetchone() == (0,)
    await house.start()


async def test_a_row_that_is_no_text_is_one_gap_and_is_not_quoted_in_a_log(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    await write(house, S, "word one", "word two", "word three")
    await indexed(house)
    await damaged(
        house,
        f"UPDATE messages SET body = CAST(x'7365637265742d776f7264ff' AS TEXT) {EVERYONE}"
        " AND sequence = 2",
        f"UPDATE messages SET host_id = CAST(x'6f64642d6964ff' AS TEXT) {EVERYONE}"
        " AND sequence = 3",
    )
    capsys.readouterr()
    reply = await ask(house, S)
    texts = [item.message.parts[0].text.text for item in reply.items]
    assert (texts[0], texts[2]) == ("word one", "word three")
    assert texts[1] == "[message 2 is damaged in the store and cannot be shown]"
    exported = [one async for one in house.client.sessions.export(S)]
    logged = capsys.readouterr()
    assert "secret-word" not in "".join([logged.err, logged.out, str([reply, exported])])
    assert (await looked(house))["message_hash"] == ERROR


async def test_an_index_that_is_not_what_the_rows_say_is_made_anew(house: House) -> None:
    await deep(house, turns=24)
    for statement in (
        "UPDATE search_documents SET text = 'nothing' WHERE id % 7 = 0",
        "DELETE FROM search_documents WHERE id % 5 = 0",
    ):
        await indexed(house)
        await damaged(house, statement)
        assert await looked(house) == {"search_index": WARNING}
        assert await looked(house, repair=True) == {"search_index": OK}
        await indexed(house)
        assert await looked(house) == {}
        found = await find(house, "report_13", limit=1, scope=t.SEARCH_SCOPE_MESSAGES)
        assert sequences(found) == [50]
    while await house.app.store.index.tidy():
        pass
    with surgery(house) as db:
        assert db.execute("SELECT COUNT(*) FROM search_cursors").fetchone() == (1,)


@pytest.mark.parametrize("text", ["CAST(x'6c696573ff' AS TEXT)", "'lies'"])
async def test_a_summary_whose_text_is_damaged_is_made_again(house: House, text: str) -> None:
    await deep(house, turns=24)
    before = await ask(house, S, budget=budget(3_000))
    bad = next(item.summary for item in before.items if item.HasField("summary"))
    await damaged(house, f"UPDATE summaries SET text = {text} {EVERYONE} AND id = '{bad.id}'")
    reply = await ask(house, S, budget=budget(3_000))
    first = next(item for item in reply.items if item.summary.id == bad.id)
    assert "is damaged in the store" in first.message.parts[0].text.text
    assert first.summary.message_count == bad.message_count
    expanded = await house.client.recall.expand(S, summary_ids=[bad.id])
    assert expanded.items
    exported = [one.summary async for one in house.client.sessions.export(S) if one.summary.text]
    assert [one.info.id for one in exported if one.corrupt] == [bad.id]
    assert "lies" not in str([reply, expanded, exported])
    assert (await looked(house))["summary_hash"] == ERROR
    assert (await looked(house, repair=True))["summary_hash"] == OK
    await indexed(house)
    assert await looked(house) == {}
    after = str(await ask(house, S, budget=budget(3_000)))
    assert "is damaged" not in after
    assert "lies" not in after


async def test_a_summary_of_nothing_leaves_the_view(house: House) -> None:
    await deep(house, turns=24)
    row = (
        "INSERT INTO summaries SELECT tenant, agent, session, 'lonely', 0, 9001, 9009, 9, 900, 40,"
        " 'of nothing', created_revision, 9000, 9008, 90000, 90900, 0, 0, 0, 0, 0, '[]', NULL,"
        " NULL, 'extractive', 0, generation, 'engine', '', '', '', 0, role, ''"
        f" FROM summaries {EVERYONE} LIMIT 1"
    )
    await damaged(house, row)
    assert (await looked(house))["orphan_summary"] == WARNING
    assert (await looked(house, repair=True))["orphan_summary"] == OK
    await indexed(house)
    assert await looked(house) == {}
    assert "of nothing" not in str(await ask(house, S, budget=budget(3_000)))


TOLD = [
    (
        "message_hash",
        "UPDATE messages SET content_hash = x'00' WHERE session = '{}' AND sequence IN (3, 4)",
    ),
    (
        "message_hash",
        (
            "UPDATE messages SET body = CAST(body || x'ff' AS BLOB) WHERE session = '{}' AND"
            " sequence = 3"
        ),
    ),
    ("missing_sequence", "DELETE FROM messages WHERE session = '{}' AND sequence BETWEEN 5 AND 8"),
    (
        "lost_child",
        "DELETE FROM summaries WHERE session = '{}' AND depth = 0 AND first_sequence = 1",
    ),
    (
        "crossed_summaries",
        "UPDATE summaries SET first_sequence = 9 WHERE session = '{}' AND depth = 1",
    ),
]


async def test_what_was_said_is_told_and_never_mended(house: House) -> None:
    for number in range(len(TOLD)):
        await deep(house, ref(f"s{number}"), turns=24)
    await damaged(house, *(sql.format(f"s{number}") for number, (_, sql) in enumerate(TOLD)))
    for number, (kind, _) in enumerate(TOLD):
        for repair in (False, True, False):
            assert (await looked(house, ref(f"s{number}"), repair=repair))[kind] == ERROR


async def test_the_event_counts_what_was_found(house: House) -> None:
    await write(house, S, *work(1), *work(2))
    await indexed(house)
    await damaged(
        house,
        f"UPDATE sessions SET message_count = 1 {EVERYONE}",
        f"UPDATE messages SET content_hash = x'00' {EVERYONE} AND sequence = 3",
    )
    async with house.client.sessions.watch(name_prefixes=["context:integrity"]) as stream:
        await stream._call.initial_metadata()
        await looked(house, repair=True)
        async with asyncio.timeout(30):
            event = await anext(aiter(stream))
    # What is found of a message that went bad is out of the index from then on.
    counted = [event.counts[name] for name in ("issues", "repairs_applied", "errors")]
    assert counted == [3, 2, 1]
    assert event.counts["duration_ms"] >= 0
    assert event.attributes["issue_types"] == "message_hash,stale_counts,search_index"
    assert event.session_id == "s1"


async def test_mending_is_for_operators_and_for_one_session(guarded: House) -> None:
    await guarded.client.ingest(ref("s1"), user("word"))
    runtime = guarded.client_of(RUNTIME)
    await runtime.engines.doctor(session=ref("s1"))
    with pytest.raises(ContextEngineError) as caught:
        await runtime.engines.doctor(session=ref("s1"), repair=True)
    assert problem(caught.value)[:2] == ("PERMISSION_DENIED", "PERMISSION_DENIED")
    with pytest.raises(ContextEngineError) as caught:
        await guarded.client.engines.doctor(repair=True)
    assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["session"])
