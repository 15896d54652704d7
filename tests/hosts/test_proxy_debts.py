"""Whenever the service goes away, what a client of the proxy has said is stored once it is back,
though the client never asks again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import httpx2
import pytest

from contextengine import ContextEngineError, batching, text_of
from contextengine import name_by_content as name
from contextengine_proxy import debts, talks
from contextengine_proxy.application import Proxy
from contextengine_proxy.debts import Debt, Debts
from contextengine_proxy.ledger import Ledger, Taken, folder_of
from tests.hosts.gate import Gate, Way, gate
from tests.hosts.sdk_hosts import Agent, AnthropicAgent, ChatAgent, ResponsesAgent
from tests.hosts.stage import Stage, apart, proxied, soon, staged
from tests.integration.harness import ref

EACH = pytest.mark.parametrize("kind", [ChatAgent, ResponsesAgent, AnthropicAgent])
pytestmark = pytest.mark.timeout(180)


@pytest.fixture(autouse=True)
def soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debts, "AGAIN_S", 0.05)


@asynccontextmanager
async def behind_a_gate(path: Path) -> AsyncIterator[tuple[Stage, Gate, Proxy, str]]:
    """A proxy whose way to the service a test can close."""
    async with (
        staged(path, window=60_000) as stage,
        gate(stage.home.app.address) as way,
        proxied(stage.home, stage.there, address=way.address, patience=0.5) as (proxy, base),
    ):
        yield stage, way, proxy, base


async def texts(stage: Stage) -> list[str]:
    """The user's words in the session, in order."""
    rows = await stage.home.rows(ref("talk", agent="proxy"))
    return [text_of(row.message) for row in rows if not row.retired_revision]


@EACH
@pytest.mark.parametrize("gone", [Way.CLOSED, Way.HUNG, Way.DEAF], ids=lambda one: one.name)
async def test_what_is_said_last_while_the_service_is_away(
    kind: type[Agent], gone: Way, tmp_path: Path
) -> None:
    """Before it is written, and after it is written where nobody hears of it."""
    async with behind_a_gate(tmp_path) as (stage, way, _, base):
        agent = kind(base, stream=gone is Way.CLOSED, session="talk")
        await agent.say("Alpha")
        await stage.settled("talk", name(agent.read()))
        way.turn(gone)
        await agent.say("Bravo")
        await agent.say("Charlie")
        way.turn(Way.CLOSED)
        way.turn(Way.OPEN)
        await stage.settled("talk", name(agent.read()))
        await agent.close()


@EACH
@pytest.mark.parametrize("gone", [Way.CLOSED, Way.DEAF], ids=lambda one: one.name)
async def test_a_reply_that_comes_once_the_service_has_gone(
    kind: type[Agent], gone: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talks, "RECORD_S", 0.5)
    async with behind_a_gate(tmp_path) as (stage, way, _, base):
        agent = kind(base, stream=True, session="talk")
        await agent.say("Alpha")
        await stage.settled("talk", name(agent.read()))
        stage.upstream.hold = asyncio.Event()
        saying = asyncio.ensure_future(agent.say("Bravo"))
        asked = len(name(agent.read()))
        await soon(lambda: _has(stage, asked))
        way.turn(gone)
        stage.upstream.hold.set()
        await saying
        way.turn(Way.CLOSED)
        way.turn(Way.OPEN)
        await stage.settled("talk", name(agent.read()))
        await agent.close()


async def _has(stage: Stage, count: int) -> bool:
    return len(await stage.stored("talk")) == count


async def test_a_service_that_goes_away_again_while_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "MOST", 1)
    monkeypatch.setattr(talks, "RECORD_S", 0.5)
    async with behind_a_gate(tmp_path) as (stage, way, _, base):
        agent = ChatAgent(base, stream=True, session="talk")
        way.turn(Way.CLOSED)
        for words in ("Alpha", "Bravo", "Charlie"):
            await agent.say(words)
        told = name(agent.read())
        for count in range(1, len(told)):
            way.turn(Way.OPEN)

            async def some(count: int = count) -> bool:
                return "talk" in await stage.sessions() and len(await stage.stored("talk")) >= count

            await soon(some)
            way.turn((Way.CLOSED, Way.DEAF)[count % 2])
            held = await stage.stored("talk")
            assert held == told[: len(held)]
            way.turn(Way.CLOSED)
        way.turn(Way.OPEN)
        await stage.settled("talk", told)
        await agent.close()


async def test_a_proxy_that_stops_stores_what_it_owes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debts, "AGAIN_S", 600)
    async with staged(tmp_path, window=60_000) as stage, gate(stage.home.app.address) as way:
        async with proxied(stage.home, stage.there, address=way.address) as (_, base):
            agent = ChatAgent(base, stream=True, session="talk")
            await agent.say("Alpha")
            way.turn(Way.CLOSED)
            await agent.say("Bravo")
            await agent.close()
            way.turn(Way.OPEN)
        assert await stage.stored("talk") == name(agent.read())


