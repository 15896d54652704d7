"""What lossless-claw, one of the engines that `dag` stands for, promises of compaction, fact by
fact, over a real channel. The numbers are those of the collected facts: its telling behaviours and
weaknesses (W)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from contextengine import types as t
from contextengine_server.summarize import (
    COUNT_ONLY_MAX_TOKENS,
    EscalatingSummarizer,
    SummarizerChain,
    accept,
)
from contextengine_server.summarize.request import SummaryRequest, SummaryResult
from tests.integration.assemble.asking import (
    ask,
    assign,
    calls,
    held_back,
    ids_of,
    judged,
    origins,
    owed,
    prose,
    quiet,
    reply_with,
    result,
    say,
    settled,
    store,
    talk,
)
from tests.integration.assemble.judging import FITS
from tests.integration.harness import House, budget, ref

from .summarizers import Counting, Gated
from .test_folding import SMALL

pytestmark = pytest.mark.asyncio(loop_scope="module")
EVERYTHING = budget(1_000_000)


@pytest.fixture(autouse=True)
def own_summarizer(shared: House) -> Iterator[None]:
    core, before = shared.app.core, shared.app.core.summaries.summarizer
    yield
    core.summaries.summarizer = before


class Saying:
    """A model that says this, is taken by its word as every model is, and remembers what it was
    asked."""

    name = "saying"

    def __init__(self, say: Callable[[SummaryRequest], str], count: Callable[[str], int]) -> None:
        self.say, self.count = say, count
        self.asked: list[SummaryRequest] = []

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        self.asked.append(request)
        text, tokens = accept(self.say(request), request, self.count)
        return SummaryResult(text, tokens, self.name)


def speaks(house: House, say: Callable[[SummaryRequest], str]) -> Saying:
    """From now on every summary is asked of a model that says this; behind it stands the note that
    counts alone."""
    count = house.app.core.encodings.default.count
    model = Saying(say, count)
    house.app.core.summaries.summarizer = SummarizerChain([EscalatingSummarizer(model)], count)
    return model


async def compacted(house: House, session: t.SessionRef, **options: Any) -> t.CompactResponse:
    """A session of forty messages of about 200 tokens, compacted once."""
    await assign(house, session, "dag", **options)
    await store(house, session, talk(20, 100))
    await quiet(house, session)
    return await house.client.compact(session, force=True, budget=budget(4_000))


async def texts_made(house: House, session: t.SessionRef) -> list[str]:
    return [summary.text for summary in (await house.export(session)).summaries]


async def test_lossless_claw_19_a_turn_that_brings_nothing_new_still_asks_whether_to_compact(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, talk(20, 100))
    async with held_back(shared, session):
        turn = await shared.client.after_turn(session, talk(20, 100), budget=budget(4_000))
        assert turn.status == t.AfterTurnResponse.STATUS_DUPLICATE
        assert turn.compaction_queued


@pytest.mark.parametrize("shorter", ["aggressive", "never"])
async def test_lossless_claw_51_not_shorter_then_aggressive_then_the_note(
    shared: House, session: t.SessionRef, shorter: str
) -> None:
    def speak(request: SummaryRequest) -> str:
        short = shorter == "aggressive" and request.aggressive
        return "short enough" if short else "longer " * (request.source_tokens + 1)

    model = speaks(shared, speak)
    done = await compacted(shared, session)
    assert [request.aggressive for request in model.asked[:4]] == [False, False, False, True]
    assert done.summaries[0].fallback == (shorter == "never")
    if shorter == "aggressive":
        assert (await texts_made(shared, session))[0] == "short enough"


@pytest.mark.parametrize(
    "said",
    [
        "",
        " \n\t ",
        "I'm sorry, but I can't help with that.",
        "抱歉,我无法总结这段对话。",
        "Error: 503 Service Unavailable",
        "Traceback (most recent call last):\n  File",
        "<html><body>502 Bad Gateway</body></html>",
    ],
)
async def test_lossless_claw_28_what_is_no_summary_is_never_stored_as_one(
    shared: House, session: t.SessionRef, said: str
) -> None:
    """Nor is an outage written into memory under a model's name (W18)."""
    speaks(shared, lambda request: said)
    done = await compacted(shared, session)
    [summary] = done.summaries
    assert (summary.fallback, summary.summarizer) == (True, "count-only")
    if said.strip():
        assert said not in (await texts_made(shared, session))[0]


