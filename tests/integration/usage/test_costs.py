"""What calls cost, in GetStatus: of the session, the agent and the tenant, and after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from contextengine import types as t
from contextengine.messages import user
from contextengine_server.config.load import SettingsError, load_settings
from tests.integration.harness import House, ref
from tests.integration.harness import house as living

FIRST = t.Usage(input_tokens=3, output_tokens=100, cache_write_tokens=10_000)
SECOND = t.Usage(
    input_tokens=3, output_tokens=100, cache_read_tokens=10_000, cache_write_tokens=200
)


async def called(house: House, usage: t.Usage, session: str = "s1", agent: str = "agent") -> None:
    await house.client.report_usage(ref(session, agent=agent), usage=usage)


async def begun(house: House, session: str = "s1", agent: str = "agent", model: str = "") -> None:
    await house.client.update_model(ref(session, agent=agent), model=model or "claude-sonnet-4-5")


async def test_a_first_turn_costs_and_the_next_ones_save(house: House) -> None:
    await begun(house)
    await called(house, FIRST)
    cost = (await house.client.get_status(ref())).cost
    assert cost.cost_micro_usd == 9 + 1_500 + 37_500
    assert cost.saved_micro_usd == -7_500
    assert (cost.call_count, cost.unpriced_call_count, cost.cache_hit_share) == (1, 0, 0)
    await called(house, SECOND)
    cost = (await house.client.get_status(ref())).cost
    assert cost.cost_micro_usd == 39_009 + 9 + 1_500 + 3_000 + 750
    assert cost.saved_micro_usd == -7_500 + 27_000 - 150
    assert cost.cache_hit_share == pytest.approx(10_000 / 20_206)
    assert cost.usage.cache_read_tokens == 10_000


async def test_costs_are_known_by_session_agent_and_tenant(house: House) -> None:
    for agent, session, model in (
        ("agent", "s1", "gpt-5"),
        ("agent", "s2", "claude-sonnet-4-5"),
        ("other", "s1", "gpt-5"),
    ):
        await begun(house, session, agent, model)
        await called(house, t.Usage(input_tokens=1_000_000), session, agent)
    await house.restart()
    status = await house.client.get_status(ref("s1"))
    assert status.cost.cost_micro_usd == 1_250_000
    assert status.agent_cost.cost_micro_usd == 4_250_000
    assert status.tenant_cost.cost_micro_usd == 5_500_000
    models = [(one.provider, one.model, one.cost_micro_usd) for one in status.agent_cost_by_model]
    assert models == [
        ("anthropic", "claude-sonnet-4-5", 3_000_000),
        ("openai", "gpt-5", 1_250_000),
    ]
    # What was spent stays spent when the session is erased.
    await house.client.sessions.delete(ref("s2"))
    assert (await house.client.get_status(ref("s1"))).agent_cost.cost_micro_usd == 4_250_000


async def test_a_report_that_comes_twice_is_charged_once(house: House) -> None:
    await begun(house)
    for _ in range(2):
        await house.client.report_usage(ref(), usage=FIRST, request_id="r1")
        await house.client.after_turn(
            ref(), [user("x", id="m1")], usage=SECOND, advancement_key="k1"
        )
    status = await house.client.get_status(ref())
    assert status.cost.call_count == status.agent_cost.call_count == 2
    assert status.cost.cost_micro_usd == status.agent_cost.cost_micro_usd == 39_009 + 5_259
    assert house.app.metrics.snapshot()["contextengine.cost"] == 39_009 + 5_259


async def test_a_model_without_a_price_is_said_to_have_none(house: House) -> None:
    await begun(house, model="my-model")
    await called(house, FIRST)
    await called(house, t.Usage(input_tokens=5, cost_micro_usd=40))
    cost = (await house.client.get_status(ref())).cost
    assert (cost.call_count, cost.unpriced_call_count, cost.cost_micro_usd) == (2, 1, 40)


async def test_another_model_that_ran_is_charged_at_its_own_price(house: House) -> None:
    await begun(house)
    await house.client.report_usage(
        ref(), usage=t.Usage(input_tokens=1_000_000), model="gpt-4o-mini"
    )
    (one,) = (await house.client.get_status(ref())).agent_cost_by_model
    assert (one.provider, one.model, one.cost_micro_usd) == ("openai", "gpt-4o-mini", 150_000)


async def test_the_metrics_tell_what_was_spent_and_saved(house: House) -> None:
    await begun(house)
    await called(house, FIRST)
    seen = house.app.metrics.snapshot()
    assert seen["contextengine.cost"] == 39_009
    assert seen["contextengine.cache.saved"] == -7_500
    await called(house, SECOND)
    seen = house.app.metrics.snapshot()
    assert seen["contextengine.cache.saved"] == 19_350
    assert seen["contextengine.cache.hit_ratio"] == pytest.approx(10_000 / 20_206)


async def test_an_operator_replaces_the_catalogue(tmp_path: Path) -> None:
    rates = tmp_path / "rates.yaml"
    rates.write_text(
        "anthropic:\n  rates: {cache_read: 1, cache_write: 1}\n"
        "  models:\n    claude-sonnet-4-5: {input: 100, output: 0}\n"
    )
    async with living(tmp_path, **{"usage.rates": str(rates)}) as house:
        await begun(house)
        await called(house, FIRST)
        cost = (await house.client.get_status(ref())).cost
        assert (cost.cost_micro_usd, cost.saved_micro_usd) == (1_000_300, 0)


def test_a_catalogue_that_cannot_be_read_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings(None, {"usage.rates": str(tmp_path / "none.yaml")}, {})


async def test_costs_are_known_by_execution_and_by_channel(house: House) -> None:
    """An execution is a turn. A report belongs to the channel that the session is held on then."""
    await begun(house, model="gpt-5")
    million = t.Usage(input_tokens=1_000_000)
    await house.client.assemble(ref(), ingest=[user("hello")], channel_type="dm")
    assert not (await house.client.get_status(ref())).HasField("execution_cost")
    await called(house, million)
    await called(house, million)
    status = await house.client.get_status(ref())
    assert status.execution_cost.cost_micro_usd == 2_500_000
    assert status.execution_cost.call_count == 2
    await house.client.assemble(ref(), ingest=[user("and?")], channel_type="group")
    assert not (await house.client.get_status(ref())).HasField("execution_cost")
    await called(house, t.Usage(input_tokens=3_000_000, cache_read_tokens=1_000_000))
    await house.restart()
    status = await house.client.get_status(ref())
    assert status.execution_cost.call_count == 1
    assert status.execution_cost.cache_hit_share == 0.25
    by_channel = {one.channel_type: one.cost for one in status.cost_by_channel}
    assert list(by_channel) == ["group", "dm"]  # the dearest first
    assert by_channel["dm"].cost_micro_usd == 2_500_000
    assert by_channel["dm"].usage.input_tokens == 2_000_000
    total = sum(one.cost_micro_usd for one in by_channel.values())
    assert total == status.cost.cost_micro_usd
    assert by_channel["group"].saved_micro_usd == status.cost.saved_micro_usd > 0


async def test_of_very_many_channels_the_further_ones_count_together(house: House) -> None:
    await begun(house, model="gpt-5")
    for number in range(40):
        await house.client.assemble(ref(), ingest=[user("go on")], channel_type=f"c{number:02}")
        await called(house, t.Usage(input_tokens=1_000))
    by_channel = (await house.client.get_status(ref())).cost_by_channel
    assert len(by_channel) == 33
    assert by_channel[0].channel_type == ""
    assert by_channel[0].cost.call_count == 8
    assert sum(one.cost.call_count for one in by_channel) == 40
