"""A longer answer is suggested once a turn: after a compaction and after a stop for length."""

from __future__ import annotations

from pathlib import Path

import pytest

from contextengine import types as t
from contextengine.messages import assistant, user
from tests.integration.harness import House, ref
from tests.integration.harness import house as living

USAGE = t.Usage(input_tokens=100, output_tokens=100)


async def suggested(house: House, **more: object) -> int | None:
    reply = await house.client.assemble(ref(), **more)  # type: ignore[arg-type]
    if not reply.HasField("suggested_max_output_tokens"):
        return None
    return reply.suggested_max_output_tokens


async def begun(house: House, **model: object) -> None:
    await house.client.update_model(ref(), model="some-model", window=200_000, **model)  # type: ignore[arg-type]
    assert await suggested(house, ingest=[user("write a book", id="m1")]) is None


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS", "maxTokens"])
async def test_after_a_stop_for_length(house: House, reason: str) -> None:
    await begun(house)
    await house.client.report_usage(ref(), usage=USAGE, stop_reason=reason)
    assert await suggested(house) == 32_768
    await house.restart()
    assert await suggested(house) == 32_768, "asked again, it is the same"


async def test_the_end_of_a_turn_tells_so_too(house: House) -> None:
    await begun(house)
    cut = assistant("once upon a", id="a1")
    cut.stop_reason = "max_tokens"
    await house.client.after_turn(ref(), [cut], usage=USAGE)
    assert await suggested(house) == 32_768


@pytest.mark.parametrize("reason", ["", "stop", "end_turn", "tool_use"])
async def test_not_after_another_end(house: House, reason: str) -> None:
    await begun(house)
    await house.client.report_usage(ref(), usage=USAGE, stop_reason=reason)
    assert await suggested(house) is None


async def test_once_a_turn(house: House) -> None:
    await begun(house)
    for wanted in (32_768, None, None):
        await house.client.report_usage(ref(), usage=USAGE, stop_reason="length")
        assert await suggested(house) == wanted
    await suggested(house, ingest=[user("go on", id="m2")])
    await house.client.report_usage(ref(), usage=USAGE, stop_reason="length")
    assert await suggested(house) == 32_768, "another turn"


async def test_the_next_turn_has_nothing_of_it(house: House) -> None:
    await begun(house)
    await house.client.report_usage(ref(), usage=USAGE, stop_reason="length")
    assert await suggested(house, ingest=[user("never mind", id="m2")]) is None


async def test_after_a_compaction(house: House) -> None:
    await begun(house)
    await house.client.report_usage(ref(), usage=USAGE)
    for number in range(40):
        await house.client.ingest_batch(
            ref(),
            [
                user(f"question {number} " + "words of it " * 40, id=f"q{number}"),
                assistant(f"answer {number} " + "words of it " * 40, id=f"a{number}"),
            ],
        )
    assert await suggested(house) is None
    done = await house.client.compact(ref(), force=True, budget=t.Budget(message_tokens=4_000))
    assert done.compacted
    assert await suggested(house) == 32_768
    await house.client.report_usage(ref(), usage=USAGE)
    assert await suggested(house) is None


async def test_no_more_than_model_and_window_allow(house: House) -> None:
    await begun(house, max_output_tokens=10_000)
    await house.client.report_usage(ref(), usage=USAGE, stop_reason="length")
    assert await suggested(house) == 10_000
    await house.client.update_model(ref(), window=24_000, max_output_tokens=100_000)
    named = t.WindowBudget(system_prompt_tokens=9_000, tool_tokens=1_000, output_reserve=4_000)
    room = await suggested(house, budget=t.Budget(window=named))
    assert room is not None
    assert 13_000 < room < 14_000, "what the window leaves beside the prompt"
    await house.client.update_model(ref(), window=200_000, max_output_tokens=8_000)
    assert await suggested(house) is None, "the model gives no more than the reserve"


async def test_it_is_a_setting(tmp_path: Path) -> None:
    async with living(tmp_path, **{"usage.output_escalation.max_tokens": 64_000}) as house:
        await begun(house)
        await house.client.report_usage(ref(), usage=USAGE, stop_reason="length")
        assert await suggested(house) == 64_000
        await house.restart(**{"usage.output_escalation.enabled": False})
        assert await suggested(house) is None
