"""What comes back behind the summaries after a compaction: where it stands, and how long. By the
facts of Comis's pipeline (docs/semantics.md#after-a-compaction)."""

from __future__ import annotations

from contextengine_server.context.epoch import Cause, cause
from contextengine_server.context.laws.prefix import is_prefix
from contextengine_server.session.assembly.assembly import FITS
from contextengine_server.session.assembly.whereabouts import Whereabouts
from contextengine_server.session.rehydration.reminders import reminders_of
from contextengine_server.session.rehydration.workspace import WorkspaceFile
from contextengine_server.wire.slots import item_of
from tests.unit.commands.house import (
    S1,
    TENANT,
    Rows,
    Server,
    assistant,
    incoming,
    result,
    scope,
    text_of,
    user,
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


async def test_it_stands_behind_the_summary_and_where_the_session_stood(rows: Rows) -> None:
    server = await compacted(rows, worked(reading("a.py", "alpha body")))
    made = await server.assemble(BUDGET)
    said = kinds(made)
    at = said.index("summary")
    assert said[at + 1] == "rehydrated after a compaction"
    assert said[-1] == "resume after a compaction"
    assert set(said[at + 2 : -1]) == {"message"}
    assert sum(one == "summary" for one in said) == 1
    text = first(made)
    assert text.startswith("[Critical instructions from AGENTS.md]\n<<<untrusted ")
    assert "Read the notes.\n### Detail\nOf the notes." in text
    assert "### red lines\nNever push to main." in text
    assert "Tabs." not in text
    assert "[End critical instructions]" in text
    assert "[File: a.py]\n<<<untrusted " in text
    assert "alpha body" in text
    assert "[End file]" in text
    assert '[Active state: channel "dm", agent "agent"]' in texts(made)[-1]
    assert made.outcome == FITS
    assert (made.rehydrated.sections, made.rehydrated.files) == (2, 1)
    await server.close()


async def test_a_summary_is_found_wherever_it_stands(rows: Rows) -> None:
    """In the original it is looked for among the first 20 messages alone."""
    first_turn = [user("begin"), *(m for at in range(15) for m in reading(f"t{at}", "short"))]
    messages = incoming(*first_turn, *chatter(0, 14))
    server = await compacted(rows, messages, **{"engine.pipeline.compactionPrefixAnchorTurns": 1})
    made = await server.assemble(BUDGET)
    at = kinds(made).index("summary")
    assert at > 20
    assert kinds(made)[at + 1] == "rehydrated after a compaction"
    assert "Never push" in first(made)
    await server.close()


async def test_before_a_compaction_nothing_comes_back(rows: Rows) -> None:
    server = await Server(rows, **PIPELINE).open()
    made = await server.assemble(BUDGET, ingest=worked(), whereabouts=AGENTS, objective="Find it.")
    assert set(kinds(made)) == {"message"}
    assert (await server.state()).workspace[0][0] == "/AGENTS.md"
    await server.close()


async def test_it_stays_as_it_is_until_the_next_compaction(rows: Rows) -> None:
    server = await compacted(rows, worked(reading("a.py", "alpha body")))
    before = await server.assemble(BUDGET)
    more = incoming(*chatter(50, 1, 60))
    later = await server.assemble(BUDGET, ingest=more, whereabouts=AGENTS)
    assert later.epoch == before.epoch
    assert is_prefix(texts_as_bytes(before), texts_as_bytes(later))
    # Other files take effect with the next compaction.
    other = Whereabouts("dm", (WorkspaceFile("AGENTS.md", "## Red Lines\nAnother."),))
    same = await server.assemble(BUDGET, whereabouts=other)
    assert same.epoch == later.epoch
    assert "Never push" in first(same)
    assert "Another" not in first(same)
    await server.context.ingest.run(TENANT, S1, incoming(*chatter(60, 12)), None)
    await server.compact(BUDGET)
    anew = await server.assemble(BUDGET)
    assert cause(same.epoch, anew.epoch) is Cause.COMPACTED
    assert "Another" in first(anew)
    assert kinds(anew)[-1] == "resume after a compaction"
    assert kinds(anew).count("resume after a compaction") == 1
    await server.close()


async def test_the_word_to_go_on_stands_before_a_step_that_is_not_over(rows: Rows) -> None:
    """Calls may still be answered when a compaction ends: what answers them stands behind it."""
    calling = incoming(*chatter(0, 15), user("look"), assistant("I look", "", "c1"))
    server = await compacted(rows, calling)
    await server.context.ingest.run(TENANT, S1, incoming(result("c1", "found")), None)
    said = texts(await server.assemble(BUDGET))
    assert said[-2:] == ["I look", "found"]
    assert said[-3].startswith("[Resume]")
    await server.close()


async def test_what_comes_back_is_made_once(rows: Rows) -> None:
    """And anew once something of it changes."""
    server = await compacted(rows, worked(reading("a.py", "alpha body")))
    session = server.core.cache.find(scope())
    assert session is not None
    await server.assemble(BUDGET)
    made = reminders_of(session, "")
    assert reminders_of(session, "") is made
    assert reminders_of(session, "ship it") is not made
    await server.close()


async def test_a_restart_shows_the_same(rows: Rows) -> None:
    server = await compacted(rows, worked(reading("a.py", "alpha"), reading("b.py", "beta")))
    warm = await server.assemble(BUDGET)
    await server.close()
    again = await Server(rows, **PIPELINE).open()
    for budget in (BUDGET, 3_000, BUDGET):
        cold = await again.assemble(budget)
        assert cold.outcome == FITS
    assert cold.epoch == warm.epoch
    assert texts_as_bytes(cold) == texts_as_bytes(warm)
    # With what it reads beyond its window as well.
    third = await Server(rows, **PIPELINE).open()
    await third.context.ingest.run(TENANT, S1, incoming(*chatter(70, 40)), None)
    fourth = await Server(rows, **PIPELINE).open()
    for one in (third, fourth):
        assert "alpha" in first(await one.assemble(6_000))
    assert texts_as_bytes(await third.assemble(6_000)) == texts_as_bytes(
        await fourth.assemble(6_000)
    )
    for one in (again, third, fourth):
        await one.close()


async def test_the_list_of_a_proposal_has_what_would_come_back(rows: Rows) -> None:
    """As the assembly has it once the proposal is taken."""
    server = await Server(rows, **PIPELINE).open()
    said = worked(reading("a.py", "alpha body"))
    await server.assemble(BUDGET, ingest=said, whereabouts=AGENTS)
    done = await server.compact(BUDGET, propose_only=True, return_list=True)
    assert done.proposal is not None
    address = await server.context.commit_compaction.run(TENANT, S1, done.proposal.id, True)
    assert address is not None
    made = await server.assemble(BUDGET)
    shown = [slot.frame for slot in done.shown.slots]
    assert [text_of(item_of(frame).message) for frame in shown] == texts(made)
    assert any("[File: a.py]" in text for text in texts(made))
    await server.close()
