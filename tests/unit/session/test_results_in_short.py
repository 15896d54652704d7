"""A list that comes back with results in short that came together in one message, as Claude Code
sends them."""

from __future__ import annotations

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.wire import bounded
from tests.unit.commands.house import (
    S1,
    TENANT,
    Server,
    assistant,
    incoming,
    long,
    result,
    user,
)
from tests.unit.session.test_alignment import shown_without_ids


@pytest.mark.parametrize("said", ["stop that", long("stop", 3_000)], ids=["whole", "cut"])
async def test_results_that_came_back_in_short_beside_what_is_said_are_the_stored_ones(
    server: Server, said: str
) -> None:
    carried = pb.Message(role=pb.ROLE_USER)
    for call in ("c0", "c1"):
        carried.parts.extend(result(call, long(call, 3_000)).parts)
    carried.parts.add().text.text = said
    talk = incoming(user("first"), assistant("", "", "c0", "c1"), carried)
    await server.context.ingest.run(TENANT, S1, talk, None)
    sent = await shown_without_ids(server, 1_000)
    [short] = [one for one in sent if "expand sequence 3 " in str(one)]
    assert len(str(short)) < 10_000
    for more in (assistant("done"), user("and that")):
        sent.append(more)
        await server.assemble(1_000, live=incoming(*sent), store_new=True)
    assert (await server.stored())[-2:] == ["done", "and that"]
    assert len(await server.stored()) == 5


async def test_a_harness_may_set_results_apart_that_came_together_in_short(server: Server) -> None:
    """As OpenAI's form wants them, and leave one out."""
    said = long("stop", 3_000)
    carried = pb.Message(role=pb.ROLE_USER)
    for call in ("c0", "c1"):
        carried.parts.extend(result(call, call).parts)
    carried.parts.add().text.text = said
    talk = incoming(user("first"), assistant("", "", "c0", "c1"), carried)
    await server.context.ingest.run(TENANT, S1, talk, None)
    sent = await shown_without_ids(server, 1_000)
    [short] = [one for one in sent if "expand sequence 3 " in str(one)]
    first, second, told = short.parts
    apart = [pb.Message(role=pb.ROLE_TOOL, parts=[one]) for one in (first, second)]
    apart.append(pb.Message(role=pb.ROLE_USER, parts=[told]))
    less = pb.Message(role=pb.ROLE_USER, parts=[first, told])
    for other in (apart, [less]):
        at = sent.index(short)
        live = incoming(*sent[:at], *other, *sent[at + 1 :], assistant("done"))
        await server.assemble(1_000, live=live)


async def test_what_a_result_quotes_takes_no_message_for_another(server: Server) -> None:
    """Claude Code sets the same notice behind many results, and a result may quote a marker."""
    notice, stored = "<system-reminder>\nThe list is empty.\n</system-reminder>", []
    for at, words in enumerate((long("first", 3_000), f"see {bounded.left_out_marker(9, 90, 3)}")):
        carried = pb.Message(role=pb.ROLE_USER)
        carried.parts.extend(result(f"c{at}", words).parts)
        carried.parts.add().text.text = notice
        stored += [assistant("", "", f"c{at}"), carried, assistant(f"done {at}")]
    await server.context.ingest.run(TENANT, S1, incoming(user("begin"), *stored), None)
    sent = [pb.Message.FromString(one.SerializeToString()) for one in (user("begin"), *stored)]
    await server.assemble(live=incoming(*sent, user("next")), store_new=True)
    assert len(await server.stored()) == 8
