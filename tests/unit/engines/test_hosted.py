"""A hosted engine: one at work for each session, on a thread of its own, and no longer waited for
than is said."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.engines.companion import Conversation
from contextengine_server.engines.failure import EngineBroken
from contextengine_server.engines.hosted import held as held_sessions
from contextengine_server.engines.hosted.engine import MAX_LOST, HostedEngine
from contextengine_server.engines.hosted.held import session_name
from contextengine_server.engines.hosted.hermes import HermesHost, accepted
from contextengine_server.engines.hosted.host import EngineHost, HostedFacts
from contextengine_server.engines.hosted.options import HostedOptions
from contextengine_server.engines.rewrite import ChatMessage, Place, RewriteRequest

FACTS = HostedFacts("hosted", "1", "Hosted", 0.6)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, what is to be seen is waited for."""
    monkeypatch.setattr(held_sessions, "END_S", 60.0)


class Host(EngineHost):
    """Says what happens to it."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []
        self.threads: set[int] = set()
        self.go = threading.Event()
        self.blocks = False

    async def begin(self, session_id: str, told: Conversation) -> str:
        self.log.append(("begin", session_id))
        return session_id

    async def compact(self, engine: str, request: RewriteRequest) -> list[ChatMessage] | None:
        self.log.append(("compact", engine))
        self.threads.add(threading.get_ident())
        if self.blocks:
            self.go.wait()
        request.messages[0]["content"] = "changed by the engine"
        return None

    async def end(self, engine: str) -> None:
        self.log.append(("end", engine))


def request(session: str = "one", life: str = "") -> RewriteRequest:
    messages = [{"role": "user", "content": "hello"}]
    return RewriteRequest(Scope("t", "a", session), messages, [Place(0, 0)], 10, 100, life=life)


def hosted(host: Host, **options: Any) -> HostedEngine:
    return HostedEngine(HostedOptions(**options), FACTS, host)


async def test_each_session_has_an_engine_and_a_thread_of_its_own() -> None:
    host = Host()
    engine = hosted(host)
    for session in ("one", "two", "one"):
        assert await engine.rewrite(request(session)) is None
    assert [name for what, name in host.log if what == "begin"] == ["t:a:one", "t:a:two"]
    assert len(host.threads) == 2
    assert threading.get_ident() not in host.threads
    await engine.dispose()
    assert sorted(name for what, name in host.log if what == "end") == ["t:a:one", "t:a:two"]


async def test_a_session_that_was_emptied_begins_with_another_engine() -> None:
    host = Host()
    engine = hosted(host)
    for life in ("first", "first", "second"):
        await engine.rewrite(request(life=life))
    assert [what for what, _ in host.log] == [
        "begin", "compact", "compact", "end", "begin", "compact"
    ]  # fmt: skip
    await engine.dispose()


async def test_what_it_is_given_are_copies() -> None:
    asked = request()
    await hosted(Host()).rewrite(asked)
    assert asked.messages[0]["content"] == "hello"


async def test_the_one_used_longest_ago_leaves_first() -> None:
    host = Host()
    engine = hosted(host, live_sessions=2)
    for session in ("one", "two", "one", "three", "one"):
        await engine.rewrite(request(session))
    assert [name for what, name in host.log if what == "end"] == ["t:a:two"]
    await engine.dispose()


async def test_one_that_leaves_in_anger_is_no_affair_of_the_next() -> None:
    class Angry(Host):
        async def end(self, engine: str) -> None:
            await super().end(engine)
            raise RuntimeError("no")

    host = Angry()
    engine = hosted(host, live_sessions=1)
    for session in ("one", "two"):
        assert await engine.rewrite(request(session)) is None
    await engine.dispose()
    assert [name for what, name in host.log if what == "end"] == ["t:a:one", "t:a:two"]


async def test_one_that_does_not_come_back_is_left_behind() -> None:
    """It stands still until the test lets it go, whatever the limit: so the limit alone ends the
    call. Other sessions go on; after a few the engine is not asked any more."""
    host = Host()
    engine = hosted(host, timeout_seconds=0.05)
    try:
        host.blocks = True
        for _ in range(MAX_LOST):
            with pytest.raises(EngineBroken, match=r"its compaction did not come back within 0.05"):
                await engine.rewrite(request("stuck"))
        with pytest.raises(EngineBroken, match="did not come back 4 times, and is not asked any"):
            await engine.rewrite(request("another"))
        assert "t:a:another" not in {session for _, session in host.log}
        engine.try_again()
        with pytest.raises(EngineBroken, match=r"its compaction did not come back within 0.05"):
            await engine.rewrite(request("stuck"))
    finally:
        host.go.set()
        await engine.dispose()


def test_a_session_has_a_name_that_no_other_has() -> None:
    names = {
        session_name(Scope(*parts))
        for parts in [("a", "b", "c"), ("a:b", "", "c"), ("a", "b:c", ""), ("a", "b", "../c")]
    }
    assert len(names) == 4
    assert not [name for name in names if "/" in name]


class Old:
    """An engine of an earlier Hermes: it knows of no focus, and has no hooks."""

    name = "old"

    def __init__(self, wants: bool = True) -> None:
        self.wants = wants
        self.used = 0

    def update_from_response(self, usage: dict[str, int]) -> None:
        self.used = usage["prompt_tokens"]

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return self.wants

    def compress(
        self, messages: list[ChatMessage], current_tokens: int | None = None
    ) -> list[ChatMessage]:
        return [{"role": "user", "content": f"{current_tokens} of {self.used}"}]


async def test_an_engine_is_asked_in_the_words_that_it_knows() -> None:
    host = HermesHost(Old, "")
    engine = await host.begin("one", Conversation(Scope("t", "a", "one"), ""))
    assert await host.compact(engine, request()) == [{"role": "user", "content": "10 of 10"}]
    engine.wants = False
    assert await host.compact(engine, request()) is None


def test_arguments_that_a_function_does_not_take_are_left_out() -> None:
    def few(messages: object, force: bool = False) -> None: ...

    def any_(messages: object, **more: object) -> None: ...

    named = {"force": True, "focus_topic": "x"}
    assert accepted(few, named) == {"force": True}
    assert accepted(any_, named) == named


class Talking(Host):
    """Has tools, and hears of the end of a session."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[str, list[str], bool]] = []
        self.now = self.most = 0

    async def tools(self, engine: str) -> list[Any]:
        named = {"name": "find", "description": "Finds.", "parameters": {"type": "object"}}
        return [{"type": "function", "function": named}, {"description": "nameless"}, named, "x"]

    async def call(
        self, engine: str, name: str, arguments: dict[str, Any], messages: list[ChatMessage]
    ) -> object:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        messages[0]["content"] = "changed by the tool"
        self.now -= 1
        return {"name": name, **arguments}

    async def status(self, engine: str) -> Mapping[str, object]:
        return {"engine": engine, "asked": len(self.log), "path": Path("x")}

    async def ended(
        self, engine: str, session_id: str, messages: list[ChatMessage], *, emptied: bool
    ) -> None:
        self.heard.append((session_id, [str(one["content"]) for one in messages], emptied))


