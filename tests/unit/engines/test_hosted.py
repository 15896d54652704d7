"""A hosted engine: one at work for each session, on a thread of its own, and no longer waited for
than is said."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.engines.failure import EngineBroken
from contextengine_server.engines.hosted import engine as hosted_engine
from contextengine_server.engines.hosted.engine import MAX_LOST, HostedEngine, session_name
from contextengine_server.engines.hosted.hermes import HermesHost, accepted
from contextengine_server.engines.hosted.host import HostedFacts
from contextengine_server.engines.hosted.options import HostedOptions
from contextengine_server.engines.rewrite import ChatMessage, Place, RewriteRequest

FACTS = HostedFacts("hosted", "1", "Hosted", 0.6)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, what is to be seen is waited for."""
    monkeypatch.setattr(hosted_engine, "END_S", 60.0)


class Host:
    """Says what happens to it."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []
        self.threads: set[int] = set()
        self.go = threading.Event()
        self.blocks = False

    async def begin(self, session_id: str) -> str:
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
    engine = await host.begin("one")
    assert await host.compact(engine, request()) == [{"role": "user", "content": "10 of 10"}]
    engine.wants = False
    assert await host.compact(engine, request()) is None


def test_arguments_that_a_function_does_not_take_are_left_out() -> None:
    def few(messages: object, force: bool = False) -> None: ...

    def any_(messages: object, **more: object) -> None: ...

    named = {"force": True, "focus_topic": "x"}
    assert accepted(few, named) == {"force": True}
    assert accepted(any_, named) == named