async def test_a_proxy_that_stops_while_the_service_is_away_says_what_it_owes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debts, "LAST_S", 0.5)
    monkeypatch.setattr(talks, "RECORD_S", 0.5)
    async with staged(tmp_path, window=60_000) as stage, gate(stage.home.app.address) as way:
        async with proxied(stage.home, stage.there, address=way.address) as (_, base):
            agent = ChatAgent(base, stream=True, session="talk")
            way.turn(Way.HUNG)
            await agent.say("Alpha")
        assert "session talk: what is new comes with the client's next request" in caplog.text
        way.turn(Way.OPEN)
        async with proxied(stage.home, stage.there, address=way.address) as (_, base):
            again = ChatAgent(base, stream=True, session="talk")
            again.messages = list(agent.messages)
            await again.say("Bravo")
            await stage.settled("talk", name(again.read()))
            await again.close()
        await agent.close()


async def test_what_the_client_took_back_meanwhile_is_not_owed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with behind_a_gate(tmp_path) as (stage, way, _, base):
        agent = ChatAgent(base, stream=False, session="talk")
        await agent.say("Alpha")
        await stage.settled("talk", name(agent.read()))
        before = list(agent.messages)
        way.turn(Way.CLOSED)
        await agent.say("Bravo")
        agent.messages = before
        monkeypatch.setattr(debts, "AGAIN_S", 0.5)
        way.turn(Way.OPEN)

        async def back() -> bool:
            agent.messages = list(before)
            await agent.say("Charlie")
            return "Charlie" in await texts(stage)

        await soon(back)
        await asyncio.sleep(1)
        await stage.settled("talk", name(agent.read()))
        await agent.close()


@pytest.mark.parametrize("path", ["chat/completions", "responses", "messages"])
async def test_a_client_that_leaves_with_the_last_event(path: str, tmp_path: Path) -> None:
    """It does not wait for the end of what carries the events."""
    async with staged(tmp_path) as stage, httpx2.AsyncClient() as client:
        stage.upstream.lingers = asyncio.Event()
        kept = "input" if path == "responses" else "messages"
        talk = [{"role": "assistant", "content": "Hi"}, {"role": "user", "content": "Alpha"}]
        body = {"model": "m", "stream": True, kept: talk}
        headers = {"x-contextengine-session": "talk"}
        url = f"{stage.base}/v1/{path}"
        last = {"chat/completions": "[DONE]", "responses": "response.completed"}
        async with client.stream("POST", url, json=body, headers=headers) as reply:
            async for line in reply.aiter_lines():
                if line.startswith("data:") and last.get(path, "message_stop") in line:
                    break
        await soon(lambda: _has(stage, 3))
        stage.upstream.lingers.set()


