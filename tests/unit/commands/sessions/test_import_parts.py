"""Import: a session that comes part by part."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from unittest.mock import patch

import pytest

from contextengine_server.commands.lifecycle.record_host_change import Rewound
from contextengine_server.commands.turn.update_model import Model
from contextengine_server.errors import LostRace, MessageConflict, SessionExists
from contextengine_server.session.staged import staged_session
from contextengine_server.wire.message import Incoming
from tests.properties.test_staged import REF, SAID, SCOPE, left, sent
from tests.unit.commands.house import TENANT, Server, assistant, incoming, request, result, user


def talk(*texts: str) -> list[Incoming]:
    return incoming(*(user(text, text) for text in texts))


async def test_the_same_again_changes_nothing_and_more_goes_on(server: Server) -> None:
    await sent(server, talk("a", "b", "c", "d"), 1)
    assert await sent(server, talk("a", "b", "c", "d"), 1) == (0, 4, 1)
    assert await sent(server, talk("a", "b", "c", "d", "e", "f"), 1) == (2, 4, 2)
    assert await server.stored() == ["a", "b", "c", "d", "e", "f"]


@pytest.mark.parametrize("texts", ["abx", "abc", "xbcd", "abcx"])
async def test_other_messages_are_refused(server: Server, texts: str) -> None:
    await sent(server, talk(*"abcd"), 1)
    kind, _ = await sent(server, talk(*texts), 1)
    assert kind is SessionExists
    assert await server.stored() == list("abcd")


async def test_an_id_that_comes_twice(server: Server) -> None:
    """Across parts as within one: the same message is a duplicate, another one a conflict."""
    assert await sent(server, talk(*"abcab"), 2) == (3, 2, 1)


async def test_a_conflict_leaves_nothing(server: Server) -> None:
    said = incoming(user("a", "1"), user("b", "2"), user("c", "1"))
    kind, text = await sent(server, said, 1)
    assert kind is MessageConflict
    assert text.startswith("message[2]: id '1'")
    assert await left(server) is None


async def test_whoever_makes_the_session_meanwhile_wins(server: Server) -> None:
    arrival = await server.sessions.import_.begin(TENANT, REF, SAID)
    await arrival.add(talk("a", "b"))
    assert await server.store.head(SCOPE) is None
    await server.context.ingest.run(TENANT, REF, talk("mine"), None)
    with pytest.raises(LostRace):
        await arrival.finish(talk("c"))
    await arrival.give_up()
    assert await server.stored() == ["mine"]


@pytest.mark.parametrize("more", [(), ("e", "f")])
async def test_background_work_meanwhile_is_no_race(server: Server, more: tuple[str, ...]) -> None:
    """What was compared with the messages holds after a commit that changes none of them: the
    flush that the first import has made a debt of comes while the second is compared."""
    await sent(server, talk(*"abcd"), 1)
    arrival = await server.sessions.import_.begin(TENANT, REF, SAID)
    await arrival.add(talk("a", "b"))
    await server.context.update_model.run(TENANT, REF, Model("other", "there", 50_000), None)
    imported = await arrival.finish(talk("c", "d", *more))
    assert (imported.stored, imported.duplicates) == (len(more), 4)
    assert await server.stored() == [*"abcd", *more]


async def more_is_said(server: Server) -> None:
    await server.context.ingest.run(TENANT, REF, talk("mine"), None)


async def some_is_taken_back(server: Server) -> None:
    await server.context.record_host_change.run(TENANT, REF, Rewound(2), request())


async def another_has_its_name(server: Server) -> None:
    """With as many messages, which are others."""
    await server.sessions.delete.run(TENANT, REF, expected_revision=None, cascade=False)
    await server.context.ingest.run(TENANT, REF, talk(*"wxyz"), None)


@pytest.mark.parametrize("change", [more_is_said, some_is_taken_back, another_has_its_name])
async def test_other_messages_meanwhile_are_a_race(
    server: Server, change: Callable[[Server], Awaitable[None]]
) -> None:
    await sent(server, talk(*"abcd"), 1)
    arrival = await server.sessions.import_.begin(TENANT, REF, SAID)
    for text in "abcd":
        await arrival.add(talk(text))
    await change(server)
    there = await server.stored()
    with pytest.raises(LostRace):
        await arrival.finish(talk("e"))
    assert await server.stored() == there


async def test_a_result_may_come_so_late_and_no_later(server: Server) -> None:
    late = incoming(
        user("look", "1"), assistant("", "2", "c1"), *(user("go on", f"g{n}") for n in range(9)),
        result("c1", "seen", "3"),
    )  # fmt: skip
    with patch.object(staged_session, "MAX_REACH", 20):
        kind, text = await sent(server, late, 1)
    assert kind.reason == "TOO_LARGE"
    assert "at most 20" in text
    assert await left(server) is None
    assert await sent(server, late, 1) == (12, 0, 1)
