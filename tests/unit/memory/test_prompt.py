"""What is said of memory in the addition to the system prompt."""

from __future__ import annotations

from contextengine_server.context.scope import Scope
from contextengine_server.memory.extraction.fact import FactKind
from contextengine_server.memory.prompt import (
    NO_MEMORY,
    MemoryPrompt,
    MemorySectionText,
    memory_addition,
)
from contextengine_server.memory.rules import MemoryRules
from contextengine_server.memory.shown import ShownMemory, fitting
from contextengine_server.store.agent_facts import AgentFact, FoundInSession
from contextengine_server.store.memory import MemoryStore
from contextengine_server.store.rows import Commit, MessageRow, SessionHead
from contextengine_server.telemetry.meters import Meters
from contextengine_server.telemetry.metrics import Metrics

SCOPE = Scope("t", "a", "s")
SEARCHES = MemoryPrompt(tools=frozenset({"memory_search"}))


def fact(value: str, said_ms: int, kind: str = "preference", **more: str) -> AgentFact:
    subject = more.get("subject", value)
    return AgentFact(SCOPE, f"id {value}", kind, subject, value, value, 1, said_ms, said_ms)


def test_nothing_is_said_where_nothing_is_asked() -> None:
    assert memory_addition(NO_MEMORY, [fact("x", 1)], 9) == ""
    other = MemoryPrompt(tools=frozenset({"ctx_search"}), citations="on")
    assert memory_addition(other, [fact("x", 1)], 9) == ""


def test_the_newest_that_hold_are_shown_the_oldest_first() -> None:
    newest = [
        fact("light", 4, subject="m"),
        fact("dark", 3, subject="m"),
        fact("tea", 2),
        fact("figs", 1),
    ]
    said = memory_addition(SEARCHES, newest, 2)
    assert said.index("tea") < said.index("light")
    assert "dark" not in said
    assert "figs" not in said
    assert "1970-01-01" in said


def test_a_value_is_one_line() -> None:
    said = memory_addition(SEARCHES, [fact("two\nlines\n\n# and a title", 1)], 3)
    assert "- preference: two lines # and a title (" in said


def test_sections_are_shown_without_the_tool() -> None:
    asked = MemoryPrompt((MemorySectionText("what is kept", "T"),))
    said = memory_addition(asked, [fact("x", 1)], 9)
    assert "what is kept" in said
    assert "memory_search" not in said
    assert "- preference" not in said


def test_what_does_not_fit_gives_way_to_what_is_shorter() -> None:
    texts = ("long" * 20, "short", "")
    assert fitting(texts, len, 800) == texts[0]
    assert fitting(texts, len, 639) == "short"
    assert fitting(texts, len, 39) == ""
    assert fitting(("sections",), len, 1) == "sections"
    assert fitting((), len, 1) == ""


async def test_as_of_a_moment_it_stays_what_it_was() -> None:
    store = MemoryStore()
    await store.open()
    row = MessageRow(1, 1, 1, b"", b"", 1)
    await store.commit(Commit(SessionHead(SCOPE, "life", 1, 1), 0, messages=[row]))

    async def found(*facts: AgentFact) -> None:
        await store.memory.add(FoundInSession(SCOPE, "life", 1, facts))

    async def shown(as_of_ms: int, rules: MemoryRules | None = None, **more: bool) -> str:
        reader = ShownMemory(store.memory, rules or MemoryRules())
        open_to_tools = more.get("open_to_tools", True)
        texts = await reader.texts(SEARCHES, SCOPE, as_of_ms, open_to_tools=open_to_tools)
        return texts[0]

    await found(fact("tea", 5), fact("a@x.example", 6, kind="email"))
    before = await shown(9)
    assert "tea" in before
    assert "a@x.example" not in before
    await found(fact("figs", 10))
    assert await shown(9) == before
    assert "figs" in await shown(10)
    assert "tea" not in await shown(4)
    assert "tea" not in await shown(9, MemoryRules(shown=0))
    assert "tea" not in await shown(9, MemoryRules(kinds=frozenset({"name"})))
    assert await shown(9, open_to_tools=False) == ""
    off = ShownMemory(store.memory, None)
    assert await off.texts(SEARCHES, SCOPE, 9, open_to_tools=True) == ("",)


def test_every_kind_is_counted() -> None:
    assert set(Meters(Metrics()).facts) == {*FactKind}
