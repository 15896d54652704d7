"""A harness's own list in Compact and ShouldCompact, as Hermes hands it over: stored first where it
says so, judged as it is where it does not, and answered as it is afterwards
(docs/semantics.md#live-lists)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, system, user
from tests.integration.assemble.asking import ids_of, prose, session, shared, talk
from tests.integration.harness import House, budget, problem, ref

__all__ = ["session", "shared"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENGINES = ["compressor", "dag", "layered", "legacy"]
SIZE = budget(4_000)
TALK = talk(40, 100)


def listed(messages: Sequence[t.Message], *, store_new: bool = True) -> t.LiveCompaction:
    return t.LiveCompaction(messages=messages, store_new=store_new)


def without_ids(messages: Sequence[t.Message]) -> list[t.Message]:
    """As Hermes keeps them: no message has an id."""
    plain = [t.Message.FromString(message.SerializeToString()) for message in messages]
    for message in plain:
        message.ClearField("id")
    return plain


async def assigned(house: House, session: t.SessionRef, engine: str) -> None:
    request = t.AssignRequest(scope=session, engine_id=engine)
    await house.engine_stub.Assign(request)


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_list_is_stored_compacted_and_answered(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    """And answered again, with what followed, it is not stored twice."""
    await assigned(shared, session, engine)
    sent = without_ids([system("Be kind."), *TALK])
    before = [message.SerializeToString() for message in sent]
    done = await shared.client.compact(
        session, live=listed(sent), return_list=True, force=True, budget=SIZE
    )
    assert [message.SerializeToString() for message in sent] == before
    assert (done.compacted, done.changed, done.ok) == (True, True, True)
    assert done.items[0].message.parts[0].text.text == "Be kind."
    assert len(done.items) < len(sent)
    assert any(item.HasField("summary") for item in done.items)
    last_user = done.items[-2].message
    assert last_user.parts[0].text.text == sent[-2].parts[0].text.text

    went_on = [item.message for item in done.items] + [user("And then?"), assistant("That.")]
    again = await shared.client.compact(
        session, live=listed(went_on), return_list=True, budget=budget(400_000)
    )
    assert (again.compacted, again.changed) == (False, False)
    assert [item.message for item in again.items[:-2]] == [item.message for item in done.items]
    assert (await shared.client.get_status(session)).message_count == len(sent) + 2


async def test_the_compressors_summary_behind_a_users_message_is_told_in_the_models_role(
    shared: House, session: t.SessionRef
) -> None:
    """And is known again by its words, in that role, where messages have no ids."""
    await assigned(shared, session, "compressor")
    sent = without_ids([system("Be kind."), *TALK])
    done = await shared.client.compact(
        session, live=listed(sent), return_list=True, force=True, budget=budget(20_000)
    )
    roles = [item.message.role for item in done.items]
    at = next(at for at, item in enumerate(done.items) if item.HasField("summary"))
    assert roles[at - 1 : at + 2] == [t.ROLE_USER, t.ROLE_ASSISTANT, t.ROLE_USER]
    went_on = without_ids([item.message for item in done.items])
    again = await shared.client.compact(
        session,
        live=listed([*went_on, user("And then?")]),
        return_list=True,
        budget=budget(400_000),
    )
    assert again.items[at].message == done.items[at].message
    assert (await shared.client.get_status(session)).message_count == len(sent) + 1


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_proposal_of_a_list_may_be_refused_and_taken(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    await assigned(shared, session, engine)
    ask: dict[str, Any] = {"live": listed(TALK), "return_list": True, "force": True, "budget": SIZE}
    for accept in (False, True):
        shown = await shared.client.compact(session, propose_only=True, **ask)
        assert (shown.compacted, shown.changed) == (False, True)
        assert (await shared.client.get_status(session)).summary_count == 0
        assert len(shown.items) < len(TALK)
        decided = await shared.client.commit_compaction(session, shown.proposal_id, accept)
        assert decided.committed is accept
    assert (await shared.client.get_status(session)).summary_count
    now = await shared.client.compact(
        session, live=listed(TALK), return_list=True, budget=budget(400_000)
    )
    # What the summary covers is in the harness's list still: it is to take the new one.
    assert now.changed
    assert [item.content_hash for item in now.items] == [item.content_hash for item in shown.items]


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_list_that_is_not_stored_is_judged_as_it_is(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    await assigned(shared, session, engine)
    small, large = listed(TALK[:2], store_new=False), listed(TALK, store_new=False)
    below = await shared.client.should_compact(session, live=small, budget=SIZE)
    over = await shared.client.should_compact(session, live=large, budget=SIZE)
    assert (below.should_compact, below.reason, below.has_content) == (
        False,
        "below threshold",
        False,
    )
    assert (over.should_compact, over.reason, over.has_content) == (True, "over threshold", True)
    assert over.tokens > over.threshold_tokens > below.tokens
    with pytest.raises(ContextEngineError) as nothing:
        await shared.client.get_status(session)
    assert problem(nothing.value)[1] == "SESSION_NOT_FOUND"
    # Nothing stands below a summary of what is not stored.
    with pytest.raises(ContextEngineError) as refused:
        await shared.client.compact(session, live=large, force=True, budget=SIZE)
    assert problem(refused.value)[1] == "SESSION_NOT_FOUND"


async def test_what_is_not_stored_stands_behind_what_is(
    shared: House, session: t.SessionRef
) -> None:
    await shared.client.compact(session, live=listed(TALK), budget=budget(400_000))
    new = user(prose("new", 40), id="new")
    done = await shared.client.compact(
        session,
        live=listed([*TALK, new], store_new=False),
        return_list=True,
        force=True,
        budget=SIZE,
    )
    assert done.compacted
    assert ids_of(done.items)[-1] == "new"
    assert (await shared.client.get_status(session)).message_count == len(TALK)


async def test_nothing_to_do_is_no_change(shared: House, session: t.SessionRef) -> None:
    few = talk(1, 5)
    done = await shared.client.compact(
        session, live=listed(few), return_list=True, force=True, budget=SIZE
    )
    assert (done.compacted, done.changed, done.reason) == (False, False, "nothing to compact")
    assert [item.id for item in done.items] == [message.id for message in few]
    bare = await shared.client.compact(session, live=listed(few), force=True, budget=SIZE)
    assert (bare.changed, len(bare.items)) == (False, 0)


async def test_an_expected_revision_is_checked_before_anything_is_stored(shared: House) -> None:
    session = ref("live expected")
    await shared.client.compact(session, live=listed(TALK[:4]), budget=SIZE)
    count = (await shared.client.get_status(session)).message_count
    with pytest.raises(ContextEngineError) as refused:
        await shared.client.compact(
            session, live=listed(TALK), expected_revision=99, force=True, budget=SIZE
        )
    assert problem(refused.value)[0] == "FAILED_PRECONDITION"
    assert (await shared.client.get_status(session)).message_count == count


async def test_a_list_may_come_with_every_form_of_the_call(
    shared: House, session: t.SessionRef
) -> None:
    ask: dict[str, Any] = {"live": listed(TALK), "return_list": True, "budget": SIZE}
    made = await shared.client.compact(session, force=True, **ask)
    assert made.changed
    undone = await shared.client.compact(session, undo_to_generation=0, **ask)
    whole: dict[str, Any] = {"live": listed(TALK), "return_list": True, "budget": budget(400_000)}
    assert undone.reason == "undone"
    same = await shared.client.compact(session, redo=True, **whole)
    assert (same.changed, len(same.items)) == (False, len(TALK))
    later = await shared.client.compact(session, no_wait=True, force=True, **ask)
    assert (later.reason, later.changed) == ("deferred to background", False)


async def test_a_list_that_ends_sooner_takes_back_what_it_lacks(
    shared: House, session: t.SessionRef
) -> None:
    """As after a host's undo: the first call with the shorter list says so, whichever it is."""
    await shared.client.should_compact(session, live=listed(TALK), budget=SIZE)
    undone = t.LiveCompaction(messages=TALK[:-4], store_new=True, takes_back=True)
    await shared.client.should_compact(session, live=undone, budget=SIZE)
    assert len(await shared.rows(session)) == len(TALK) - 4
    more = [*TALK[:-5], user("instead")]
    reply = await shared.client.assemble(
        session, live=t.LiveList(messages=more, store_new=True, takes_back=True)
    )
    assert reply.items[-1].message.parts[0].text.text == "instead"
    assert len(await shared.rows(session)) == len(TALK) - 4
