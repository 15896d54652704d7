"""What rows do not say by themselves is shown the same by whoever reads them anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.commands.subagents.prepare_subagent_spawn import SpawnRequest
from contextengine_server.session.address import Ref
from tests.properties.lives import ENGINES
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import (
    S1,
    TENANT,
    Server,
    assistant,
    incoming,
    long,
    result,
    texts_of,
    user,
)

pytestmark = pytest.mark.parametrize("engine", sorted(ENGINES))

Messages = Sequence[pb.Message]


async def ingest(server: Server, *messages: pb.Message) -> None:
    await server.context.ingest.run(TENANT, S1, incoming(*messages), None)


async def begun(serve: Serve, engine: str, *first: pb.Message) -> Server:
    """A session whose first call was given up, and summarized with long talk behind it."""
    server = await serve(**options(engine))
    talk = [make(long(f"talk{at}", 150)) for at in range(8) for make in (user, assistant)]
    await ingest(server, *first, user("go"), assistant("", "", "c1"), *talk)
    await server.compact(1_500)
    return server


def options(engine: str) -> dict[str, object]:
    more = {f"engine.{engine}.{name}": value for name, value in ENGINES[engine].items()}
    return {"engine.default": engine, **more}


async def held_the_same(
    server: Server, serve: Serve, engine: str, text: str, ref: Ref = S1
) -> None:
    """A server that reads the session anew shows what this one shows, `text` among it."""
    seen = False
    for tokens in (60, 150, 400, 900, 2_000, 20_000):
        cold = await serve(**options(engine))
        warm = await server.assemble(tokens, ref=ref)
        read = await cold.assemble(tokens, ref=ref)
        assert texts_of(warm) == texts_of(read), tokens
        assert (warm.epoch, warm.tokens, warm.outcome) == (read.epoch, read.tokens, read.outcome)
        assert warm.joined.context_hash == read.joined.context_hash
        seen = seen or any(text in one for one in texts_of(warm))
    assert seen


async def test_a_late_note_beside_a_pinned_pending_call(serve: Serve, engine: str) -> None:
    server = await begun(serve, engine)
    pending = assistant("now", "", "c2")
    pending.labels["pinned"] = "true"
    await ingest(server, pending)
    await ingest(server, result("c1", "too late"))
    await held_the_same(server, serve, engine, "too late")
    await ingest(server, *(user(long(f"more{at}", 150)) for at in range(8)))
    await held_the_same(server, serve, engine, "too late")


@pytest.mark.parametrize("orphan", ["c1", "nobody"])
async def test_an_orphan_and_a_late_result_in_one_message(
    serve: Serve, engine: str, orphan: str
) -> None:
    server = await begun(serve, engine)
    both = result("c1", "too late")
    both.parts.extend(result(orphan, "an orphan").parts)
    await ingest(server, both)
    await held_the_same(server, serve, engine, "too late")
    await ingest(server, *(user(long(f"more{at}", 150)) for at in range(4)))
    await held_the_same(server, serve, engine, "too late")
    assert not any("an orphan" in one for one in await server.shown(20_000))


async def test_results_for_two_calls_of_one_id(serve: Serve, engine: str) -> None:
    """In one message: each answers another call, the newer one first."""
    server = await serve(**options(engine))
    for at in range(2):
        await ingest(server, assistant(f"call{at}", "", "c"), user(long(f"talk{at}", 200)))
    both = result("c", "for the newer")
    both.parts.extend(result("c", "for the older").parts)
    await ingest(server, both, *(user(long(f"more{at}", 150)) for at in range(8)))
    await held_the_same(server, serve, engine, "for the older")


async def test_a_leading_developers_call_and_its_result(serve: Serve, engine: str) -> None:
    leads = pb.Message(role=pb.ROLE_DEVELOPER)
    leads.parts.extend(assistant("look first", "", "c0").parts)
    server = await begun(serve, engine, leads, result("c0", "what is there"))
    await held_the_same(server, serve, engine, "what is there")
    assert "what is there" in await server.shown(400)


async def test_a_late_result_for_a_leading_call(serve: Serve, engine: str) -> None:
    leads = pb.Message(role=pb.ROLE_DEVELOPER)
    leads.parts.extend(assistant("look first", "", "c0").parts)
    server = await begun(serve, engine, leads)
    await held_the_same(server, serve, engine, "No result was recorded")
    await ingest(server, result("c0", "what is there"))
    await held_the_same(server, serve, engine, "what is there")
    await ingest(server, user("and?"))
    await held_the_same(server, serve, engine, "what is there")


@pytest.mark.parametrize("summarized", [False, True])
async def test_a_fork_goes_on_by_itself(serve: Serve, engine: str, summarized: bool) -> None:
    """The child's view is made of the parent's in memory: what comes late to the one, and moves
    what stands behind it, leaves the other as it was."""
    server = await serve(**options(engine))
    talk = [make(long(f"talk{at}", 150)) for at in range(8) for make in (user, assistant)]
    await ingest(server, user("go"), assistant("", "", "c1"), *talk)
    if summarized:
        await server.compact(1_500)
        await ingest(server, assistant("", "", "c1"), user("on"))
    await server.assemble(20_000)
    child = Ref("agent", "child")
    await server.context.prepare_subagent_spawn.run(TENANT, SpawnRequest(S1, child, fork=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server.store, "messages", unread)
        before = await server.assemble(20_000, ref=child)
    await ingest(server, result("c1", long("too late", 150)), user("and on"))
    await held_the_same(server, serve, engine, "too late")
    assert texts_of(await server.assemble(20_000, ref=child)) == texts_of(before)
    await held_the_same(server, serve, engine, "talk7", child)
    answer = incoming(result("c1", "the child's own"), user("child"))
    await server.context.ingest.run(TENANT, child, answer, None)
    await held_the_same(server, serve, engine, "the child's own", child)
    await held_the_same(server, serve, engine, "too late")


async def unread(*args: object, **named: object) -> NoReturn:
    raise AssertionError("the child's rows were read: its view is the parent's in memory")
