"""More of the collected facts, by their numbers: what is taken for new, and what is shown of it.
Where the reference trims, bounds or guesses, what our contract says instead is held."""

from __future__ import annotations

import pytest

from contextengine import types as t
from contextengine.messages import assistant, user
from tests.integration.compact.test_whole_history import Reads
from tests.integration.harness import House, budget, ref, texts
from tests.integration.projection.asking import judged as judged_by_target
from tests.integration.projection.asking import project

from .asking import (
    Cause,
    ask,
    assign,
    calls,
    hashes,
    ids_of,
    judged,
    live,
    origins,
    quiet,
    reply_with,
    result,
    say,
    scope_of,
    store,
    talk,
    without_ids,
)
from .judging import DEGRADED, FITS

pytestmark = pytest.mark.asyncio(loop_scope="module")
EVERYTHING = budget(100_000)


# Comis


async def test_comis_87_a_tool_step_in_the_tail_is_what_was_sent(
    shared: House, session: t.SessionRef
) -> None:
    step = [calls("a1", "c1", "c2"), result("r1", "c1"), result("r2", "c2", 40)]
    step[0].native.format, step[0].native.json = "pi", b'{"kept": "byte for byte",  "n": 1e0}'
    await store(shared, session, [say("u1"), *step])
    reply = await ask(shared, session, budget=EVERYTHING)
    assert [item.message for item in reply.items][1:] == step


async def test_comis_89_a_call_without_a_result_gets_one_that_says_so(
    shared: House, session: t.SessionRef
) -> None:
    await store(
        shared, session, [say("u1"), calls("a1", "c1", "c2"), result("r2", "c2"), say("u2")]
    )
    reply = await ask(shared, session, budget=EVERYTHING)
    assert origins(reply) == ["1", "2", "3", "synthetic", "4"]
    made = reply.items[3].message.parts[0].tool_result
    assert (made.call_id, made.is_error) == ("c1", True)
    assert "no result was recorded" in made.parts[0].text.text.lower()
    assert await judged(shared, reply, session) == []


# lossless-claw: what is taken for new


async def test_lossless_claw_3_one_new_message_is_stored_and_nothing_else(
    shared: House, session: t.SessionRef
) -> None:
    history = without_ids(talk(6))
    await ask(shared, session, live=live(history, store_new=True))
    # Its words were said before: that makes it no repetition.
    again = without_ids([say("m1")])
    reply = await ask(shared, session, live=live([*history, *again], store_new=True))
    assert [row.sequence for row in await shared.rows(session)] == list(range(1, 14))
    assert origins(reply)[-1] == "13"


async def test_lossless_claw_7_a_long_list_without_overlap_is_no_continuation(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, talk(3))
    foreign = without_ids(talk(40, prefix="foreign"))
    reply = await ask(shared, session, live=live(foreign, store_new=True), budget=EVERYTHING)
    assert (reply.outcome, reply.outcome_reason) == (DEGRADED, "UNALIGNED")
    # It takes the session's place, as a rewind would, and is never mixed with it.
    assert texts(await shared.rows(session)) == texts(foreign)
    before = await shared.export(session, as_of_revision=1)
    assert [row.sequence for row in before.messages] == [1, 2, 3, 4, 5, 6]
    assert len(reply.items) == 80


async def test_lossless_claw_9_the_same_transcript_under_another_name_is_another(
    shared: House, session: t.SessionRef
) -> None:
    """What identifies is what the harness names: here the session, as there the file."""
    history = without_ids(talk(4))
    other = ref(f"{session.session_id}-again")
    for each in (session, other):
        await ask(shared, each, live=live(history, store_new=True))
    first, second = await shared.rows(session), await shared.rows(other)
    assert len(first) == len(second) == 8
    assert not {row.message.id for row in first} & {row.message.id for row in second} - {""}


async def test_lossless_claw_21_an_unchanged_session_is_not_read_again(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, talk(30))
    await quiet(shared, session)
    first = await ask(shared, session, live=live(talk(30), store_new=True), budget=EVERYTHING)
    reads = Reads(shared)
    again = await ask(shared, session, live=live(talk(30), store_new=True), budget=EVERYTHING)
    assert (again.revision, hashes(again), reads.rows) == (first.revision, hashes(first), 0)


async def test_lossless_claw_23_a_transcript_that_shrank_is_a_new_epoch_and_imports_nothing(
    shared: House, session: t.SessionRef
) -> None:
    """A shorter list alone deletes nothing; that the harness went back, it says, and that begins an
    epoch."""
    history = talk(10)
    await store(shared, session, history)
    before = await ask(shared, session, budget=EVERYTHING)
    shorter = await ask(shared, session, live=live(history[:8], store_new=True), budget=EVERYTHING)
    assert (shorter.revision, len(shorter.items)) == (before.revision, 20)
    await shared.client.record_host_change(
        session, rewind=t.RecordHostChangeRequest.Rewind(after_sequence=8)
    )
    after = await ask(
        shared,
        session,
        live=live(history[:8], store_new=True),
        budget=EVERYTHING,
        known_epoch=before.context_projection.epoch,
    )
    assert (ids_of(after.items), after.cache.epoch_cause) == (
        ids_of(history[:8]),
        Cause.EPOCH_CAUSE_REWOUND,
    )
    assert len(await shared.rows(session, include_retired=True)) == 20


