"""What calls cost by the catalogue of rates, and what the prompt cache saved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contextengine_server.usage.rates import (
    CallTokens,
    UnusableRates,
    our_rates,
    rates_file,
    read_rates,
)

DATA = Path(__file__).parents[2] / "data"
MILLION = 1_000_000


@pytest.mark.parametrize(
    ("provider", "model", "read", "write"),
    [
        ("anthropic", "claude-sonnet-4-5", 0.10, 1.25),
        ("openai", "gpt-5", 0.50, 1.0),
        ("google", "gemini-2.5-pro", 0.25, 1.0),
    ],
)
def test_the_shares_of_the_providers(provider: str, model: str, read: float, write: float) -> None:
    """Comis's table of cache prices: reads at 10, 50 and 25 % of the input price, writes at 125,
    100 and 100 %."""
    rates = our_rates().rates_of(provider, model)
    assert rates is not None
    cost = rates.priced(CallTokens(cache_read=MILLION)).cost_micro_usd
    assert cost == round(rates.input * read * MILLION)
    cost = rates.priced(CallTokens(cache_write=MILLION)).cost_micro_usd
    assert cost == round(rates.input * write * MILLION)


def test_writing_costs_before_reading_saves() -> None:
    """savedVsUncached is negative on a first turn at Anthropic, and positive from the second on."""
    catalogue = our_rates()
    first = catalogue.priced("anthropic", "claude-sonnet-4-5", CallTokens(3, 100, 0, 10_000))
    second = catalogue.priced("anthropic", "claude-sonnet-4-5", CallTokens(3, 100, 10_000, 200))
    assert first.saved_micro_usd == -7_500  # 10,000 x $3/M x 25 %
    assert second.saved_micro_usd == 27_000 - 150
    openai = catalogue.priced("openai", "gpt-5", CallTokens(3, 100, 0, 10_000))
    assert openai.saved_micro_usd == 0, "no premium for writing"


def test_what_is_written_for_an_hour_costs_twice_the_input() -> None:
    catalogue = our_rates()
    bill = CallTokens(cache_write=1_000, cache_write_1h=400)
    priced = catalogue.priced("anthropic", "claude-sonnet-4-5", bill)
    assert priced.cost_micro_usd == 600 * 3 * 1.25 + 400 * 3 * 2
    assert priced.saved_micro_usd == -(600 * 3 * 0.25 + 400 * 3)
    # A provider whose split and total disagree: no more is for an hour than was written.
    odd = CallTokens(cache_write=1_000, cache_write_1h=5_000)
    assert catalogue.priced("anthropic", "claude-sonnet-4-5", odd).cost_micro_usd == 6_000


def test_the_bills_of_a_real_session_are_met() -> None:
    """The replies of claude-sonnet-4-5 in one session, each with the cost that its harness worked
    out by the provider's list."""
    met = 0
    for line in (DATA / "coding_session.pi.jsonl").read_text(encoding="utf-8").splitlines():
        message = json.loads(line).get("message", {})
        usage = message.get("usage")
        if not usage or message["model"] != "claude-sonnet-4-5":
            continue
        bill = CallTokens(usage["input"], usage["output"], usage["cacheRead"], usage["cacheWrite"])
        priced = our_rates().priced(message["provider"], message["model"], bill)
        assert priced.cost_micro_usd == pytest.approx(usage["cost"]["total"] * 1e6, abs=1)
        met += 1
    assert met > 400


@pytest.mark.parametrize(
    "name",
    [
        "claude-sonnet-4-5",
        "claude-sonnet-4.5",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "openrouter/anthropic/claude-sonnet-4.5",
        "claude-sonnet-4-5-latest",
    ],
)
def test_a_model_has_many_names(name: str) -> None:
    for provider in ("anthropic", "", "openrouter"):
        rates = our_rates().rates_of(provider, name)
        assert rates is not None
        assert (rates.input, rates.output) == (3, 15)


@pytest.mark.parametrize("name", ["gpt-5-9", "claude-sonnet-4-5-fast", "gpt-5-pro", "", "my-model"])
def test_another_model_is_not_priced_as_its_namesake(name: str) -> None:
    assert our_rates().rates_of("", name) is None
    priced = our_rates().priced("", name, CallTokens(1_000, 1_000, 1_000, 1_000))
    assert (priced.cost_micro_usd, priced.saved_micro_usd, priced.known) == (0, 0, False)


def test_what_the_caller_says_of_the_cost_counts() -> None:
    priced = our_rates().priced("openai", "gpt-5", CallTokens(1_000, 0, 1_000, 0, 0, 77))
    assert (priced.cost_micro_usd, priced.saved_micro_usd) == (77, 625)
    assert our_rates().priced("", "my-model", CallTokens(cost_micro_usd=5)).cost_micro_usd == 5


def test_an_operator_has_rates_of_his_own(tmp_path: Path) -> None:
    file = tmp_path / "rates.yaml"
    file.write_text(
        "house:\n  rates: {cache_read: 0.5, cache_write: 1}\n"
        "  models:\n    my-model: {input: 10, output: 20}\n"
        "    my-other: {input: 10, output: 20, cache_read: 0.1}\n"
    )
    catalogue = rates_file(str(file))
    assert catalogue.priced("house", "my-model", CallTokens(cache_read=100)).cost_micro_usd == 500
    assert catalogue.priced("house", "my-other", CallTokens(cache_read=100)).cost_micro_usd == 100
    assert catalogue.rates_of("anthropic", "claude-sonnet-4-5") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "a: 1",
        "a: {models: {m: {input: 1, output: 1}}}",
        "a: {rates: {cache_read: 1, cache_write: 1}, models: {m: {input: -1, output: 1}}}",
        "a: {rates: {cache_read: 1, cache_write: 1}, models: {m: {input: 1}}}",
        "a: {rates: {cache_read: 1, cache_write: 1, other: 1}, models: {m: {input: 1, output: 1}}}",
        "a: {rates: {cache_read: x, cache_write: 1}, models: {m: {input: 1, output: 1}}}",
        "a: [",
    ],
)
def test_a_catalogue_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UnusableRates):
        read_rates(text)


def test_a_catalogue_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableRates, match="cannot be read"):
        rates_file(str(tmp_path / "none.yaml"))
