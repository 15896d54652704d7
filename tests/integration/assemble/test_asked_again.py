"""A question asked again is answered from memory, and only while nothing has changed that decides
the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from contextengine import types as t
from contextengine_server.commands.turn.reply_cache import CACHE_SHARE, ReplyCache
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.assembly import AssembleCall
from contextengine_server.session.assembly.budget import BudgetSpec
from tests.integration.harness import House, budget, ref

from .asking import ask_bytes, assign, live, quiet, say, store, talk, window

QUESTION = {"budget": window(9_000)}
Change = Callable[[House, t.SessionRef], Awaitable[object]]


async def asked(house: House, session: t.SessionRef) -> bytes:
    """The answer to the question, which came three times: the third time it can come from
    memory."""
    answers = {await ask_bytes(house, session, **QUESTION) for _ in range(3)}
    assert len(answers) == 1
    return answers.pop()


async def _rewind(house: House, session: t.SessionRef) -> object:
    change = t.RecordHostChangeRequest.Rewind(after_sequence=40)
    request = t.RecordHostChangeRequest(session=session, change_id="back", rewind=change)
    return await house.stub.RecordHostChange(request)


async def _recreate(house: House, session: t.SessionRef) -> object:
    await house.client.sessions.delete(session)
    return await store(house, session, talk(30, 60))


CHANGES: dict[str, Change] = {
    "more messages": lambda house, session: store(house, session, [say("new")]),
    "a rewind": _rewind,
    "a reset": lambda house, session: house.client.reset_session(session),
    "a compaction": lambda house, session: house.client.compact(
        session, force=True, budget=budget(2_000)
    ),
    "another model": lambda house, session: house.client.update_model(session, model="gpt-4o"),
    "what the provider refused": lambda house, session: house.stub.ReportUsage(
        t.ReportUsageRequest(
            session=session, overflow=t.ReportUsageRequest.Overflow(limit_tokens=4_000)
        )
    ),
    "another engine": lambda house, session: assign(house, session, "legacy"),
    "other options": lambda house, session: assign(house, session, freshTailTurns=3),
    "a new life": _recreate,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_whatever_changes_is_seen(house: House, change: Change) -> None:
    session = ref("s1")
    await store(house, session, talk(30, 60))
    await quiet(house, session)
    before = await asked(house, session)
    await change(house, session)
    after = await asked(house, session)
    assert after != before
    await house.restart()
    assert await asked(house, session) == after


async def test_a_key_that_names_another_session_by_now(house: House) -> None:
    for name, words in (("s1", 3), ("s2", 5)):
        await house.client.bootstrap(ref(name, key="main"))
        await store(house, ref(name), [say("only", words)])
        by_key = {await ask_bytes(house, ref("", key="main"), **QUESTION) for _ in range(3)}
        assert by_key == {await ask_bytes(house, ref(name), **QUESTION)}


async def test_a_list_that_is_stored_is_stored_once_for_each_time_it_comes(house: House) -> None:
    session, question = ref("s1"), {"live": live([say("a")], store_new=True), **QUESTION}
    first = t.AssembleResponse.FromString(await ask_bytes(house, session, **question))
    again = [
        t.AssembleResponse.FromString(await ask_bytes(house, session, **question)) for _ in range(3)
    ]
    assert [item.disposition for item in first.stored] == [t.StoredMessage.DISPOSITION_STORED]
    assert [list(one.stored) for one in again] == [[], [], []]
    assert len(await house.rows(session)) == 1


async def test_what_is_kept_is_bounded(house: House) -> None:
    await store(house, ref("s1"), talk(30, 60))
    core = house.app.core
    answers = ReplyCache(core.store, core.selection, 20_000 * CACHE_SHARE)
    call = AssembleCall("default", Ref("agent", "s1"), budget=BudgetSpec(5_000))
    address = await core.addresses.find("default", call.ref)
    assembly = await core.assembler.assemble(call, address)
    view = assembly.view
    stands_on = view.incarnation, view.revision, view.commit_id
    for number in range(50):
        question = "default", number.to_bytes(2, "big")
        for _ in range(2):
            answers.keep(question, assembly, stands_on, bytes(3_000), 0)
    found = [await answers.again(("default", number.to_bytes(2, "big"))) for number in range(50)]
    assert [one is not None for one in found] == [False] * 44 + [True] * 6
