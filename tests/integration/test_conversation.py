"""Conversations whose host hands over its whole list at every call: what is stored, what is
answered."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contextengine import (
    AsyncClient,
    AsyncConversation,
    Client,
    ContextEngineError,
    Conversation,
    Message,
    aio_later,
    assistant,
    later,
    name_by_content,
    text_of,
    user,
)
from contextengine.conversation import shown_verbatim
from contextengine.types import FORM_PLACEHOLDER, Budget, Item
from tests.hosts.gate import Gate, Way, gate
from tests.hosts.stage import soon
from tests.integration.harness import House, house, ref

HERE = ref("talk", agent="host")
ROOM = Budget(message_tokens=2_000)


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as made:
        yield made


@pytest.fixture
async def client(home: House) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(home.app.address, retry_for=0) as made:
        yield made


def talk(*texts: str) -> list[Message]:
    """Words of a user and of a model by turns, named by what they say."""
    said = [assistant(text) if at % 2 else user(text) for at, text in enumerate(texts)]
    name_by_content(said)
    return said


async def stored(home: House) -> list[str]:
    return [text_of(row.message) for row in await home.rows(HERE) if not row.retired_revision]


async def test_what_is_new_is_stored_once_and_what_fits_is_answered(
    home: House, client: AsyncClient
) -> None:
    conversation = AsyncConversation(client, HERE)
    for length in (1, 3, 3, 5):
        reply = await conversation.assemble(talk(*"abcde"[:length]), budget=ROOM)
        assert [text_of(one) for one in reply.messages] == [*"abcde"[:length]]
    await conversation.end_turn(talk(*"abcdef"))
    assert await stored(home) == [*"abcdef"]


async def test_a_host_that_starts_anew_hands_over_what_is_known(
    home: House, client: AsyncClient
) -> None:
    for length in (3, 5):
        await AsyncConversation(client, HERE).assemble(talk(*"abcde"[:length]), budget=ROOM)
    assert await stored(home) == [*"abcde"]


@pytest.mark.parametrize("again", [False, True], ids=["one process", "another process"])
async def test_an_edit_and_an_undo_leave_the_view(
    home: House, client: AsyncClient, again: bool
) -> None:
    conversation = AsyncConversation(client, HERE)
    for words in ("abcde", "abXde", "ab", "abcdefg"):
        conversation = AsyncConversation(client, HERE) if again else conversation
        reply = await conversation.assemble(talk(*words), budget=ROOM)
        assert [text_of(one) for one in reply.messages] == [*words]
        assert await stored(home) == [*words]


async def test_two_turns_with_the_same_words_are_two(home: House, client: AsyncClient) -> None:
    conversation = AsyncConversation(client, HERE)
    words = ["go on", "done", "go on", "done", "go on"]
    for length in (1, 3, 5):
        await conversation.assemble(talk(*words[:length]), budget=ROOM)
    assert await stored(home) == words


async def test_a_long_list_comes_in_parts(home: House, client: AsyncClient) -> None:
    words = [f"word {at}" for at in range(251)]
    await AsyncConversation(client, HERE).assemble(talk(*words), budget=ROOM)
    assert await stored(home) == words


async def test_a_list_whose_beginning_was_cut_off_goes_on_in_its_session(
    home: House, client: AsyncClient
) -> None:
    words = [f"word {at}" for at in range(9)]
    conversation = AsyncConversation(client, HERE)
    await conversation.assemble(talk(*words[:5]), budget=ROOM)
    for first, last in ((2, 7), (3, 7), (5, 9)):
        tail = talk(*words)[first:last]
        name_by_content(tail)
        reply = await conversation.assemble(tail, budget=ROOM)
        assert text_of(reply.messages[-1]) == words[last - 1]
    tail = talk(*words, "the end")[4:]
    name_by_content(tail)
    await conversation.end_turn(tail)
    assert await stored(home) == [*words, "the end"]


async def test_a_list_that_keeps_its_beginning_and_its_end_goes_on_in_its_session(
    home: House, client: AsyncClient
) -> None:
    words = ["go on", *(f"word {at}" for at in range(1, 10)), "go on"]
    conversation = AsyncConversation(client, HERE)
    await conversation.assemble(talk(*words[:7]), budget=ROOM)
    for cut in ([0, 5, 6, 7, 8], [0, 7, 8, 9, 10]):
        kept = [talk(*words)[at] for at in cut]
        name_by_content(kept)
        reply = await conversation.assemble(kept, budget=ROOM)
        assert text_of(reply.messages[-1]) == words[cut[-1]]
    assert await stored(home) == words


@pytest.mark.parametrize("again", [False, True], ids=["one process", "another process"])
async def test_what_a_list_that_is_whole_leaves_out_leaves_the_view(
    home: House, client: AsyncClient, again: bool
) -> None:
    conversation = AsyncConversation(client, HERE, whole=True)
    for words in ("abcdefg", "abcfg", "aXbcfg", "cfg", "Scfgh"):
        conversation = AsyncConversation(client, HERE, whole=True) if again else conversation
        said = [user(word) for word in words]
        name_by_content(said)
        reply = await conversation.assemble(said, budget=ROOM)
        assert [text_of(one) for one in reply.messages] == [*words]
        assert await stored(home) == [*words]


async def test_a_long_list_that_begins_otherwise_is_looked_for_by_few_calls(
    home: House, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its names hang on how it begins, so that none is stored: each would be asked for."""
    asked: list[object] = []
    change = client.record_host_change

    async def counted(*given: Any, **more: Any) -> Any:
        asked.append(more["rewind"])
        return await change(*given, **more)

    monkeypatch.setattr(client, "record_host_change", counted)
    words = [f"word {at}" for at in range(150)]
    for first in ("a", "b"):
        said = [user(word) for word in (first, *words)]
        name_by_content(said)
        conversation = AsyncConversation(client, HERE, whole=True)
        await conversation.assemble(said, budget=ROOM)
    assert await stored(home) == ["b", *words]
    assert len(asked) < 16


