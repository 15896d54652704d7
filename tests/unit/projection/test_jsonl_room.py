"""The renderer `jsonl` at the limits of a turn of Codex: what it takes, not a character more."""

from __future__ import annotations

from contextlib import nullcontext, suppress

import pytest
from hypothesis import given as whatever
from hypothesis import strategies as st

from contextengine_server.projection.codex import limits
from contextengine_server.projection.codex.limits import TURN_CHARS
from contextengine_server.projection.codex.renderer import Projected
from contextengine_server.projection.codex.validator import validate
from contextengine_server.projection.model import (
    File,
    ProjectionImpossible,
    Text,
)
from contextengine_server.projection.text import sha256
from contextengine_server.projection.thread import Action, Mode
from tests.unit.projection.making import (
    assistant,
    bound,
    call,
    done,
    numbered,
    result,
    tool,
    turns,
)


@pytest.mark.parametrize("inject", [False, True])
def test_a_turn_takes_what_codex_takes_and_not_a_character_more(inject):
    """Codex 0.169 takes 1,048,576 code points over all texts of a turn, and refuses one more."""
    taken = done([], "é" * TURN_CHARS, inject=inject)
    assert len(taken.prompt) == TURN_CHARS == 1_048_576
    assert validate({"input": taken.turn_input}) == []
    with pytest.raises(ProjectionImpossible) as caught:
        done([], "é" * (TURN_CHARS + 1), inject=inject)
    assert (caught.value.field, caught.value.limit) == ("prompt", True)


@whatever(
    said=st.text(st.sampled_from("xé漢😀 "), min_size=1, max_size=40),
    limit=st.integers(600, 4_000),
    around=st.integers(-3, 3),
    count=st.integers(0, 4),
    inject=st.booleans(),
    preamble=st.sampled_from(["", "it is noon"]),
    picture=st.booleans(),
)
def test_no_turn_has_more_than_it_takes_and_none_is_refused_that_fits(
    said: str, limit: int, around: int, count: int, inject: bool, preamble: str, picture: bool
) -> None:
    """Prompts at the limit, as Codex counts them: code points, over all texts of the turn."""

    def projected(prompt: str, chars: int) -> Projected:
        parts = (Text(prompt), File("text/plain", b"f")) if picture else (Text(prompt),)
        asked = {"preamble": preamble, "inject": inject, "turn_chars": chars}
        return done(turns(count, 60), parts, budget=2_000_000, **asked)

    def taken(made: Projected) -> int:
        return sum(len(one["text"]) for one in made.turn_input if one["type"] == "text")

    least = taken(projected("x", 1 << 20)) - 1 if inject or not count else None
    wanted = max(1, limit + around - (least or 0))
    prompt = (said * wanted)[:wanted].strip() or "x"
    if least is not None and least + len(prompt) > limit:
        with pytest.raises(ProjectionImpossible) as refused:
            projected(prompt, limit)
        assert (refused.value.field, refused.value.limit) == ("prompt", True)
        return
    with suppress(ProjectionImpossible) if least is None else nullcontext():
        made = projected(prompt, limit)
        assert taken(made) <= limit
        assert prompt in made.prompt
        assert least is None or taken(made) == least + len(prompt)


def test_a_context_may_fill_a_turn_to_its_last_character():
    context = turns(3)
    around = len(done(context, "x", preamble="it is noon").prompt) - 1
    full = done(context, "x" * (5_000 - around), preamble="it is noon", turn_chars=5_000)
    assert (len(full.prompt), full.stats.stubbed, full.stats.omitted) == (5_000, 0, 0)
    over = done(context, "x" * (5_001 - around), preamble="it is noon", turn_chars=5_000)
    assert len(over.prompt) <= 5_000
    assert over.stats.stubbed + over.stats.omitted


def test_what_stands_for_an_attachment_counts_as_codex_counts_it():
    parts = (Text("x" * (TURN_CHARS - 10)), File("text/plain", b"f"))
    with pytest.raises(ProjectionImpossible) as caught:
        done([], parts, inject=True)
    assert caught.value.field == "prompt"


def test_what_surrounds_the_prompt_of_an_injected_context_counts():
    with pytest.raises(ProjectionImpossible):
        done([], "x" * TURN_CHARS, inject=True, preamble="it is noon")


def test_a_prompt_that_leaves_the_context_no_room_is_refused():
    with pytest.raises(ProjectionImpossible) as caught:
        done(turns(1), "x" * TURN_CHARS, budget=2_000_000)
    assert (caught.value.field, caught.value.limit) == ("prompt", True)
    with pytest.raises(ProjectionImpossible) as caught:
        done([], base="x" * 40_000)
    assert caught.value.field == "options.base_instructions"


def test_long_projections_warn_of_what_codex_keeps_and_of_threads_that_grow():
    long = done(turns(300), budget=None, max_chars=1_000_000)
    assert any(warning.startswith("exceeds_native_retention") for warning in long.warnings)
    first = done(turns(1), mode=Mode.PER_TURN)
    again = done(turns(1), mode=Mode.PER_TURN, binding=bound(first))
    assert (again.action, again.warnings[0].split(":")[0]) == (Action.RESUME, "history_grows")


@pytest.mark.parametrize("size", [6_001, 7_000, 100_000])
def test_an_output_that_codex_would_cut_is_its_head_and_tail(size):
    items = numbered([assistant("", call("c1")), tool(result("c1", "é" * size))])
    projected = done(items, inject=True)
    head, said, tail = projected.items[1]["output"].split("\n")
    shown = len(projected.items[1]["output"].encode())
    assert limits.OUTPUT_BYTES - 8 <= shown <= limits.OUTPUT_BYTES
    assert (set(head), set(tail), abs(len(head) - len(tail)) <= 1) == ({"é"}, {"é"}, True)
    left = 2 * (size - len(head) - len(tail))
    assert said == (
        f"[{left} of {2 * size} bytes of #2 are left out here; sha256 {sha256('é' * size)}]"
    )
    assert "X5" in {loss.rule for loss in projected.losses}
    if size > 10_000:
        return
    known = done(items, inject=True, model="gpt-6-sol")
    assert known.items[1]["output"] == "é" * size
    assert (
        validate({"items": projected.items}) == validate({"items": known.items}, "gpt-6-sol") == []
    )
