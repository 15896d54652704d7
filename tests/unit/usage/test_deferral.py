"""Which definitions are shown, in which order, and how the others are found."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from contextengine_server.usage.deferral import (
    DISCOVERY,
    DeferralRules,
    OfferedTool,
    described,
    server_of,
    shown,
)
from contextengine_server.usage.discovery import find

RULES = DeferralRules()


def offered(*names: str, tokens: int = 100, description: str = "") -> list[OfferedTool]:
    return [
        OfferedTool(name, description, server_of(name, ""), tokens, index)
        for index, name in enumerate(names)
    ]


TOOLS = offered("write", "mcp__git__log", "read", "mcp__git__blame", "mcp__mail__send")
"""Five of 100 tokens each."""


def names(tools: tuple[OfferedTool, ...]) -> list[str]:
    return [tool.name for tool in tools]


def test_at_a_tenth_of_the_window_all_are_shown_and_above_none_of_mcp() -> None:
    assert shown(RULES, TOOLS, 5_000, (), ()) is None
    seen = shown(RULES, TOOLS, 4_999, (), ())
    assert seen is not None
    assert names(seen.before) == ["read", "write"]
    assert seen.behind == ()
    assert names(seen.deferred) == ["mcp__git__blame", "mcp__git__log", "mcp__mail__send"]


def test_what_was_used_or_found_stays() -> None:
    seen = shown(RULES, TOOLS, 1, {"mcp__mail__send", "read"}, ("mcp__git__log",))
    assert seen is not None
    assert names(seen.behind) == ["mcp__git__log", "mcp__mail__send"]
    assert names(seen.deferred) == ["mcp__git__blame"]
    assert shown(RULES, TOOLS, 1, {tool.name for tool in TOOLS}, ()) is None


def test_the_order_is_the_same_whatever_order_they_came_in() -> None:
    chance = random.Random(7)
    seen = shown(RULES, TOOLS, 1, {"mcp__mail__send"}, ("mcp__git__log",))
    assert seen is not None
    for _ in range(20):
        mixed = chance.sample(TOOLS, len(TOOLS))
        mixed = [replace(tool, index=index) for index, tool in enumerate(mixed)]
        again = shown(RULES, mixed, 1, {"mcp__mail__send"}, ("mcp__git__log",))
        assert again is not None
        assert names(again.before) == names(seen.before)
        assert names(again.behind) == names(seen.behind)
        assert described(again) == described(seen)


def test_what_is_found_is_put_behind_what_was() -> None:
    """So the definitions before it, and what a provider cached of them, stay as they were."""
    found: tuple[str, ...] = ()
    before: list[str] = []
    for name in ("mcp__mail__send", "mcp__git__blame"):
        found = (*found, name)
        seen = shown(RULES, TOOLS, 1, (), found)
        assert seen is not None
        after = names(seen.behind)
        assert after[: len(before)] == before
        before = after
    assert before == ["mcp__mail__send", "mcp__git__blame"]


def test_the_tool_that_finds_reads_the_same_when_something_is_found() -> None:
    first = shown(RULES, TOOLS, 1, (), ())
    then = shown(RULES, TOOLS, 1, (), ("mcp__git__log",))
    assert first is not None
    assert then is not None
    assert described(first) == described(then)
    assert "git: mcp__git__blame, mcp__git__log" in described(first)
    many = offered(*(f"mcp__big__{number:04}" for number in range(1_000)), "mcp__a__b")
    seen = shown(RULES, many, 1, (), ())
    assert seen is not None
    assert "big: 1000 tools" in described(seen)
    assert "a: mcp__a__b" in described(seen)
    assert len(described(seen)) < 3_000


def test_never_and_always() -> None:
    rules = DeferralRules(never=("mcp__git__log",), always=("read", DISCOVERY))
    seen = shown(rules, TOOLS, 1, {"read"}, ())
    assert seen is not None
    assert names(seen.before) == ["mcp__git__log", "write"]
    assert "read" in names(seen.deferred)
    small = shown(rules, TOOLS, 1_000_000, (), ())
    assert small is not None
    assert names(small.deferred) == ["read"]
    found = shown(rules, TOOLS, 1_000_000, (), ("read",))
    assert found is None, "it is shown, as all others are"
    own = offered(DISCOVERY, "read")
    assert shown(DeferralRules(always=(DISCOVERY,)), own, 1_000_000, (), ()) is None


def test_the_messages_in_which_a_tool_counts_as_used_move_in_steps() -> None:
    """At least the newest 20, and the beginning stays put for 20 messages."""
    firsts = [RULES.recent_from(count) for count in range(200)]
    assert all(20 <= count - first + 1 < 40 for count, first in enumerate(firsts) if count >= 20)
    assert set(firsts[:40]) == {1}
    assert len(set(firsts)) == 9


@pytest.mark.parametrize(
    ("name", "given", "server"),
    [
        ("read", "", ""),
        ("read", "files", "files"),
        ("mcp__git__log", "", "git"),
        ("mcp:git:log", "", "git"),
        ("mcp__", "", "mcp"),
    ],
)
def test_a_server_is_named_by_the_tool(name: str, given: str, server: str) -> None:
    assert server_of(name, given) == server


CATALOGUE = [
    OfferedTool("mcp__git__log", "Shows the history of commits.", "git", 1, 0),
    OfferedTool("mcp__git__blame", "Says who wrote each line of a file.", "git", 1, 1),
    OfferedTool("mcp__mail__sendMessage", "Sends a letter to somebody.", "mail", 1, 2),
    OfferedTool("mcp__cal__add_event", "Adds an appointment.", "cal", 1, 3),
]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("select:mcp__cal__add_event, nothing ,mcp__git__log", ["add_event", "log"]),
        ("mcp__git__blame", ["blame"]),
        ("MCP__GIT__BLAME", ["blame"]),
        ("mcp__git", ["log", "blame"]),
        ("git", ["log", "blame"]),
        ("history of commits", ["log"]),
        ("who wrote this line?", ["blame"]),
        ("send a message", ["sendMessage"]),
        ("appointment", ["add_event"]),
        ("weather", []),
        ("???", []),
        ("select:", []),
    ],
)
def test_tools_are_found(query: str, found: list[str]) -> None:
    hits = find(RULES, CATALOGUE, query)
    assert [tool.name.rpartition("__")[2] for tool in hits] == found


def test_the_only_hit_of_a_short_query_passes_the_floor() -> None:
    """Comis's raw floor of 0.8 hid a best hit of 0.74."""
    many = offered(*(f"mcp__s__tool{n}" for n in range(50)), description="does one thing or other")
    (hit,) = find(RULES, [*many, CATALOGUE[0]], "commits")
    assert hit.name == "mcp__git__log"


def test_a_search_finds_no_more_than_ten() -> None:
    many = offered(*(f"mcp__s__tool{n}" for n in range(50)), description="does a thing")
    assert len(find(RULES, many, "thing")) == 10
    assert len(find(RULES, many, "mcp__s")) == 10
    assert len(find(RULES, many, "s")) == 10


def test_a_tool_that_was_found_is_kept_for_so_many_turns_or_for_good() -> None:
    assert RULES.keeps(5, 25)
    assert not RULES.keeps(5, 26)
    assert replace(RULES, demote_after=0).keeps(1, 10_000)