async def test_an_outage_is_raised_and_what_was_said_comes_with_the_next_call(
    home: House, client: AsyncClient
) -> None:
    conversation = AsyncConversation(client, HERE)
    await conversation.assemble(talk(*"abc"), budget=ROOM)
    async with AsyncClient("127.0.0.1:1", retry_for=0) as away:
        with pytest.raises(ContextEngineError):
            await AsyncConversation(away, HERE).assemble(talk(*"abcde"), budget=ROOM)
    await conversation.assemble(talk(*"abcdefg"), budget=ROOM)
    assert await stored(home) == [*"abcdefg"]


@pytest.fixture
def soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aio_later, "AGAIN", 0.05)
    monkeypatch.setattr(later, "AGAIN", 0.05)


async def told(home: House, *texts: str) -> None:
    """Waits until the service holds these and no others, though nobody asks it anything."""

    async def same() -> bool:
        return await stored(home) == [*texts]

    await soon(same)


@pytest.fixture(params=[False, True], ids=["asyncio", "threads"])
async def behind_a_gate(
    home: House, request: pytest.FixtureRequest
) -> AsyncIterator[tuple[Gate, Any]]:
    """A way to the service that can be closed, and a conversation that goes by it."""
    async with gate(home.app.address) as way:
        if request.param:
            with Client(way.address, retry_for=0, breaker=True) as blocking:
                yield way, InThreads(Conversation(blocking, HERE))
        else:
            async with AsyncClient(way.address, retry_for=0, breaker=True) as client:
                yield way, AsyncConversation(client, HERE)