def conversation(session: str = "one", life: str = "") -> Conversation:
    said: list[ChatMessage] = [{"role": "user", "content": "hello"}]
    return Conversation(Scope("t", "a", session), life, said)


async def test_its_own_tools_are_those_with_a_name_each_once() -> None:
    engine = hosted(Talking())
    [tool] = await engine.own_tools(conversation())
    assert (tool.name, tool.description, tool.schema) == ("find", "Finds.", b'{"type":"object"}')
    await engine.dispose()


async def test_a_tool_is_given_copies_and_one_thing_is_asked_at_a_time() -> None:
    host = Talking()
    engine, told = hosted(host), conversation()
    answers = await asyncio.gather(*(engine.call(told, "find", {"n": n}) for n in range(4)))
    assert answers == [{"name": "find", "n": n} for n in range(4)]
    assert told.messages[0]["content"] == "hello"
    assert [what for what, _ in host.log] == ["begin"], "one engine for all of them"
    assert host.most == 1
    await engine.dispose()


async def test_what_it_says_of_itself_is_what_it_said_when_it_was_asked_last() -> None:
    host = Talking()
    engine = hosted(host)
    assert engine.status(request().scope) == {}
    await engine.rewrite(request())
    assert engine.status(request().scope) == {"engine": "t:a:one", "asked": 2, "path": "x"}
    assert len(host.log) == 2, "nothing is asked for it"
    await engine.dispose()


@pytest.mark.parametrize("emptied", [False, True])
async def test_it_hears_of_the_end_and_begins_anew(emptied: bool) -> None:
    """Also of that of a session which it was never asked for."""
    host = Talking()
    engine = hosted(host)
    await engine.ended(conversation(), emptied=emptied)
    assert host.heard == [("t:a:one", ["hello"], emptied)]
    assert [what for what, _ in host.log] == ["begin", "end"]
    await engine.rewrite(request())
    assert [what for what, _ in host.log] == ["begin", "end", "begin", "compact"]
    await engine.dispose()


async def test_hermes_leaves_a_session_before_it_is_reset() -> None:
    class Hooked(Old):
        def __init__(self) -> None:
            super().__init__()
            self.log: list[object] = []

        def on_session_end(self, session_id: str, messages: list[ChatMessage]) -> None:
            self.log.append((session_id, len(messages)))

        def on_session_reset(self) -> None:
            self.log.append("reset")

    host = HermesHost(Hooked, "")
    for emptied, heard in ((False, [("s", 1)]), (True, [("s", 1), "reset"])):
        engine = await host.begin("s", conversation())
        await host.ended(engine, "s", [{"role": "user", "content": "x"}], emptied=emptied)
        assert engine.log == heard
    old = await HermesHost(Old, "").begin("s", conversation())
    assert await HermesHost(Old, "").tools(old) == []
    assert await HermesHost(Old, "").status(old) == {}
    await HermesHost(Old, "").ended(old, "s", [], emptied=True)
