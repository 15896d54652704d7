"""A message over its cap is shown head and tail, the same in every assembly, and is stored
whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from contextengine import assistant, tool_result, user
from contextengine import types as t
from contextengine_server.engines.bounds import cap_chars
from contextengine_server.testing.oracle.bounded import MARKER
from tests.integration.harness import House, budget, ref, texts
from tests.integration.harness import house as living

from .asking import (
    CODING,
    Kind,
    ask,
    ask_bytes,
    assign,
    calls,
    epoch,
    hashes,
    judged,
    quiet,
    result,
    say,
    store,
    talk,
    transcripts,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


def lines(name: str, count: int) -> str:
    """So many lines of 50 characters, ten tokens or so each."""
    return "".join(
        f"{name[:6]:6} says that the build of part {number:07d} is fine.\n"
        for number in range(count)
    )


def big(name: str, call_id: str, count: int = 2_000) -> t.Message:
    """A tool's answer of so many lines: 100,000 characters."""
    return tool_result(call_id, lines(name, count), name="run", id=name)


def forms(reply: t.AssembleResponse) -> dict[str, str]:
    return {item.message.id: t.Form.Name(item.form) for item in reply.items if item.form}


def shown(reply: t.AssembleResponse, name: str) -> str:
    return next(
        text
        for item, text in zip(reply.items, texts(reply.items), strict=True)
        if item.message.id == name
    )


@pytest.mark.parametrize(("tokens", "cap"), [(4_000, 12_000), (12_000, 33_600), (40_000, 100_000)])
async def test_the_cap_follows_the_budget(
    shared: House, session: t.SessionRef, tokens: int, cap: int
) -> None:
    await store(shared, session, [*talk(3), calls("a", "c"), big("huge", "c", 20_000)])
    reply = await ask(shared, session, budget=budget(tokens))
    text = shown(reply, "huge")
    (marker,) = MARKER.finditer(text)
    kept = len(text) - len(marker[0])
    assert kept == cap_chars(reply.budget.cell)
    assert cap * 0.9 <= kept <= cap
    assert text.startswith("huge   says that the build of part 0000000 is fine.\n")
    assert text.endswith("part 0019999 is fine.\n")
    assert await judged(shared, reply, session) == []
    (row,) = [row for row in await shared.rows(session) if row.message.id == "huge"]
    assert texts([row]) == [lines("huge", 20_000)]
    assert f"expand sequence {row.sequence}" in marker[0]


