"""What else happens to a session in which something came back."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from contextengine_server.api import replies
from contextengine_server.commands.turn import assembly_events
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.context.work import at_once
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.explanation import explain
from contextengine_server.session.state import Reading, SessionState
from contextengine_server.wire.slots import item_of
from tests.unit.commands.house import (
    S1,
    TENANT,
    Rows,
    Server,
    incoming,
    scope,
)
from tests.unit.session.rehydration.working import (
    AGENTS,
    BUDGET,
    PIPELINE,
    chatter,
    compacted,
    first,
    kinds,
    reading,
    texts,
    texts_as_bytes,
    worked,
)


async def test_what_comes_back_to_us_is_not_stored(rows: Rows) -> None:
    server = await compacted(rows, worked(reading("a.py", "alpha")))
    made = await server.assemble(BUDGET, objective="Find the bug.")
    messages = [item_of(frame).message for frame in made.joined.after(0)]
    stored = (await server.head()).last_sequence
    for message in messages:
        message.id = ""  # hosts strip them
    again = await server.assemble(
        BUDGET, live=incoming(*messages), store_new=True, objective="Find the bug."
    )
    assert (await server.head()).last_sequence == stored
    assert texts_as_bytes(again) == texts_as_bytes(made)
    # Of an earlier compaction as well.
    await server.context.ingest.run(TENANT, S1, incoming(*chatter(60, 12)), None)
    await server.compact(BUDGET)
    stored = (await server.head()).last_sequence
    ours = [one for one, kind in zip(messages, kinds(made), strict=True) if kind != "message"]
    done = await server.context.ingest.run(TENANT, S1, incoming(*ours), None)
    assert [one.sequence for one in done.stored] == [0] * len(ours)
    assert (await server.head()).last_sequence == stored
    await server.close()


async def test_an_objective_stands_right_behind_the_summary_once(rows: Rows) -> None:
    server = await compacted(rows, worked())
    made = await server.assemble(BUDGET, objective="Find the bug.")
    said = kinds(made)
    at = said.index("summary")
    assert said[at + 1 : at + 3] == ["objective reinforcement", "rehydrated after a compaction"]
    assert said.count("objective reinforcement") == 1
    lines = texts(made)[at + 1].split("\n")
    assert lines[0] == "[Objective Reinforcement]"
    assert lines[2] == "Find the bug."
    assert "objective" in lines[4]
    for none in ("", "  \n"):
        assert "objective reinforcement" not in kinds(await server.assemble(BUDGET, objective=none))
    await server.close()


async def test_rewinds_resets_and_undos_take_back_what_they_uncover(rows: Rows) -> None:
    server = await compacted(rows, worked(reading("a.py", "alpha")))
    done = await server.compact(BUDGET, undo_to_generation=0, force=False)
    del done
    assert not (await server.state()).rehydration.reads
    assert set(kinds(await server.assemble(BUDGET))) == {"message"}
    await server.compact(BUDGET)
    assert "alpha" in first(await server.assemble(BUDGET))
    await server.context.reset_session.run(TENANT, S1, None, None)
    assert set(kinds(await server.assemble(BUDGET, ingest=worked()))) == {"message"}
    assert (await server.state()).rehydration.step == -1
    await server.close()


async def test_a_damaged_file_does_not_come_back(rows: Rows) -> None:
    server = await compacted(rows, worked(reading("a.py", "alpha"), reading("b.py", "beta")))
    newest = (await server.state()).rehydration.reads[0]
    assert newest.path == "b.py"
    await server.close()
    kept = rows.tables.sessions[scope()].messages
    kept[newest.sequence] = replace(kept[newest.sequence], body=b"\xff")
    again = await Server(rows, **PIPELINE).open()
    text = first(await again.assemble(BUDGET))
    assert "[File: a.py]" in text
    assert "[File: b.py]" not in text
    await again.close()


async def test_other_engines_bring_nothing_back_and_lose_nothing(rows: Rows) -> None:
    server = await compacted(rows, worked(reading("a.py", "alpha")))
    await server.close()
    other: dict[str, Any] = {"engine.default": "dag"}
    dag = await Server(rows, **other).open()
    assert set(kinds(await dag.assemble(BUDGET, objective="x"))) == {"summary", "message"}
    await dag.close()
    again = await Server(rows, **PIPELINE).open()
    assert "alpha" in first(await again.assemble(BUDGET))
    await again.close()


async def test_files_that_are_given_after_the_compaction_come_back_all_the_same(
    rows: Rows,
) -> None:
    server = await Server(rows, **PIPELINE).open()
    await server.assemble(BUDGET, ingest=worked())
    await server.compact(BUDGET)
    assert "rehydrated after a compaction" not in kinds(await server.assemble(BUDGET))
    made = await server.assemble(BUDGET, whereabouts=AGENTS)
    assert "Never push" in first(made)
    await server.close()


async def test_bootstrap_gives_files_as_well_and_a_fork_goes_on_with_them(rows: Rows) -> None:
    server = await Server(rows, **PIPELINE).open()
    said = Introduction(files=AGENTS.files)
    await server.context.bootstrap.run(TENANT, S1, said)
    revision = (await server.head()).revision
    await server.context.bootstrap.run(TENANT, S1, said)
    assert (await server.head()).revision == revision
    await server.context.ingest.run(TENANT, S1, worked(reading("a.py", "alpha")), None)
    await server.compact(BUDGET)
    child = Ref(S1.agent, "child")
    await server.context.bootstrap.run(TENANT, child, Introduction(continues=S1))
    made = await server.assemble(BUDGET, child)
    assert "Never push" in first(made)
    assert "alpha" in first(made)
    await server.close()
    again = await Server(rows, **PIPELINE).open()
    assert texts_as_bytes(await again.assemble(BUDGET, child)) == texts_as_bytes(made)
    await again.close()


async def test_the_list_is_explained_and_told(rows: Rows) -> None:
    server = await compacted(rows, worked(reading("a.py", "alpha " * 1_200)))
    made = await server.assemble(BUDGET, whole=True)
    said = kinds(made)
    for decision in at_once(explain(made)):
        if decision.item_index is not None:
            assert said[decision.item_index] == "message"
            shown = item_of(made.joined.after(0)[decision.item_index])
            assert shown.origin.sequence == decision.entry.sequence
    metrics = replies.metrics(made)
    again = metrics.rehydrated
    assert (again.sections, again.files, again.stripped) == (2, 1, "")
    assert again.tokens == made.rehydrated.tokens > 400
    assembly_events.announce(server.core.events, server.core.meters, made)
    told = server.events("context:rehydrated")[-1]
    assert (told.counts["sections"], told.counts["files"]) == (2, 1)
    assert told.counts["tokens"] == made.rehydrated.tokens
    assert told.attributes["stripped"] == ""
    assert not server.events("context:overflow")
    less = await server.assemble(5_000)
    assembly_events.announce(server.core.events, server.core.meters, less)
    assert replies.metrics(less).rehydrated.stripped == less.rehydrated.stripped == "strip_files"
    told = server.events("context:overflow")[-1]
    assert told.attributes["recovery"] == "strip_files"
    assert told.counts["tokens"] > told.counts["budget"] > 0
    assert server.core.meters.changes["rehydrated"].value == 2
    await server.close()


def test_what_is_decided_is_read_back() -> None:
    state = SessionState()
    assert SessionState.decode(state.encode()) == state
    kept = SessionState(workspace=(("AGENTS.md", "x"),)).given((("AGENTS.md", "y"),))
    assert kept.rehydration.sections is None  # nothing was compacted yet
    assert Reading("a", "", 1, 0, 1).path == "a"
