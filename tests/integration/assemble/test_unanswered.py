"""What the next reply answers is shown, whatever a harness or a user says behind it
(docs/semantics.md#large-steps)."""

from __future__ import annotations

from pathlib import Path

import pytest

from contextengine import system, user
from contextengine import types as t
from tests.integration.harness import House, budget, ref
from tests.integration.harness import house as living

from .asking import (
    ask,
    ask_bytes,
    assign,
    calls,
    ids_of,
    judged,
    quiet,
    reply_with,
    result,
    say,
    store,
    talk,
)
from .judging import FITS, OVER, tokens_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENGINES = ("dag", "pipeline", "compressor", "layered")
NOTICES = {
    "a reminder": user("Remember your list.", id="notice"),
    "instructions": system("The mode has changed.", id="notice"),
}


def answers(count: int, words: int, name: str = "r") -> list[t.Message]:
    """A step of so many calls, with what came of them."""
    ids = [f"c{at}" for at in range(count)]
    return [calls("a", *ids), *(result(f"{name}{id}", id, words) for id in ids)]


def forms(reply: t.AssembleResponse) -> dict[str, str]:
    return {item.message.id: t.Form.Name(item.form) for item in reply.items if item.form}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("said", NOTICES)
@pytest.mark.parametrize("count", [1, 4])
async def test_results_are_shown_with_what_follows_them(
    shared: House, session: t.SessionRef, engine: str, said: str, count: int
) -> None:
    """Those of a step that exceeds the budget are shown head and tail, as without the notice."""
    await assign(shared, session, engine)
    step = answers(count, 4_000 // count)
    await store(shared, session, [*talk(6), say("ask"), *step, NOTICES[said]])
    await quiet(shared, session)
    for tokens in (700, 1_000, 2_000, 3_000, 6_000):
        reply = await ask(shared, session, budget=budget(tokens))
        shown = ids_of(reply.items)
        assert reply.outcome == FITS
        assert shown[-count - 2 :] == [*ids_of(step), "notice"], tokens
        assert await judged(shared, reply, session) == []
        if tokens < 4_000:
            assert set(forms(reply)) == set(ids_of(step[1:]))
            assert tokens_of(reply.items) > 0.4 * tokens


async def test_the_decisions_say_that_it_must_stay(shared: House, session: t.SessionRef) -> None:
    """The engine declares one step."""
    await assign(shared, session, "compressor")
    await store(shared, session, [*talk(6), say("ask"), *answers(1, 20), NOTICES["instructions"]])
    reply = await ask(shared, session, budget=budget(4_000), explain=True)
    rules = {one.id: one.rule for one in reply.decisions}
    assert [rules[name] for name in ("m12", "a", "rc0", "notice")] == [
        "within the budget",
        *["law tail"] * 3,
    ]


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_request_is_shown_with_what_follows_it(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    await assign(shared, session, engine)
    await store(shared, session, [*talk(6), say("ask", 3_000), NOTICES["a reminder"]])
    await quiet(shared, session)
    for tokens in (700, 2_000):
        reply = await ask(shared, session, budget=budget(tokens))
        assert reply.outcome == FITS
        assert ids_of(reply.items)[-2:] == ["ask", "notice"]
        assert forms(reply) == {"ask": "FORM_HEAD_TAIL"}
        assert await judged(shared, reply, session) == []


async def test_a_result_that_a_user_did_not_wait_for_is_shown(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, [*talk(6), calls("a", "c"), say("wait"), result("late", "c", 900)])
    reply = await ask(shared, session, budget=budget(600))
    assert ids_of(reply.items)[-3:] == ["a", "late", "wait"]
    assert forms(reply) == {"late": "FORM_HEAD_TAIL"}
    assert await judged(shared, reply, session) == []


async def test_once_answered_it_makes_way_and_does_not_come_back(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, [*talk(6), *answers(2, 700), NOTICES["a reminder"]])
    await quiet(shared, session)
    gone = set[str]()
    before = ids_of((await ask(shared, session, budget=budget(1_000))).items)
    assert {"a", "rc0", "rc1"} < set(before)
    for number in range(12):
        await store(shared, session, [reply_with(f"then{number}", 100)])
        reply = await ask(shared, session, budget=budget(1_000))
        shown = ids_of(reply.items)
        gone |= set(before) - set(shown)
        assert not gone & set(shown)
        assert await judged(shared, reply, session) == []
        before = shown
    assert {"a", "rc0", "rc1"} < gone


@pytest.mark.parametrize("notices", [4, 5])
async def test_behind_many_notices_it_is_history(
    shared: House, session: t.SessionRef, notices: int
) -> None:
    """Nobody is about to answer it then."""
    said = [say(f"n{at}", 20) for at in range(notices)]
    await store(shared, session, [*talk(6), *answers(1, 4_000), *said])
    reply = await ask(shared, session, budget=budget(1_000))
    assert reply.outcome == FITS
    assert ("rc0" in ids_of(reply.items)) == (notices == 4)
    assert ids_of(reply.items)[-notices:] == ids_of(said)
    assert await judged(shared, reply, session) == []


async def test_where_its_shortest_form_has_no_room_the_newest_stands_alone(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, [*talk(2), *answers(8, 500), say("n", 60)])
    reply = await ask(shared, session, budget=budget(300))
    assert reply.outcome == FITS
    assert ids_of(reply.items) == ["n"]
    assert await judged(shared, reply, session) == []


async def test_a_last_step_that_has_no_room_is_as_short_as_it_can_be(
    shared: House, session: t.SessionRef
) -> None:
    """A caller that sends it all the same sends as little as the laws allow."""
    await store(shared, session, [say("ask"), *answers(30, 2_000)])
    reply = await ask(shared, session, budget=budget(1_000))
    assert reply.outcome == OVER
    assert ids_of(reply.items) == ["ask", "a", *(f"rc{at}" for at in range(30))]
    assert len(forms(reply)) == 30
    assert tokens_of(reply.items) < 30 * 120
    assert await judged(shared, reply, session) == []


@pytest.mark.parametrize("tokens", [700, 1_500, 5_000])
@pytest.mark.parametrize("engine", ENGINES)
async def test_a_cold_session_shows_the_same(tmp_path: Path, tokens: int, engine: str) -> None:
    """Also where the step is longer than all that is read for the budget."""
    async with living(tmp_path) as house:
        session = ref("s1")
        await assign(house, session, engine)
        await store(
            house,
            session,
            [
                *talk(40, 60),
                *answers(20, 1_500),
                NOTICES["a reminder"],
                system("Go on.", id="mode"),
            ],
        )
        await quiet(house, session)
        warm = await ask_bytes(house, session, budget=budget(tokens))
        house.forget()
        assert await ask_bytes(house, session, budget=budget(tokens)) == warm
        await store(house, session, [say("more", 30)])
        warm = await ask_bytes(house, session, budget=budget(tokens))
        await house.restart()
        assert await ask_bytes(house, session, budget=budget(tokens)) == warm


@pytest.mark.parametrize("engine", [*ENGINES, "legacy"])
@pytest.mark.parametrize("said", NOTICES)
async def test_a_compaction_leaves_it(
    shared: House, session: t.SessionRef, engine: str, said: str
) -> None:
    await assign(shared, session, engine)
    step = answers(3, 500)
    await store(shared, session, [*talk(20, 100), *step, NOTICES[said]])
    await shared.client.compact(session, budget=budget(1_500), force=True)
    reply = await ask(shared, session, budget=budget(1_500))
    assert reply.outcome == FITS
    assert ids_of(reply.items)[-5:] == [*ids_of(step), "notice"]
    (status,) = [await shared.client.get_status(session)]
    assert status.summary_count
    assert await judged(shared, reply, session) == []
