"""A list that ends where the conversation does takes back what the session has behind its end
(docs/semantics.md#live-lists)."""

from __future__ import annotations

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.session.assembly.assembly import Assembly
from contextengine_server.wire.slots import item_of
from tests.unit.commands.house import (
    S1,
    TENANT,
    Server,
    assistant,
    incoming,
    result,
    scope,
    texts_of,
    user,
)

TALK = [
    user("u1"),
    assistant("", "", "c1"),
    result("c1", "r1"),
    assistant("a1"),
    user("u2"),
    assistant("a2"),
]


def named(messages: list[pb.Message]) -> list[pb.Message]:
    """The same messages with ids."""
    copies = [pb.Message.FromString(message.SerializeToString()) for message in messages]
    for at, copy in enumerate(copies):
        copy.id = f"m{at}"
    return copies


async def told(server: Server, *messages: pb.Message, takes_back: bool = True) -> Assembly:
    """Sends a whole list."""
    return await server.assemble(
        live=incoming(*messages), store_new=True, takes_back=takes_back, whole=True
    )


@pytest.mark.parametrize("engine", ["dag", "legacy"])
@pytest.mark.parametrize("ids", [True, False])
async def test_what_was_undone_leaves_the_view(server: Server, engine: str, ids: bool) -> None:
    talk = named(TALK) if ids else TALK
    await told(server, *talk)
    await server.engines.assign.run(scope(), engine, {}, clear=False)
    before = await server.head()
    again = await told(server, *talk)
    assert (await server.head()).revision == before.revision
    assert texts_of(again) == await server.stored() == ["u1", "", "r1", "a1", "u2", "a2"]
    shown = await told(server, *talk[:4], user("instead"))
    assert texts_of(shown) == ["u1", "", "r1", "a1", "instead"]
    assert (await server.head()).message_count == 5
    assert texts_of(await server.assemble()) == texts_of(shown)
    server.core.sessions.cache.drop(scope())
    assert texts_of(await server.assemble()) == texts_of(shown)


async def test_an_undo_without_a_word_more_holds(server: Server) -> None:
    await told(server, *TALK)
    assert texts_of(await told(server, *TALK[:4])) == ["u1", "", "r1", "a1"]
    assert texts_of(await server.assemble()) == ["u1", "", "r1", "a1"]


async def test_else_what_is_left_out_is_not_deleted(server: Server) -> None:
    await told(server, *TALK)
    shown = await told(server, *TALK[:4], user("more"), takes_back=False)
    assert texts_of(shown) == ["u1", "", "r1", "a1", "u2", "a2", "more"]


async def test_an_empty_list_takes_nothing_back(server: Server) -> None:
    await told(server, *TALK)
    await told(server)
    assert len(await server.stored()) == len(TALK)
    assert (await server.head()).message_count == len(TALK)


async def test_a_stored_result_that_no_call_has_is_no_reason(server: Server) -> None:
    """It is never shown, so that a host may have left it out."""
    await told(server, *TALK)
    await server.context.ingest.run(TENANT, S1, incoming(result("elsewhere", "lost")), None)
    before = await server.head()
    await told(server, *TALK)
    assert (await server.head()).revision == before.revision


async def test_what_a_summary_covers_stays(server: Server) -> None:
    talk = [user("begin"), *(assistant(f"said {at} " + "word " * 60) for at in range(40))]
    await told(server, *talk)
    await server.compact()
    made = await server.assemble()
    assert made.view.summaries
    covered = max(summary.last_sequence for summary in made.view.summaries)
    shown = await told(server, *talk[: covered - 4])
    assert [one.id for one in shown.view.summaries] == [one.id for one in made.view.summaries]
    assert [entry.sequence for entry in shown.view.entries()][-1] == covered


@pytest.mark.parametrize("takes_back", [False, True])
async def test_what_follows_a_summary_in_the_list_is_what_follows_it_here(
    server: Server, takes_back: bool
) -> None:
    """However short the list is, and though all of it was said before as well."""
    same = [user("go on"), assistant("done " + "word " * 60)]
    talk = [user("begin"), *(same * 20)]
    await told(server, *talk)
    await server.compact()
    made = await server.assemble(whole=True)
    covered = max(summary.last_sequence for summary in made.view.summaries)
    standing = [item_of(one.slot.frame).message for one in made.view.summaries]
    kept = talk[covered:]
    revision = (await server.head()).revision
    for listed in ([*standing, *kept], [*standing, *kept, user("go on")]):
        shown = await told(server, *listed, takes_back=takes_back)
        assert [one.id for one in shown.view.summaries] == [one.id for one in made.view.summaries]
    assert (await server.head()).revision == revision + 1
    assert len(await server.stored()) == len(talk) + 1