class InThreads:
    """A conversation that blocks, beside a service that runs in the test's loop."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    async def assemble(self, *given: Any, **named: Any) -> Any:
        return await asyncio.to_thread(self._conversation.assemble, *given, **named)

    async def end_turn(self, *given: Any, **named: Any) -> None:
        await asyncio.to_thread(self._conversation.end_turn, *given, **named)


@pytest.mark.usefixtures("soon_again")
@pytest.mark.parametrize("gone", [Way.CLOSED, Way.HUNG, Way.DEAF], ids=lambda one: one.name)
async def test_the_end_of_a_turn_is_stored_once_the_service_is_back(
    home: House, behind_a_gate: tuple[Gate, Any], gone: Way
) -> None:
    way, conversation = behind_a_gate
    await conversation.assemble(talk(*"abc"), budget=ROOM)
    way.turn(gone)
    for length in (4, 6):
        with pytest.raises(ContextEngineError):
            await conversation.end_turn(talk(*"abcdef"[:length]), timeout=0.3)
    way.turn(Way.CLOSED)
    way.turn(Way.OPEN)
    await told(home, *"abcdef")
    await conversation.end_turn(talk(*"abcdefgh"))
    assert await stored(home) == [*"abcdefgh"]


@pytest.mark.usefixtures("soon_again")
async def test_the_end_of_a_turn_that_was_taken_back_meanwhile_is_not_stored(
    home: House, behind_a_gate: tuple[Gate, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    way, conversation = behind_a_gate
    await conversation.assemble(talk(*"abc"), budget=ROOM)
    way.turn(Way.CLOSED)
    with pytest.raises(ContextEngineError):
        await conversation.end_turn(talk(*"abcd"), timeout=0.3)
    way.turn(Way.OPEN)
    await assembled(conversation, *"aXc")
    await asyncio.sleep(0.3)
    assert await stored(home) == [*"aXc"]


def test_the_blocking_one_does_the_same(tmp_path: Path) -> None:
    from tests.acceptance.shell import serving

    with serving(tmp_path) as server, Client(server.address, retry_for=0) as client:
        conversation = Conversation(client, HERE)
        conversation.assemble(talk(*"abc"), budget=ROOM)
        conversation.assemble(talk(*"aXc"), budget=ROOM)
        conversation.end_turn(talk(*"aXcd"))
        assert client.get_status(HERE).last_message_id == talk(*"aXcd")[-1].id


def test_what_a_host_does_not_leave_alone_is_no_part_of_a_name() -> None:
    one, other = user("hello"), user(" hello ")
    assert name_by_content([one]) == name_by_content([other])
    assert name_by_content([assistant("hello")]) != [one.id]
    assert name_by_content([user("hello")], "another beginning") != [one.id]


def test_what_is_in_another_form_is_not_the_hosts_own() -> None:
    assert shown_verbatim(Item(id="a"), {"a"})
    assert not shown_verbatim(Item(id="a", form=FORM_PLACEHOLDER), {"a"})
    assert not shown_verbatim(Item(id="b"), {"a"})
    assert not shown_verbatim(Item(), {""})


@pytest.mark.parametrize("ended", [False, True], ids=["assemble", "end of a turn"])
@pytest.mark.parametrize("given_up", [False, True], ids=["lost", "given up"])
async def test_what_a_call_stored_of_which_nothing_was_heard_leaves_the_view_with_an_edit(
    home: House, given_up: bool, ended: bool
) -> None:
    async with gate(home.app.address) as way, AsyncClient(way.address, retry_for=0) as client:
        conversation = AsyncConversation(client, HERE)
        await conversation.assemble(talk(*"abc"), budget=ROOM)
        way.turn(Way.DEAF)
        call = conversation.end_turn if ended else conversation.assemble
        asked = asyncio.create_task(call(talk(*"abcd"), timeout=60 if given_up else 0.3))
        await told(home, *"abcd")
        if given_up:
            asked.cancel()
        with pytest.raises((asyncio.CancelledError, ContextEngineError)):
            await asked
        way.turn(Way.OPEN)

        async def there() -> bool:
            with contextlib.suppress(ContextEngineError):
                return bool(await client.get_status(HERE))
            return False

        await soon(there)
        await conversation.assemble(talk(*"abcX"), budget=ROOM)
        assert await stored(home) == [*"abcX"]


async def assembled(conversation: Any, *texts: str) -> None:
    """Hands a list over once the service is there again."""

    async def answered() -> bool:
        with contextlib.suppress(ContextEngineError):
            await conversation.assemble(talk(*texts), budget=ROOM, timeout=5)
            return True
        return False

    await soon(answered)