async def test_lossless_claw_25_a_child_that_goes_on_copies_nothing_and_shows_the_newest_that_fit(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, talk(60))
    child = ref(f"{session.session_id}-child")
    await shared.client.bootstrap(child, continues=session)
    reply = await ask(shared, child, budget=budget(1_500))
    shown = ids_of(reply.items)
    assert shown == ids_of(talk(60))[-len(shown) :]
    assert 8 <= len(shown) < 120
    assert await shared.app.store.messages(await scope_of(shared, child)) == []


async def test_lossless_claw_27_what_was_reset_is_kept_and_no_doctor_brings_it_back(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, talk(5))
    await shared.client.reset_session(session)
    await shared.client.engines.doctor(session=session, repair=True)
    assert not (await ask(shared, session, budget=EVERYTHING)).items
    assert len(await shared.rows(session, include_retired=True)) == 10


# lossless-claw: what is shown


async def test_lossless_claw_33_the_newest_user_message_is_shown_before_a_long_tail(
    shared: House, session: t.SessionRef
) -> None:
    await assign(shared, session, "dag", freshTailTurns=2)
    loop = [m for n in range(20) for m in (calls(f"a{n}", f"c{n}"), result(f"r{n}", f"c{n}", 30))]
    await store(shared, session, [*talk(5, 60), say("asked"), *loop])
    await quiet(shared, session)
    reply = await ask(shared, session, budget=budget(700))
    assert reply.items[0].message.id == "asked"
    assert ids_of(reply.items)[-4:] == ["a18", "r18", "a19", "r19"]
    assert len(reply.items) < 41


async def test_lossless_claw_35_over_budget_the_oldest_go_and_the_order_stays(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, talk(60))
    await quiet(shared, session)
    reply = await ask(shared, session, budget=budget(1_500))
    sequences = [item.origin.sequence for item in reply.items]
    assert sequences == list(range(121 - len(sequences), 121))
    assert reply.outcome == FITS


async def test_lossless_claw_43_blank_messages_are_kept_and_a_provider_is_sent_none(
    shared: House, session: t.SessionRef
) -> None:
    """Nothing of what was said is removed from a view; what a provider would refuse its renderer
    leaves out."""
    blank = [
        assistant("", id="blank"),
        assistant([_reasoning("thinking of it")], id="thought"),
        user("", id="none"),
    ]
    await store(shared, session, [say("u1"), *blank, say("u2")])
    reply = await ask(shared, session, budget=EVERYTHING)
    assert ids_of(reply.items) == ["u1", "blank", "thought", "none", "u2"]
    assert judged_by_target(await project(shared, session, "anthropic"), "anthropic") == []


@pytest.mark.parametrize("prompted", [True, False])
async def test_lossless_claw_45_the_newest_step_stays_though_the_model_said_it(
    shared: House, session: t.SessionRef, prompted: bool
) -> None:
    """The newest step is never given up, with a prompt that comes beside it and without."""
    await store(shared, session, [*talk(30), reply_with("beginning", 30)])
    prompt = [t.Part(text=t.TextPart(text="go on"))] if prompted else []
    reply = await ask(shared, session, budget=budget(1_000), prompt=prompt)
    assert reply.items[-1].message.id == "beginning"
    assert reply.outcome == FITS


async def test_lossless_claw_47_what_a_provider_counts_bounds_what_our_count_would_let_in(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, talk(100, 100))
    await quiet(shared, session)
    before = await ask(shared, session)
    assert len(before.items) == 200
    limit = before.estimated_tokens // 2
    await shared.client.report_usage(
        session,
        overflow=t.ReportUsageRequest.Overflow(limit_tokens=limit, observed_tokens=2 * limit),
    )
    after = await ask(shared, session)
    assert after.outcome == FITS
    assert after.estimated_tokens < 0.9 * limit
    assert ids_of(after.items) == ids_of(before.items)[-len(after.items) :]


async def test_lossless_claw_49_a_key_in_a_prompt_changes_no_list_and_is_found(
    shared: House, session: t.SessionRef
) -> None:
    """No cue: the beginning must not change with each prompt. The model has a tool to look, and
    finds the fact at once."""
    await store(shared, session, [user("RELEASE_CODENAME is heron", id="fact"), *talk(60, 60)])
    await quiet(shared, session)
    size = budget(3_000)
    await shared.client.compact(session, force=True, budget=size)
    plain = await ask(shared, session, budget=size)
    prompt = [t.Part(text=t.TextPart(text="what is RELEASE_CODENAME?"))]
    asked = await ask(shared, session, budget=size, prompt=prompt)
    assert "fact" not in ids_of(asked.items)
    assert asked.system_prompt_addition == plain.system_prompt_addition
    assert hashes(asked) == hashes(plain)
    found = await shared.client.recall.search(
        session, query="RELEASE_CODENAME", at_least_revision=plain.revision
    )
    assert any("heron" in hit.snippet for hit in found.hits)


def _reasoning(text: str) -> t.Part:
    return t.Part(reasoning=t.ReasoningPart(text=text))