@pytest.mark.parametrize("engine", ["dag", "layered", "compressor"])
async def test_what_a_marker_would_lengthen_stands_whole(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    """A message that is hardly over its cap: what is left out is less than the marker says. Where
    the message fits and the longer form does not, no law lets it go."""
    await assign(shared, session, engine)
    large = tool_result("c", lines("large", 241)[:12_010], name="read", id="large")
    await store(shared, session, [say("ask"), calls("a", "c"), large, say("next", 40)])
    await quiet(shared, session)
    total = (await ask(shared, session, budget=budget(100_000))).estimated_tokens
    for room in range(total - 40, total + 60):
        reply = await ask(shared, session, budget=budget(room))
        assert reply.estimated_tokens <= room
        assert await judged(shared, reply, session) == []
    assert forms(reply) == {}
    assert shown(reply, "large") == texts([large])[0]


async def test_the_tail_keeps_its_steps(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, [say("ask"), calls("a", "c"), big("huge", "c")])
    steps = [
        message for n in range(5) for message in (calls(f"a{n}", f"c{n}"), result(f"r{n}", f"c{n}"))
    ]
    await store(shared, session, steps)
    reply = await ask(shared, session, budget=budget(6_000), explain=True)
    assert [item.message.id for item in reply.items][:3] == ["ask", "a", "huge"]
    assert forms(reply) == {"huge": "FORM_HEAD_TAIL"}
    decision = next(one for one in reply.decisions if one.id == "huge")
    assert (Kind.Name(decision.kind), decision.form) == ("KIND_BOUNDED", t.FORM_HEAD_TAIL)
    assert "cap" in decision.rule
    assert reply.estimated_tokens <= 6_000


async def test_what_must_be_verbatim_is(shared: House, session: t.SessionRef) -> None:
    pinned = big("pinned", "c")
    pinned.labels["pinned"] = "true"
    sealed = assistant(lines("sealed", 2_500), id="sealed")
    sealed.parts.add().reasoning.signature = b"x"
    await store(
        shared, session, [user(lines("user", 2_500), id="user"), sealed, calls("a", "c"), pinned]
    )
    reply = await ask(shared, session, budget=budget(1_000_000))
    assert forms(reply) == {}
    assert await judged(shared, reply, session) == []


async def test_open_calls_are_verbatim_until_they_are_answered(
    shared: House, session: t.SessionRef
) -> None:
    asked = {"budget": budget(60_000)}
    await store(shared, session, [say("ask"), calls("a", "c1", "c2"), big("huge", "c1", 2_500)])
    waiting = await ask(shared, session, **asked)
    assert forms(waiting) == {}
    await store(shared, session, [result("r2", "c2")])
    answered = await ask(shared, session, known_epoch=epoch(waiting), **asked)
    assert forms(answered) == {"huge": "FORM_HEAD_TAIL"}
    assert answered.cache.epoch_cause == t.EPOCH_CAUSE_MASKED
    for reply in (waiting, answered):
        assert await judged(shared, reply, session) == []


async def test_the_list_stays_a_prefix(shared: House, session: t.SessionRef) -> None:
    before, known = list[bytes](), ""
    for number in range(6):
        await store(
            shared,
            session,
            [say(f"u{number}"), calls(f"a{number}", "c"), big(f"huge{number}", "c", 500)],
        )
        reply = await ask(
            shared, session, budget=budget(100_000), known_epoch=known, known_context_hash=b""
        )
        assert hashes(reply)[: len(before)] == before
        assert not known or epoch(reply) == known
        before, known = hashes(reply), epoch(reply)
    assert forms(reply) == {}
    small = await ask(shared, session, budget=budget(9_000))
    assert set(forms(small).values()) == {"FORM_HEAD_TAIL"}
    assert await judged(shared, small, session) == []


@pytest.mark.parametrize("tokens", [2_000, 9_000, 30_000, 100_000])
async def test_a_cold_session_shows_the_same(tmp_path: Path, tokens: int) -> None:
    async with living(tmp_path) as house:
        await _cold_and_warm(house, tokens)


async def _cold_and_warm(house: House, tokens: int) -> None:
    session = ref("s1")
    await store(house, session, talk(60, 60))
    for number in range(3):
        await store(
            house,
            session,
            [
                *talk(2, 30, f"t{number}"),
                calls(f"a{number}", "c"),
                big(f"huge{number}", "c", 3_000),
            ],
        )
    await store(house, session, talk(3, 20, "end"))
    await quiet(house, session)
    warm = await ask_bytes(house, session, budget=budget(tokens))
    house.forget()
    assert await ask_bytes(house, session, budget=budget(tokens)) == warm
    await house.restart()
    assert await ask_bytes(house, session, budget=budget(tokens)) == warm


async def test_the_coding_session_at_every_step(shared: House, session: t.SessionRef) -> None:
    """Its longest results are over the caps of small budgets."""
    (messages,) = transcripts(CODING).values()
    bounded, before, known = 0, list[bytes](), ""
    for start in range(0, 100, 2):
        await store(shared, session, messages[start : start + 2])
        await quiet(shared, session)
        reply = await ask(shared, session, budget=budget(6_000), known_epoch=known)
        if epoch(reply) == known:
            assert hashes(reply)[: len(before)] == before
        assert await judged(shared, reply, session) == []
        bounded += len(forms(reply))
        before, known = hashes(reply), epoch(reply)
    assert bounded > 0


@pytest.mark.parametrize("engine", ["dag", "legacy"])
@pytest.mark.parametrize("calls_open", [0, 1])
async def test_a_last_step_of_huge_results_fits_the_default_window(
    shared: House, session: t.SessionRef, engine: str, calls_open: int
) -> None:
    names = [f"c{at}" for at in range(4)]
    await assign(shared, session, engine)
    await store(shared, session, [say("ask"), calls("a", *names, *["c4"] * calls_open)])
    epochs, before = set(), dict[str, int]()
    for name in names:
        await store(shared, session, [big(f"huge{name}", name, 2_400)])
        reply = await ask(shared, session, budget=t.Budget(window=t.WindowBudget()), explain=True)
        assert reply.outcome == t.AssembleResponse.OUTCOME_FITS
        assert await judged(shared, reply, session) == []
        now = {item.message.id: item.tokens for item in reply.items}
        assert all(now[known] <= tokens for known, tokens in before.items())
        epochs.add(epoch(reply))
        before = now
    assert set(forms(reply).values()) == {"FORM_HEAD_TAIL"}
    assert len(forms(reply)) == 4
    assert {one.id for one in reply.decisions if one.kind == Kind.KIND_BOUNDED} == set(forms(reply))
    assert len(epochs) <= 4
