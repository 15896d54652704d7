"""The budget. `message_tokens` is final, `window` runs the algebra, every part is named in the
reply. See docs/semantics.md#budgets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
import pytest_asyncio

from contextengine import types as t
from contextengine_server.session.assembly.addition import LEFT_OUT
from contextengine_server.tokens import TokenCounter
from tests.integration.harness import House, budget, problem, ref
from tests.integration.harness import house as living

from .asking import (
    ask,
    ask_bytes,
    assign,
    epoch,
    held_back,
    ids_of,
    judged,
    owed,
    quiet,
    say,
    settled,
    store,
    talk,
    window,
)
from .judging import room_of, tokens_of

pytestmark = pytest.mark.asyncio(loop_scope="module")
FOUND = "Find them with ctx_search."
TOOL = t.ToolDefinition(
    name="run", description="Runs a command.", input_schema_json=b'{"type": "object"}'
)
PARTS = ("system_prompt", "tools", "output_reserve", "safety_margin", "rot_buffer")
OVER = t.AssembleResponse.OUTCOME_OVER_BUDGET


def counted(*texts: str) -> int:
    counter = TokenCounter("o200k_base")
    return sum(counter.count_text(text) for text in texts)


def parts_of(report: t.BudgetReport) -> list[int]:
    return [getattr(report, name) for name in PARTS]


async def refused(house: House, session: t.SessionRef, **fields: Any) -> tuple[str, str, list[str]]:
    """How a request with a bad budget is refused; nothing that came with it is stored."""
    with pytest.raises(Exception) as raised:
        await house.client.assemble(session, ingest=[say("not to be stored")], **fields)
    with pytest.raises(grpc.aio.AioRpcError):
        await house.stub.GetStatus(t.GetStatusRequest(session=session))
    return problem(raised.value)  # type: ignore[arg-type]


async def test_message_tokens_are_final(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, talk(40))
    reply = await ask(shared, session, budget=budget(900), tools=[TOOL])
    report = reply.budget
    said = report.system_prompt_addition
    assert (report.available, report.messages, report.window) == (900, 900 - said, 0)
    assert (report.window_source, report.window_assumed) == ("message_tokens", False)
    assert parts_of(report) == [0] * 5
    assert 0 < tokens_of(reply.items) <= 900
    assert await judged(shared, reply, session) == []


async def test_they_are_the_models_tokens(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, talk(40))
    reply = await ask(shared, session, budget=budget(900), model="claude-sonnet-4-5")
    assert reply.budget.model_factor == 1.22
    said = reply.budget.system_prompt_addition
    assert abs(reply.estimated_tokens - tokens_of(reply.items) * 1.22 - said) <= 1
    assert reply.estimated_tokens <= 900
    assert reply.budget.available == 900


async def test_the_algebra_by_counts(shared: House, session: t.SessionRef) -> None:
    given = t.Budget(
        window=t.WindowBudget(
            window=10_000,
            system_prompt_tokens=1_000,
            tool_tokens=500,
            output_reserve=2_000,
            safety_margin=300,
            rot_buffer=200,
        )
    )
    report = (await ask(shared, session, budget=given)).budget
    assert parts_of(report) == [1_000, 500, 2_000, 300, 200]
    assert (report.window, report.available, report.messages) == (10_000, 6_000, 6_000)
    assert (report.window_source, report.window_assumed) == ("request", False)


async def test_the_algebra_by_texts_and_definitions(shared: House, session: t.SessionRef) -> None:
    text = "You are an agent that books flights. " * 40
    schema = TOOL.input_schema_json.decode()
    tools = counted(TOOL.name, TOOL.description, schema)
    by_text = (
        await ask(shared, session, budget=window(10_000, system_prompt_text=text, tools=[TOOL]))
    ).budget
    assert parts_of(by_text) == [counted(text), tools, 0, 0, 0]
    assert by_text.available == 10_000 - counted(text) - tools
    # Definitions of the request count where the budget has none, and once.
    by_request = (await ask(shared, session, budget=window(10_000), tools=[TOOL, TOOL])).budget
    assert by_request.tools == 2 * tools
    both = (
        await ask(shared, session, budget=window(10_000, tools=[TOOL]), tools=[TOOL, TOOL])
    ).budget
    assert both.tools == tools
    by_count = (
        await ask(shared, session, budget=window(10_000, tool_tokens=7), tools=[TOOL])
    ).budget
    assert by_count.tools == 7
    # What was counted in the reference encoding is the model's tokens by its factor.
    other = await ask(
        shared, session, budget=window(10_000, system_prompt_text=text), model="claude-sonnet-4-5"
    )
    assert other.budget.system_prompt == round(counted(text) * 1.22)


async def test_parts_that_are_not_given_are_kept_free_all_the_same(
    shared: House, session: t.SessionRef
) -> None:
    large = (
        await ask(shared, session, budget=t.Budget(window=t.WindowBudget(window=200_000)))
    ).budget
    assert parts_of(large) == [0, 0, 8_192, 10_000, 50_000]
    small = (
        await ask(shared, session, budget=t.Budget(window=t.WindowBudget(window=24_000)))
    ).budget
    assert parts_of(small) == [0, 0, 8_192, 2_048, 6_000]
    # The model's own maximum output, where that is less.
    model = await ask(
        shared,
        session,
        budget=t.Budget(window=t.WindowBudget(window=200_000)),
        model="claude-3-opus-latest",
    )
    assert model.budget.output_reserve == 4_096


async def test_reserves_that_reach_the_window_are_refused(shared: House) -> None:
    for name, given in (
        ("reserve", window(1_000, output_reserve=1_000)),
        ("together", window(1_000, output_reserve=400, safety_margin=300, rot_buffer=300)),
        ("system", window(1_000, system_prompt_tokens=1_200)),
        ("text", window(50, system_prompt_text="many words " * 100)),
        ("tools", window(30, tools=[TOOL] * 10)),
    ):
        assert await refused(shared, ref(f"refused-{name}"), budget=given) == (
            "INVALID_ARGUMENT",
            "BUDGET_IMPOSSIBLE",
            ["budget.window"],
        )
    assert await refused(shared, ref("refused-0"), budget=budget(0)) == (
        "INVALID_ARGUMENT",
        "BUDGET_IMPOSSIBLE",
        ["budget.message_tokens"],
    )


@pytest.mark.parametrize(
    "name", ["output_reserve", "safety_margin", "rot_buffer", "tool_tokens", "window"]
)
async def test_negative_tokens_are_refused(shared: House, name: str) -> None:
    given = window(**{"size": 1_000, name: -1} if name != "window" else {"size": -1})
    code, reason, fields = await refused(shared, ref(f"negative-{name}"), budget=given)
    assert (code, reason, fields) == (
        "INVALID_ARGUMENT",
        "INVALID_FIELD",
        [f"budget.window.{name}"],
    )


async def test_tools_are_given_by_count_or_by_definitions(shared: House) -> None:
    given = window(1_000, tool_tokens=5, tools=[TOOL])
    code, reason, fields = await refused(shared, ref("contradiction"), budget=given)
    assert (code, reason) == ("INVALID_ARGUMENT", "CONTRADICTORY_FIELDS")
    assert fields == ["budget.window.tool_tokens", "budget.window.tools"]


async def test_an_absent_window_is_the_sessions_or_assumed(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, talk(1))
    nobody = (await ask(shared, session)).budget
    assert (nobody.window, nobody.window_assumed, nobody.window_source) == (
        128_000,
        True,
        "default",
    )
    await shared.client.update_model(session, window=50_000)
    mine = (await ask(shared, session)).budget
    assert (mine.window, mine.window_assumed, mine.window_source) == (50_000, False, "model")
    # Parts without a window, and a window beside the session's own: the request's wins.
    parts = (await ask(shared, session, budget=window(None, output_reserve=500))).budget
    assert (parts.window, parts.output_reserve, parts.available) == (50_000, 500, 49_500)
    given = (await ask(shared, session, budget=window(60_000))).budget
    assert (given.window, given.window_source) == (60_000, "request")


async def test_the_model_of_the_request_wins(shared: House, session: t.SessionRef) -> None:
    await shared.client.update_model(session, model="gpt-4o")
    own = (await ask(shared, session)).budget
    assert (own.window, own.model_factor, own.output_reserve) == (128_000, 1.0, 8_192)
    other = (await ask(shared, session, model="claude-sonnet-4-5")).budget
    assert (other.window, other.model_factor, other.window_source) == (200_000, 1.22, "model")
    unknown = (await ask(shared, session, model="someone's model")).budget
    assert (unknown.window, unknown.window_assumed) == (128_000, True)
    assert (await ask(shared, session)).budget == own


async def test_a_long_session_in_the_window_of_its_model(
    shared: House, session: t.SessionRef
) -> None:
    """A window that no request names must be reached back into all the same, warm or cold."""
    await store(shared, session, talk(35, 2_000))
    status = await shared.client.get_status(session)
    assert status.message_tokens > 250_000
    await shared.client.update_model(session, model="claude-opus-4-6")
    shared.forget()
    reply = await ask(shared, session)
    assert (reply.budget.window, len(reply.items)) == (1_000_000, 70)
    assert await judged(shared, reply, session) == []
    other = ref(session.session_id + " by request")
    await store(shared, other, talk(35, 2_000))
    shared.forget()
    assert len((await ask(shared, other, model="gpt-4.1")).items) == 70


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def capped(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with living(tmp_path_factory.mktemp("capped"), **{"budget.window_cap": 40_000}) as house:
        yield house


async def test_the_smallest_window_binds(capped: House) -> None:
    session = ref("smallest")
    await store(capped, session, talk(1))

    async def bound(size: int | None = None) -> tuple[int, str]:
        report = (await ask(capped, session, budget=window(size))).budget
        return report.window, report.window_source

    assert await bound() == (40_000, "cap")
    assert await bound(100_000) == (40_000, "cap")
    assert await bound(39_000) == (39_000, "request")
    await capped.client.report_usage(
        session, overflow=t.ReportUsageRequest.Overflow(limit_tokens=30_000)
    )
    assert await bound() == (30_000, "served")
    assert await bound(39_000) == (30_000, "served")
    assert await bound(20_000) == (20_000, "request")


async def test_what_the_service_adds_is_paid_from_the_same_budget(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, talk(30, 100))
    whole = await ask(shared, session, budget=budget(100_000))
    assert (whole.system_prompt_addition, whole.budget.system_prompt_addition) == ("", 0)
    done = await shared.client.compact(session, force=True, budget=budget(1_500))
    assert done.summaries
    reply = await ask(shared, session, budget=budget(3_000))
    report = reply.budget
    assert reply.system_prompt_addition
    assert report.system_prompt_addition >= counted(reply.system_prompt_addition)
    assert report.messages == 3_000 - report.system_prompt_addition
    assert reply.estimated_tokens == tokens_of(reply.items) + report.system_prompt_addition <= 3_000
    assert "summary_id" in [item.origin.WhichOneof("kind") for item in reply.items]
    # Where no summary is shown, there is nothing to be said but that it is left out.
    bare = await ask(shared, session, budget=budget(90))
    assert bare.system_prompt_addition == f"{LEFT_OUT} {FOUND}"


async def test_a_prompt_is_counted_and_nothing_more(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, talk(20))
    prompt = [t.Part(text=t.TextPart(text="What did the third word say? " * 30))]
    without = await ask(shared, session, budget=budget(700))
    reply = await ask(shared, session, budget=budget(700), prompt=prompt)
    cost = reply.budget.prompt
    assert cost >= counted(prompt[0].text.text)
    room = 700 - cost - reply.budget.system_prompt_addition
    assert reply.budget.messages == room
    assert tokens_of(reply.items) <= room < tokens_of(without.items)
    assert (reply.revision, len(await shared.rows(session))) == (1, 40)
    assert await judged(shared, reply, session) == []
    over = await ask(shared, session, budget=budget(cost), prompt=prompt)
    assert over.outcome == OVER


async def test_a_stored_prompt_stays(shared: House, session: t.SessionRef) -> None:
    messages = talk(40)
    await store(shared, session, messages)
    shared.forget()
    reply = await ask(shared, session, budget=budget(400), current_message_id="m5")
    assert "m5" in ids_of(reply.items)
    assert "m5" not in ids_of((await ask(shared, session, budget=budget(400))).items)
    assert len(await shared.rows(session)) == 80


async def test_a_stored_prompt_must_be_stored(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, talk(2))
    for fields in ({}, {"live": t.LiveList(messages=talk(2))}):
        with pytest.raises(grpc.aio.AioRpcError) as missing:
            await ask(shared, session, current_message_id="nobody", **fields)
        assert missing.value.code() == grpc.StatusCode.NOT_FOUND
    with pytest.raises(grpc.aio.AioRpcError) as both:
        await ask(
            shared,
            session,
            current_message_id="m1",
            prompt=[t.Part(text=t.TextPart(text="or this"))],
        )
    assert both.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    reply = await ask(shared, session, ingest=[say("m9")], current_message_id="m9")
    assert ids_of(reply.items)[-1] == "m9"


async def test_a_measured_count_moves_triggers_and_nothing_else(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, talk(20))
    async with held_back(shared, session):
        plain = await ask_bytes(shared, session, budget=budget(5_000))
        assert await owed(shared, session) == 0
        low = await ask_bytes(shared, session, budget=budget(5_000), current_token_count=4_700)
        assert await owed(shared, session) == 0
        high = await ask_bytes(shared, session, budget=budget(5_000), current_token_count=4_950)
        assert await owed(shared, session) == 1
    assert plain == low == high
    await settled(shared, session)


@pytest.mark.parametrize("measured", [False, True])
async def test_thresholds_are_shares_of_what_is_left_for_messages(
    shared: House, session: t.SessionRef, measured: bool
) -> None:
    await store(shared, session, talk(80))
    await assign(shared, session, "dag", contextThreshold=0.95)
    tokens = (await shared.client.get_status(session)).message_tokens
    just = int(tokens / 0.95)
    async with held_back(shared, session):
        for given in (budget(just + 1), window(just + 101, system_prompt_tokens=100)):
            reply = await ask(shared, session, budget=given)
            assert reply.budget.compaction_threshold == 0.95
            assert await owed(shared, session) == 0
        await ask(shared, session, budget=window(just + 98, system_prompt_tokens=100))
        assert await owed(shared, session) == 1
    await settled(shared, session)


async def test_a_learned_factor_below_one_reaches_further_back(
    shared: House, session: t.SessionRef
) -> None:
    """A model that needs half the tokens has room for twice the history, whatever was in memory."""
    await store(shared, session, talk(200, 60))
    sent = await ask(shared, session)
    for _ in range(25):
        await shared.client.report_usage(
            session,
            assembly_id=sent.assembly_id,
            usage=t.Usage(input_tokens=sent.estimated_tokens // 2),
            other_tokens=0,
        )
    changed = await shared.client.update_model(session)
    assert changed.model_factor < 0.52
    warm = await ask_bytes(shared, session, budget=budget(4_000))
    shared.forget()
    assert await ask_bytes(shared, session, budget=budget(4_000)) == warm
    reply = t.AssembleResponse.FromString(warm)
    assert tokens_of(reply.items) > 5_000
    assert await judged(shared, reply, session) == []


async def test_what_the_budget_leaves_is_filled(shared: House, session: t.SessionRef) -> None:
    """The cell only names the epoch: a step that fits the budget itself is shown, and the epoch is
    the same wherever the list begins alike."""
    await store(shared, session, talk(60))
    await quiet(shared, session)
    (step,) = {item.tokens for item in (await ask(shared, session)).items if item.tokens > 40}
    begins: dict[tuple[int, int], set[str]] = {}
    for size in range(2_048, 2_300, 12):
        reply = await ask(shared, session, budget=budget(size))
        first = min(item.origin.sequence for item in reply.items)
        begins.setdefault((reply.budget.cell, first), set()).add(epoch(reply))
        assert room_of(reply) - step < tokens_of(reply.items) <= room_of(reply)
    assert len(begins) > 4
    assert all(len(epochs) == 1 for epochs in begins.values())
