"""What the engines that `dag` stands for promise of what is stored and shown, fact by fact, over a
real channel. The numbers are those of the collected facts."""

from __future__ import annotations

import pytest

from contextengine import types as t
from tests.integration.harness import House, budget

from .asking import (
    ask,
    calls,
    hashes,
    ids_of,
    judged,
    live,
    origins,
    result,
    say,
    store,
    talk,
    without_ids,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
EVERYTHING = budget(100_000)


@pytest.mark.parametrize("named", [True, False])
async def test_lossless_claw_1_a_restart_that_replays_the_history_stores_nothing(
    shared: House, session: t.SessionRef, named: bool
) -> None:
    history = talk(6) if named else without_ids(talk(6))
    first = await ask(shared, session, live=live(history, store_new=True))
    await shared.restart()
    again = await ask(shared, session, live=live(history, store_new=True))
    assert (again.revision, hashes(again)) == (first.revision, hashes(first))
    assert len(await shared.rows(session)) == 12


async def test_lossless_claw_5_equal_results_of_one_batch_are_all_kept(
    shared: House, session: t.SessionRef
) -> None:
    ids = ["c1", "c2", "c3"]
    empty = [t.Message(role=t.ROLE_TOOL, parts=[_empty(call)]) for call in ids]
    await store(shared, session, [*without_ids([say("u1"), calls("a1", *ids)]), *empty])
    await store(shared, session, without_ids([calls("a1", "c1")]) + empty[:1])
    rows = await shared.rows(session)
    assert len(rows) == 7
    reply = await ask(shared, session, budget=EVERYTHING)
    assert origins(reply) == [str(row.sequence) for row in rows]
    assert await judged(shared, reply, session) == []


async def test_lossless_claw_11_equal_loops_under_other_ids_are_both_stored(
    shared: House, session: t.SessionRef
) -> None:
    loop = [calls("a1", "c1"), result("r1", "c1")]
    await store(shared, session, [say("u1"), *loop])
    for message, id in zip(loop, ("a2", "r2"), strict=True):
        message.id = id
    await store(shared, session, loop)
    reply = await ask(shared, session, budget=EVERYTHING)
    assert ids_of(reply.items) == ["u1", "a1", "r1", "a2", "r2"]
    assert hashes(reply)[1:3] == hashes(reply)[3:]
    assert await judged(shared, reply, session) == []


async def test_lossless_claw_31_the_end_of_a_server_ends_no_session(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, talk(2))
    await shared.restart()
    status = await shared.client.get_status(session)
    assert (status.ended, status.message_count) == (False, 4)


async def test_lossless_claw_37_where_everything_fits_the_prompt_changes_nothing(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, talk(10))
    plain = await ask(shared, session, budget=EVERYTHING)
    for prompt in ("m1 word0", "something else entirely"):
        asked = await ask(shared, session, budget=EVERYTHING, prompt=[_text(prompt)])
        assert asked.items == plain.items


async def test_comis_93_what_is_read_between_two_appends_is_one_to_one_with_what_is_stored(
    shared: House, session: t.SessionRef
) -> None:
    for count, message in enumerate(talk(5), 1):
        await store(shared, session, [message])
        reply = await ask(shared, session, budget=EVERYTHING)
        assert origins(reply) == [str(sequence) for sequence in range(1, count + 1)]


def _empty(call: str) -> t.Part:
    return t.Part(tool_result=t.ToolResultPart(call_id=call, name="run"))


def _text(text: str) -> t.Part:
    return t.Part(text=t.TextPart(text=text))
