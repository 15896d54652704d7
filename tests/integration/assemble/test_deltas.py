"""Delta replies. The chain of hashes tells what the caller holds; nothing that was sent is
remembered. See docs/semantics.md#deltas."""

from __future__ import annotations

import pytest

from contextengine import types as t
from tests.integration.harness import House, budget

from .asking import (
    ask,
    calls,
    hashes,
    ids_of,
    live,
    reply_with,
    result,
    say,
    store,
    talk,
    without_ids,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
SMALL = budget(1_200)


async def test_a_delta_is_what_follows_the_list_held(shared: House, session: t.SessionRef) -> None:
    first = await ask(shared, session, ingest=talk(3))
    step = [say("u9"), calls("a9", "c1"), result("r9", "c1")]
    reply = await ask(shared, session, ingest=step, known_context_hash=first.context_hash)
    assert ids_of(reply.items) == ["u9", "a9", "r9"]
    cache = reply.cache
    assert (cache.delta, cache.reused_count, cache.total_count, cache.first_changed_index) == (
        True,
        6,
        9,
        6,
    )
    assert cache.reused_tokens == first.estimated_tokens
    whole = await ask(shared, session)
    assert whole.context_hash == reply.context_hash
    assert hashes(whole) == hashes(first) + hashes(reply)
    # Estimates are of the whole list.
    assert reply.estimated_tokens == whole.estimated_tokens


async def test_nothing_new_is_an_empty_delta(shared: House, session: t.SessionRef) -> None:
    first = await ask(shared, session, ingest=talk(3))
    again = await ask(shared, session, known_context_hash=first.context_hash)
    assert (len(again.items), again.cache.delta, again.cache.reused_count) == (0, True, 6)
    assert again.context_hash == first.context_hash
    nothing = t.SessionRef(agent_id="agent", session_id="none of these")
    empty = await ask(shared, nothing)
    assert (await ask(shared, nothing, known_context_hash=empty.context_hash)).cache.delta


async def test_every_beginning_of_the_list_is_known(shared: House, session: t.SessionRef) -> None:
    held = []
    for message in talk(6):
        held.append((await ask(shared, session, ingest=[message])).context_hash)
    shared.forget()
    for count, known in enumerate(held, 1):
        reply = await ask(shared, session, known_context_hash=known)
        assert (reply.cache.reused_count, len(reply.items)) == (count, 12 - count)


async def test_an_unknown_hash_gets_the_full_list(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, talk(3))
    for known in (b"never sent", b"\x00" * 16, b"x" * 5_000):
        reply = await ask(shared, session, known_context_hash=known)
        assert (len(reply.items), reply.cache.delta, reply.cache.reused_count) == (6, False, 0)
        assert reply.cache.total_count == 6
    assert (await ask(shared, session)).cache.delta is False


async def test_a_list_that_the_new_one_does_not_begin_with(
    shared: House, session: t.SessionRef
) -> None:
    first = await ask(shared, session, ingest=talk(3))
    await shared.client.record_host_change(
        session, rewind=t.RecordHostChangeRequest.Rewind(after_sequence=4)
    )
    shorter = await ask(shared, session, known_context_hash=first.context_hash)
    assert (shorter.cache.delta, ids_of(shorter.items)) == (False, ["m1", "m2", "m3", "m4"])
    edited = await ask(shared, session, ingest=[say("edit")], known_context_hash=first.context_hash)
    assert (edited.cache.delta, len(edited.items)) == (False, 5)
    after = await ask(
        shared, session, ingest=[say("more")], known_context_hash=shorter.context_hash
    )
    assert ids_of(after.items) == ["edit", "more"]


@pytest.mark.parametrize("resets", [False, True])
async def test_a_message_said_again_is_not_the_one_taken_back(
    shared: House, session: t.SessionRef, resets: bool
) -> None:
    """A turn that is made anew and a session that begins anew say the same, under other ids."""
    handle = shared.client.session(agent_id=session.agent_id, session_id=session.session_id)
    before = [] if resets else talk(1)
    await handle.assemble(ingest=[*before, say("said")])
    await handle.after_turn([reply_with("a")])
    if resets:
        await handle.reset()
    else:
        await handle.record_rewind(len(before))
    again = say("said")
    again.id = "again"
    assembly = await handle.assemble(ingest=[again])
    whole = await ask(shared, session)
    assert [*assembly.items] == [*whole.items]
    assert assembly.items[-1].id == "again"
    assert assembly.response.context_hash == whole.context_hash
    more = await handle.assemble(ingest=[reply_with("b")])
    assert (more.response.cache.delta, ids_of(more.response.items)) == (True, ["b"])


async def test_the_beginning_is_reused_across_epochs(shared: House, session: t.SessionRef) -> None:
    """A hash names a list, whatever epoch, model or budget it was made for."""
    first = await ask(shared, session, ingest=talk(3))
    for fields in ({"model": "gpt-4o"}, {"budget": budget(50_000)}, {"budget": budget(9_000)}):
        reply = await ask(shared, session, known_context_hash=first.context_hash, **fields)
        assert (reply.cache.delta, len(reply.items)) == (True, 0)


@pytest.mark.parametrize("restarts", [False, True])
async def test_lists_put_together_are_the_full_replies(
    shared: House, session: t.SessionRef, restarts: bool
) -> None:
    """Through a cut that moves on, a compaction, a rewind, a late result and restarts."""
    handle = shared.client.session(agent_id=session.agent_id, session_id=session.session_id)
    deltas = 0
    for turn, message in enumerate(talk(40)):
        assembly = await handle.assemble(ingest=[message], budget=SMALL)
        if turn == 30:
            await shared.client.compact(session, force=True, budget=budget(700))
        if turn == 50:
            await handle.record_rewind(48)
        if turn == 60:
            await handle.ingest_batch([calls("ax", "cx"), say("ux")])
        if turn == 64:
            await handle.ingest(result("rx", "cx"))
        while True:
            full = await ask(shared, session, budget=SMALL)
            assembly = await handle.assemble(budget=SMALL)
            if (
                full.revision == assembly.response.revision
            ):  # no compaction was committed in between
                break
        assert [i.SerializeToString(deterministic=True) for i in assembly.items] == [
            i.SerializeToString(deterministic=True) for i in full.items
        ]
        assert assembly.response.context_hash == full.context_hash
        deltas += assembly.response.cache.delta
        if restarts and turn % 20 == 10:
            await shared.restart()
            handle = _moved(shared, handle, session)
    assert deltas > 70


def _moved(house: House, handle, session: t.SessionRef):
    """The handle at the server's new address, with what it holds."""
    moved = house.client.session(agent_id=session.agent_id, session_id=session.session_id)
    moved._keeper.holder = handle._keeper.holder
    return moved


async def test_deltas_of_a_list_that_is_not_stored(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, talk(3))
    first = await ask(shared, session, live=live([*talk(3), say("u8")]))
    known = first.context_hash
    more = await ask(
        shared,
        session,
        live=live([*talk(3), say("u8"), reply_with("a8")]),
        known_context_hash=known,
    )
    assert (ids_of(more.items), more.cache.reused_count) == (["a8"], 7)
    other = await ask(shared, session, live=live([*talk(3), say("u7")]), known_context_hash=known)
    assert (other.cache.delta, len(other.items)) == (False, 7)
    stored = await ask(
        shared, session, ingest=[say("u8"), reply_with("a8")], known_context_hash=known
    )
    assert (ids_of(stored.items), stored.cache.reused_count) == (["a8"], 7)


async def test_equal_contents_have_equal_hashes(shared: House, session: t.SessionRef) -> None:
    """So a list without ids is known by the hash of one with ids."""
    first = await ask(shared, session, ingest=talk(2))
    other = t.SessionRef(agent_id="agent", session_id="without ids")
    reply = await ask(
        shared, other, ingest=without_ids(talk(2)), known_context_hash=first.context_hash
    )
    assert (reply.cache.delta, len(reply.items)) == (True, 0)


async def test_the_addition_comes_whole_with_every_delta(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, talk(30, 100))
    await shared.client.compact(session, force=True, budget=budget(1_500))
    first = await ask(shared, session, budget=budget(4_000))
    assert first.system_prompt_addition
    again = await ask(shared, session, budget=budget(4_000), known_context_hash=first.context_hash)
    assert len(again.items) == 0
    assert again.system_prompt_addition == first.system_prompt_addition
