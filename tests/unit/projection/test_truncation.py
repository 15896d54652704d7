"""Making records fit: what goes first, what never goes, and a cut that moves rarely."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace

from contextengine_server.projection.codex.records import recorded, stubbed
from contextengine_server.projection.codex.truncation import Cut, Fitted, cut_of, fit
from contextengine_server.projection.model import Item
from contextengine_server.projection.task import Payload
from contextengine_server.projection.thread import Binding, Mode
from tests.unit.projection.making import (
    assistant,
    bound,
    call,
    done,
    numbered,
    records,
    result,
    summary,
    tool,
    turns,
    user,
)


def fitted_to(items: list[Item], limit: int) -> Fitted:
    return fit(items, recorded(items, Payload.PRESERVE, str), limit, Cut())


def kinds(fitted: list[dict[str, object]]) -> list[str]:
    return [f"{record['t']}{'*' if 'stub' in record else ''}" for record in fitted]


def test_results_become_stubs_before_calls_and_calls_before_turns_go():
    items = turns(3, size=2_000)
    whole = fitted_to(items, 10**6).chars
    seen = [fitted_to(items, limit) for limit in range(whole, 9_000, -500)]
    order = []
    for fitted in seen:
        shown = kinds(fitted.records)
        order.append((fitted.cut.results > 0, fitted.cut.arguments > 0, fitted.cut.turns > 0))
        assert fitted.fits
        assert shown[-5:] == ["msg", "msg", "call", "result", "msg"], "the last turn stays"
    assert order == sorted(order), "each class after the one before"
    assert order[0] == (False, False, False)
    assert order[-1] == (True, True, True)


def test_pinned_messages_stay_and_summaries_go_last():
    items = [summary("older " * 200, 1, 4), *turns(12, first=5)]
    items[3] = replace(items[3], labels={"pinned": "true"})
    fitted = fitted_to(items, 4_000)
    assert fitted.fits
    assert fitted.records[0]["t"] == "summary"
    assert any(record.get("id") == f"#{items[3].sequence}" for record in fitted.records)
    tighter = fitted_to(items, 2_000)
    assert tighter.fits
    assert tighter.records[0]["t"] == "omitted"


def test_a_last_turn_that_is_too_much_gives_up_its_older_steps_and_never_its_request_or_last_step():
    steps = [user("the request")]
    for at in range(30):
        steps += [assistant(f"step {at}", call(f"c{at}")), tool(result(f"c{at}", "o" * 900))]
    fitted = fitted_to(numbered(steps), 5_000)
    assert fitted.fits
    assert fitted.records[0]["text"] == "the request"
    assert fitted.records[1]["t"] == "omitted"
    assert fitted.records[-1]["text"] == "o" * 900
    assert not fitted_to(numbered(steps), 900).fits


@pytest.mark.parametrize("thread", ["thread-1", ""], ids=["one thread", "ephemeral threads"])
def test_a_cut_goes_to_three_quarters_and_is_kept_until_the_limit(thread):
    limit, cuts, previous = 12_000, [], ""
    binding: Binding | None = None
    for count in range(4, 40):
        projected = done(
            turns(count), mode=Mode.PER_TURN, budget=None, max_chars=limit, binding=binding
        )
        assert len(projected.prompt) <= limit
        binding = bound(projected, thread)
        body = projected.prompt[: projected.prompt.index("</context_records>")]
        cuts.append((binding.cut, body.startswith(previous)))
        previous = body
    stable = [held for _, held in cuts[1:]]
    moves = sum(1 for before, now in pairwise(cuts) if before[0] != now[0])
    assert stable.count(False) == moves, "the beginning changes only where the cut moves"
    assert 0 < moves < len(cuts) / 2
    assert binding is not None
    assert cut_of(binding.cut).facts == dict(binding.cut)


def test_the_binding_names_the_first_sequence_that_is_shown():
    projected = done(turns(40), budget=None, max_chars=8_000)
    first = records(projected)[1]["id"]
    assert projected.binding.first_sequence == int(first[1:])


@pytest.mark.parametrize("text", ["short", "x" * 640])
def test_a_stub_is_never_longer_than_what_it_stands_for(text):
    record = {"t": "result", "id": "#1", "call": "c", "text": text}
    assert stubbed(record) is record