@pytest.mark.parametrize("word", ["plenty ", "总结这段对话"])
async def test_lossless_claw_53_far_over_the_target_it_is_cut_and_says_so(
    shared: House, session: t.SessionRef, word: str
) -> None:
    count = shared.app.core.encodings.default.count
    model = speaks(shared, lambda request: word * (request.source_tokens // count(word) // 2))
    done = await compacted(shared, session, leafTargetTokens=300, condensedMinFanout=2)
    [text] = await texts_made(shared, session)
    target = model.asked[0].target_tokens
    assert 2 * target < count(text) <= 3 * target
    assert text.startswith(word.strip())
    assert text.endswith("can be expanded]")
    assert not done.summaries[0].fallback
    assert done.summaries[0].summarizer == "saying"


async def test_lossless_claw_53_cjk_is_counted_as_it_costs(
    shared: House, session: t.SessionRef
) -> None:
    """A summary of many tokens in few characters does not pass for a small one."""
    speaks(shared, lambda request: "总结这段对话的内容" * request.source_tokens)
    done = await compacted(shared, session)
    assert done.summaries[0].fallback
    speaks(shared, lambda request: "用户要求修复登录错误。" * 3)
    other = await compacted(shared, ref(f"{session.session_id} small"))
    count = shared.app.core.encodings.default.count
    assert other.summaries[0].tokens > count("用户要求修复登录错误。" * 3) > 20


async def test_lossless_claw_55_depths_never_mix_and_nodes_of_one_depth_are_alike(
    shared: House, session: t.SessionRef
) -> None:
    """Over sweeps that come between the turns of a session."""
    await assign(shared, session, "dag", **SMALL)
    for part in range(8):
        await store(shared, session, talk(15, 100, f"p{part}-"))
        await settled(shared, session)
        await shared.client.compact(session, force=True, budget=budget(3_000))
    exported = [s.info for s in (await shared.export(session)).summaries]
    depth = {info.id: info.depth for info in exported}
    assert max(depth.values()) >= 2
    for info in exported:
        assert {depth[child] for child in info.children} <= {info.depth - 1}
    leaves = [info for info in exported if not info.depth]
    assert all(info.message_count <= 8 for info in leaves)
    assert sum(info.message_count for info in leaves) == leaves[-1].last_sequence


async def test_lossless_claw_57_over_the_target_with_nothing_left_is_owed_no_longer(
    shared: House, session: t.SessionRef
) -> None:
    counting = Counting(shared, session)
    await store(shared, session, [say("m", 1_180)])  # all of it tail
    turn = await shared.client.after_turn(session, [], budget=budget(2_000))
    await settled(shared, session)
    assert await owed(shared, session) == 0
    for _ in range(3):
        await ask(shared, session, budget=budget(2_000))
        assert await owed(shared, session) == 0
    done = await shared.client.compact(session, budget=budget(2_000))
    assert (done.compacted, done.reason, done.ok) == (False, "nothing to compact", True)
    assert counting.asked == []
    assert not turn.compaction_queued


async def test_lossless_claw_w1_what_tools_were_asked_reaches_the_summarizer(
    shared: House, session: t.SessionRef
) -> None:
    counting = Counting(shared, session)
    await assign(shared, session, "dag")
    work = []
    for step in range(12):
        work += [calls(f"a{step}", f"c{step}"), result(f"r{step}", f"c{step}", 100)]
    await store(shared, session, work)
    await quiet(shared, session)
    await shared.client.compact(session, force=True, budget=budget(1_500))
    said = "\n".join(message.whole for message in counting.asked[0].messages)
    assert "run" in said
    assert '"c0"' in said


async def test_lossless_claw_w3_a_tight_budget_keeps_the_digest_of_the_past(
    shared: House, session: t.SessionRef
) -> None:
    done = await compacted(shared, session)
    await store(shared, session, talk(20, 100, "n"))
    await quiet(shared, session)
    reply = await ask(shared, session, budget=budget(3_000))
    assert reply.outcome == FITS
    assert origins(reply)[0] == "summary"
    assert len(reply.items) < 20
    assert {i.origin.summary_id for i in reply.items if i.origin.summary_id} == {
        s.id for s in done.summaries
    }


async def test_lossless_claw_w17_a_debt_hides_no_summary(
    shared: House, session: t.SessionRef
) -> None:
    await compacted(shared, session)
    async with held_back(shared, session):
        await shared.app.store.release_debt(
            (await shared.app.store.debts(await _scope(shared, session)))[0], done=True
        )
        await store(shared, session, talk(20, 100, "n"))
        reply = await ask(shared, session, budget=budget(9_000))
        assert origins(reply)[0] == "summary"
        assert ids_of(reply.items)[-1] == "n40"


async def _scope(house: House, session: t.SessionRef) -> Any:
    return (await house.app.store.list_sessions("default", limit=1))[0].scope


async def test_lossless_claw_23_appends_while_it_runs_are_in_their_place(
    shared: House, session: t.SessionRef
) -> None:
    """No position is read before the summary is made and used after it."""
    await assign(shared, session, "dag", **SMALL)
    await store(shared, session, talk(30, 100))
    gated = Gated(shared)
    running = asyncio.ensure_future(
        shared.client.compact(session, force=True, budget=budget(4_000))
    )
    await gated.reached.wait()
    written = [reply_with(f"w{n}", 30) for n in range(20)]
    for message in written:
        await store(shared, session, [message])
    gated.gate.set()
    assert (await running).summaries
    rows = await shared.rows(session)
    assert ids_of(rows) == [*ids_of(talk(30)), *ids_of(written)]
    reply = await ask(shared, session, budget=EVERYTHING)
    assert await judged(shared, reply, session) == []
    assert ids_of(reply.items)[-20:] == ids_of(written)


async def test_the_summary_before_it_goes_with_each_pass(
    shared: House, session: t.SessionRef
) -> None:
    counting = Counting(shared, session)
    await assign(shared, session, "dag", **(SMALL | {"condensedMinFanout": 20}))
    await store(shared, session, talk(12, 100))
    await quiet(shared, session)
    await shared.client.compact(session, force=True, budget=budget(3_000))
    made = await texts_made(shared, session)
    assert len(made) > 3
    assert [request.previous_summary for request in counting.asked] == ["", *made[:-1]]


async def test_the_smallest_target_leaves_room_for_a_note_at_least(
    shared: House, session: t.SessionRef
) -> None:
    counting = Counting(shared, session)
    await compacted(shared, session, leafTargetTokens=96, condensedMinFanout=2)
    [target] = [request.target_tokens for request in counting.asked]
    assert COUNT_ONLY_MAX_TOKENS <= target < 2 * COUNT_ONLY_MAX_TOKENS
    assert prose("m1", 2) in counting.asked[0].messages[0].text
