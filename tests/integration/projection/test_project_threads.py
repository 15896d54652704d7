"""What a thread of Codex is given that has had some of it: bindings, compactions, and the harness's
own list."""

from __future__ import annotations

import pytest

from contextengine import assistant, user
from contextengine import types as t
from contextengine_server.projection.codex import jsonl
from tests.integration.harness import House, ref
from tests.integration.projection.asking import (
    Action,
    options,
    project,
    text,
)
from tests.integration.projection.test_project import HISTORY, stored


async def test_an_assembly_says_how_a_harness_with_threads_does_best(house: House) -> None:
    await stored(house)
    modes = t.ContextProjection.Mode
    assert (
        await house.client.assemble(ref())
    ).context_projection.mode == modes.MODE_THREAD_BOOTSTRAP
    other = t.LiveList(messages=[user("none of it", id="n1")])
    unaligned = await house.client.assemble(ref(), live=other)
    assert (unaligned.outcome_reason, unaligned.context_projection.mode) == (
        "UNALIGNED",
        modes.MODE_PER_TURN,
    )
    await house.client.engines.assign(scope=ref(), engine_id="legacy")
    assert (await house.client.assemble(ref())).context_projection.mode == modes.MODE_PER_TURN


async def test_a_binding_comes_back_as_it_was_given_out(house: House) -> None:
    session = await stored(house)
    first = await project(house, session, prompt=text("one"), inject_items=True)
    first.binding.thread_id = "thread-1"
    again = await project(
        house, session, prompt=text("two"), inject_items=True, binding=first.binding
    )
    assert (again.action, again.prompt, again.binding) == (
        Action.PROJECTION_ACTION_RESUME,
        "two",
        first.binding,
    )
    compacted = t.HostEvent(kind=t.HostEvent.KIND_NATIVE_COMPACTED)
    restored = await project(
        house,
        session,
        prompt=text("three"),
        inject_items=True,
        binding=first.binding,
        host_events=[compacted],
    )
    assert (restored.action, restored.action_reason) == (
        Action.PROJECTION_ACTION_INJECT,
        "native-compaction",
    )
    assert restored.inject_items_json == first.inject_items_json


async def test_a_compaction_of_the_host_voids_the_binding(house: House) -> None:
    session = await stored(house)
    first = await project(house, session, prompt=text("one"))
    first.binding.thread_id = "thread-1"
    await house.client.record_host_change(
        session, change_id="change-1", native_compacted=t.RecordHostChangeRequest.NativeCompaction()
    )
    again = await project(house, session, prompt=text("two"), binding=first.binding)
    assert (again.action, again.action_reason) == (
        Action.PROJECTION_ACTION_ROTATE,
        "projection-mismatch",
    )


async def test_an_overflow_takes_less_of_the_budget(house: House) -> None:
    messages = [
        message
        for turn in range(40)
        for message in (user(f"q{turn} " + "x" * 900), assistant(f"a{turn} " + "y" * 900))
    ]
    await house.client.ingest_batch(ref(), messages)
    whole = await project(house, ref(), prompt=text("x"), token_budget=16_000)
    assert whole.stats.omitted > 0
    assert whole.stats.context_chars <= 32_000
    whole.binding.thread_id = "thread-1"
    overflow = t.HostEvent(kind=t.HostEvent.KIND_OVERFLOW)
    less = await project(
        house,
        ref(),
        prompt=text("x"),
        token_budget=16_000,
        binding=whole.binding,
        host_events=[overflow],
    )
    assert less.action == Action.PROJECTION_ACTION_ROTATE
    assert less.stats.context_chars < whole.stats.context_chars * 0.7


async def test_a_harnesss_own_list_is_projected_in_its_assembly(house: House) -> None:
    session = await stored(house)
    live = t.LiveList(messages=[*HISTORY, user("not stored", id="m9")])
    reply = await house.client.assemble(session, live=live, projection=options())
    records, _, prompt = jsonl.parse(reply.projection.prompt)
    assert ([record["id"] for record in records][-1], prompt) == ("m4", "not stored")


async def test_what_stood_before_the_prompt_is_counted_in_the_harnesss_own_list(
    house: House,
) -> None:
    """One that the store lacks stands in the middle of it: AfterTurn with the whole list begins
    behind this count."""
    session = await stored(house)
    live = [*HISTORY[:1], user("said elsewhere", id="m0"), *HISTORY[1:], user("When?", id="m9")]
    for asked in (live, live[:-1]):
        reply = await house.client.assemble(
            session, live=t.LiveList(messages=asked), prompt=text("When?"), projection=options()
        )
        assert reply.projection.pre_prompt_message_count == 5


async def test_a_list_hands_over_what_its_thread_has_not_seen(house: House) -> None:
    asked = [*HISTORY, user("When?", id="m5")]
    first = await house.client.projection.project(options(), messages=asked, epoch="e")
    assert (first.action, first.binding.last_sequence) == (Action.PROJECTION_ACTION_START, 5)
    known = first.binding
    known.thread_id = "t1"
    reply = assistant("Today.", id="m6")
    reply.labels["codex.thread"] = "t1"
    asked += [reply, user("said elsewhere", id="m7"), user("Thanks", id="m8")]
    again = await house.client.projection.project(options(binding=known), messages=asked, epoch="e")
    records, _, prompt = jsonl.parse(again.prompt)
    assert (again.action_reason, again.binding.last_sequence) == (
        "matching-thread-bootstrap-binding",
        8,
    )
    assert ([record["id"] for record in records], prompt) == (["m7"], "Thanks")


@pytest.mark.parametrize("engine", ["dag", "legacy"])
async def test_a_list_whose_end_is_not_stored_yet_stays_in_its_thread(
    house: House, engine: str
) -> None:
    """The prompt stands at the end of the harness's own list, and is stored with the turn behind
    it."""
    await house.client.engines.assign(scope=ref(""), engine_id=engine)
    await stored(house)
    live, known = list(HISTORY), t.ProjectionBinding()
    for turn in range(3):
        asked = user(f"question {turn}", id=f"q{turn}")
        elsewhere = [user("said elsewhere", id="e1")] if turn == 2 else []
        live += [*elsewhere, asked]
        reply = await house.client.assemble(
            ref(), live=t.LiveList(messages=live), projection=options(binding=known)
        )
        made = reply.projection
        if not turn:
            assert made.action == Action.PROJECTION_ACTION_START
        else:
            assert (made.action, made.action_reason) == (
                Action.PROJECTION_ACTION_RESUME,
                "matching-thread-bootstrap-binding",
            )
        assert made.prompt.endswith(f"question {turn}")
        assert ("said elsewhere" in made.prompt) == bool(elsewhere)
        assert made.prompt.count("in the lorry") == (not turn)
        known = made.binding
        known.thread_id = "t1"
        answer = assistant(f"answer {turn}", id=f"a{turn}")
        live.append(answer)
        done = await house.client.after_turn(ref(), messages=[*elsewhere, asked, answer])
        known.last_sequence = done.stored[-1].sequence


async def test_another_list_than_the_stored_one_is_another_thread(house: House) -> None:
    await stored(house)
    lists = (HISTORY, HISTORY[:2], [user("none of it", id="n1")], [user("nor of it", id="n2")])
    epochs = [
        (
            await house.client.assemble(ref(), live=t.LiveList(messages=live), projection=options())
        ).projection
        for live in lists
    ]
    assert len({made.binding.epoch for made in epochs[2:]}) == 2
