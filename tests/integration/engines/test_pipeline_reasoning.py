"""Reasoning under `pipeline` over the wire: what is left out of turns that are over, for whom, and
that nothing but the rows decides it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from contextengine import types as t
from contextengine.messages import user
from contextengine_server.engines.pipeline import reasoning
from tests.integration.harness import House, budget, ref
from tests.integration.harness import house as living

CLAUDE: dict[str, Any] = {"model": "claude-sonnet-4-5", "provider": "anthropic"}


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with living(tmp_path, **{"engine.default": "pipeline"}) as one:
        yield one


def thinking(n: int, *, signature: bytes = b"signed", words: int = 40) -> t.Message:
    message = t.Message(id=f"a{n}", role=t.ROLE_ASSISTANT, model="claude-sonnet-4-5-20250929")
    message.parts.add().reasoning.text = f"reasoning {n} " * words
    message.parts[0].reasoning.signature = signature
    message.parts.add().text.text = f"<think>{n}</think>answer {n}"
    message.native.format, message.native.json = "pi", b'{"n": %d}' % n
    return message


def turns(count: int, start: int = 0, **how: Any) -> list[t.Message]:
    said = []
    for n in range(start, start + count):
        said += [user(f"question {n}"), thinking(n, **how)]
    return said


def forms(reply: t.AssembleResponse) -> list[int]:
    return [item.form for item in reply.items]


async def test_signed_reasoning_of_turns_that_are_over_is_left_out(house: House) -> None:
    await house.client.ingest_batch(ref(), turns(2))
    await house.client.update_model(ref(), **CLAUDE)
    within = await house.client.assemble(ref(), budget=budget(50_000))
    assert forms(within) == [0, t.FORM_WITHOUT_REASONING, 0, 0]
    after = await house.client.assemble(
        ref(),
        ingest=[user("and?")],
        budget=budget(50_000),
        known_epoch=within.context_projection.epoch,
    )
    assert forms(after) == [0, t.FORM_WITHOUT_REASONING, 0, t.FORM_WITHOUT_REASONING, 0]
    assert after.cache.epoch_cause == t.EPOCH_CAUSE_MASKED
    shown = after.items[3].message
    assert [part.text.text for part in shown.parts] == ["answer 1"]
    assert not shown.HasField("native")
    rows = await house.rows(ref())
    assert [row.message for row in rows[1:4:2]] == [thinking(n) for n in range(2)]


async def test_no_form_is_given_where_nobody_says_that_reasoning_may_go(house: House) -> None:
    await house.client.ingest_batch(ref(), [*turns(3), user("and?")])
    assert forms(await house.client.assemble(ref(), budget=budget(50_000))) == [0] * 7
    for_claude = await house.client.assemble(ref(), budget=budget(50_000), **CLAUDE)
    assert t.FORM_WITHOUT_REASONING in forms(for_claude)
    assert forms(await house.client.assemble(ref(), budget=budget(50_000))) == [0] * 7


async def test_a_layer_that_fails_is_told_in_the_status(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: object) -> object:
        raise RuntimeError("a layer that fails")

    async def failures() -> dict[str, int]:
        status = await house.client.get_status(ref())
        return dict(json.loads(status.engine_status_json)["failures_in_a_row"])

    monkeypatch.setattr(reasoning, "LAYERS", (("reasoning-tag-stripper", broken),))
    for turn in range(4):
        await house.client.ingest_batch(ref(), turns(1, turn))
        await house.client.assemble(ref(), ingest=[user("and?")], budget=budget(50_000), **CLAUDE)
        # Once it is off it is not tried again.
        assert await failures() == {"reasoning-tag-stripper": min(turn + 1, 3)}


async def test_explain_says_why(house: House) -> None:
    await house.client.ingest_batch(ref(), [*turns(2), user("and?")])
    reply = await house.client.assemble(ref(), budget=budget(50_000), explain=True, **CLAUDE)
    rules = {one.rule for one in reply.decisions if one.sequence in (2, 4)}
    assert rules == {"reasoning of a turn that is over"}


async def test_a_restart_and_an_eviction_show_the_same(house: House) -> None:
    """Small budgets load a window, and old replies between summaries as anchors."""
    await house.client.update_model(ref(), **CLAUDE)
    for start in range(0, 60, 4):
        await house.client.ingest_batch(ref(), turns(4, start, words=120))
        await house.client.assemble(ref(), budget=budget(4_000))
        await house.client.compact(ref(), budget=budget(4_000))
    warm = await house.client.assemble(ref(), ingest=[user("and?")], budget=budget(4_000))
    assert t.FORM_WITHOUT_REASONING in forms(warm)
    house.forget()
    evicted = await house.client.assemble(ref(), budget=budget(4_000))
    await house.restart()
    cold = await house.client.assemble(ref(), budget=budget(4_000))
    for other in (evicted, cold):
        assert other.context_hash == warm.context_hash
        assert other.context_projection.epoch == warm.context_projection.epoch


async def test_a_list_that_shows_what_was_assembled_is_recognised(house: House) -> None:
    """A harness that takes over what it was sent, without ids, tells of nothing new."""
    await house.client.ingest_batch(ref(), [*turns(4), user("and?")])
    sent = await house.client.assemble(ref(), budget=budget(50_000), **CLAUDE)
    back = []
    for item in sent.items:
        message = t.Message()
        message.CopyFrom(item.message)
        message.ClearField("id")
        back.append(message)
    reply = await house.client.assemble(
        ref(), live=t.LiveList(messages=back, store_new=True), budget=budget(50_000), **CLAUDE
    )
    assert reply.context_hash == sent.context_hash
    assert len(await house.rows(ref())) == 9