async def test_a_proxy_that_is_killed_while_the_service_is_away_stores_what_it_owes_later(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    async with staged(tmp_path, window=60_000) as stage, gate(stage.home.app.address) as way:
        async with apart(stage.there, way.address, state) as (proxy, base):
            agent = ChatAgent(base, stream=True, session="talk")
            await agent.say("Alpha")
            await stage.settled("talk", name(agent.read()))
            way.turn(Way.CLOSED)
            await agent.say("Bravo")
            told = name(agent.read())
            await soon(lambda: _kept(state, told))
            await agent.close()
            proxy.kill()
            await proxy.wait()
        (file,) = files_in(state)
        assert file.stat().st_mode & 0o077 == 0, "for its user alone"
        way.turn(Way.OPEN)
        async with apart(stage.there, way.address, state):
            await stage.settled("talk", told)
            await soon(lambda: _paid(files_in(state), 0))


def files_in(state: Path) -> list[Path]:
    """The debts that are kept."""
    return list(state.glob("*/*.debt"))


async def _kept(state: Path, told: list[str]) -> bool:
    files = files_in(state)
    return bool(files) and told[-1].encode() in files[0].read_bytes()


@pytest.mark.parametrize("anew", [False, True], ids=["behind", "anew"])
async def test_what_a_proxy_before_left_takes_nothing_back(
    anew: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its client may have gone on elsewhere since, or begun anew: then no message of the session
    has an id."""
    async with staged(tmp_path, window=60_000) as stage:
        agent = ChatAgent(stage.base, stream=False, session="talk")
        await agent.say("Alpha")
        before = list(agent.messages)
        await agent.say("Bravo")
        left = Debt([*agent.read()], True, 10)
        agent.messages = before[:1] if anew else before
        await agent.say("Charlie")
        told = name(agent.read())

        async def holds() -> bool:
            rows = await stage.home.rows(ref("talk", agent="proxy"))
            return name([row.message for row in rows]) == told

        await soon(holds)
        state = tmp_path / "state"
        book = Ledger(folder_of(state, stage.home.app.address, "proxy", ""))
        book.write("talk", replace(left, messages=_named(left.messages)))
        with pytest.raises(Taken):
            Ledger(folder_of(state, stage.home.app.address, "proxy", ""))
        book.close()
        async with proxied(stage.home, stage.there, state=state):
            await soon(lambda: _paid(files_in(state), 0))
        assert "others went on in it" in caplog.text
        assert await holds()
        await agent.close()


def _named(messages: Any) -> list[Any]:
    name(messages)
    return list(messages)


def test_a_file_that_is_no_debt_is_left_where_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    book = Ledger(tmp_path)
    for at, text in enumerate([b"", b"{}", b'{"session": "s", "ended": true, "size": 1}\n\xff']):
        (tmp_path / f"{at}.debt").write_bytes(text)
    book.write("talk", Debt([], True, 7))
    ((session, debt),) = book.read()
    assert (session, debt.ended, debt.size, debt.inherited) == ("talk", True, 7, True)
    assert caplog.text.count("is no debt of a proxy") == 3
    book.strike("talk")
    book.strike("talk")
    assert not list(book.read())
    book.close()


async def test_a_disk_that_takes_nothing_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    class Full:
        def read(self) -> Any:
            return iter([])

        def write(self, session: str, debt: Debt) -> None:
            raise OSError("no space is left")

        strike = write

        def close(self) -> None:
            pass

    async def pay(session: str, debt: Debt) -> None:
        paid.append(session)

    paid: list[str] = []
    owed = Debts(pay, Full())  # type: ignore[arg-type]
    owed.owe("a", Debt([], False, 10))
    await soon(lambda: _paid(paid, 1))
    assert "no space is left" in caplog.text
    await owed.close()


async def test_debts_are_bounded_and_what_is_never_taken_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def pay(session: str, debt: Debt) -> None:
        paid.append(session)
        codes = {"b": grpc.StatusCode.INVALID_ARGUMENT, "c": grpc.StatusCode.UNAVAILABLE}
        if session in codes and paid.count(session) == 1:
            raise ContextEngineError("no", code=codes[session])

    monkeypatch.setattr(debts, "MOST_BYTES", 30)
    paid: list[str] = []
    owed: Any = Debts(pay)
    for session in "abcd":
        owed.owe(session, Debt([], False, 10))
    await soon(lambda: _paid(paid, 4))
    assert paid == ["b", "c", "c", "d"]
    await owed.close()


async def test_a_session_that_is_refused_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What gRPC itself does not send is dropped; what may be taken later rests longer each time."""
    refusals = {
        "huge": ContextEngineError(
            "Sent message larger than max (9 vs. 8)", code=grpc.StatusCode.RESOURCE_EXHAUSTED
        ),
        "full": ContextEngineError("no room", code=grpc.StatusCode.RESOURCE_EXHAUSTED),
        "slow": TimeoutError(),
    }

    async def pay(session: str, debt: Debt) -> None:
        paid.append(session)
        if session in refusals:
            raise refusals[session]

    monkeypatch.setattr(debts, "LAST_S", 0.0)
    paid: list[str] = []
    owed: Any = Debts(pay)
    for session in (*refusals, "other"):
        owed.owe(session, Debt([], False, 10))
    await asyncio.sleep(1.2)
    assert paid[:4] == ["huge", "full", "slow", "other"]
    assert paid.count("huge") == paid.count("other") == 1
    assert 3 <= paid.count("full") <= 6, "at 0.05, 0.1, 0.2 … seconds"
    newer = Debt([], False, 10)
    del refusals["full"]
    owed.owe("full", newer)
    await soon(lambda: _settled(owed, "full", newer))
    await owed.close()


async def _settled(owed: Debts, session: str, debt: Debt) -> bool:
    return not owed.stands(session, debt)


async def test_what_one_session_is_refused_is_not_an_outage(tmp_path: Path) -> None:
    """A list that is too large to be sent is stored nowhere; what others say is, and no one is told
    that the service is away."""
    async with behind_a_gate(tmp_path) as (stage, way, _, base):
        other = ChatAgent(base, stream=False, session="talk")
        way.turn(Way.CLOSED)
        async with httpx2.AsyncClient(timeout=60) as client:
            # It is sent as its text and as the client's own JSON.
            body = {"model": "m", "messages": [{"role": "user", "content": "x" * 35_000_000}]}
            told = {"x-contextengine-session": "huge"}
            url = f"{base}/v1/chat/completions"
            assert (await client.post(url, json=body, headers=told)).status_code == 200
            await other.say("Alpha")
            way.turn(Way.OPEN)
            await stage.settled("talk", name(other.read()))
            assert (await client.get(f"{base}/healthz")).json()["service"] == "there"
        await other.close()


async def _paid(paid: Sequence[object], count: int) -> bool:
    return len(paid) == count
