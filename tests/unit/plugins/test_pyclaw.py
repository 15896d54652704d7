"""The registry of PyClaw's plugins, by its own names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from contextengine_server.plugins.pyclaw import (
    CompactResult,
    ContextEnginePlugin,
    ContextEnginePluginRegistry,
    ContextState,
    DefaultContextPlugin,
)


class Plain(ContextEnginePlugin):
    def __init__(self, name: str = "plain") -> None:
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    async def bootstrap(self, state: ContextState) -> None: ...

    async def ingest(self, messages: list[dict[str, Any]], state: ContextState) -> None: ...

    async def assemble(self, state: ContextState) -> list[dict[str, Any]]:
        return []

    async def compact(
        self, messages: list[dict[str, Any]], state: ContextState, *, max_tokens: int | None = None
    ) -> CompactResult:
        return CompactResult(messages)


@pytest.fixture
def registry() -> Iterator[ContextEnginePluginRegistry]:
    ContextEnginePluginRegistry.reset()
    yield ContextEnginePluginRegistry.get_instance()
    ContextEnginePluginRegistry.reset()


def test_there_is_one_until_it_is_reset(registry: ContextEnginePluginRegistry) -> None:
    assert ContextEnginePluginRegistry.get_instance() is registry
    registry.register(Plain())
    ContextEnginePluginRegistry.reset()
    assert ContextEnginePluginRegistry.get_instance().list_plugins() == []


def test_plugins_by_name(registry: ContextEnginePluginRegistry) -> None:
    assert (registry.get_default(), registry.get("a")) == (None, None)
    a, b = Plain("a"), Plain("b")
    registry.register(a)
    registry.register(b, set_default=True)
    assert (registry.get("a"), registry.get_default()) == (a, b)
    assert registry.list_plugins() == [
        {"name": "a", "description": ""},
        {"name": "b", "description": ""},
    ]
    assert registry.unregister("b")
    assert not registry.unregister("b")
    assert registry.get_default() is a


def test_a_name_is_given_again_unless_it_may_not_be(registry: ContextEnginePluginRegistry) -> None:
    first, second = Plain("a"), Plain("a")
    registry.register(first)
    with pytest.raises(ValueError, match="'a' is already registered"):
        registry.register(second, allow_replace=False)
    registry.register(second)
    assert registry.get("a") is second


def test_what_lacks_a_member_is_no_plugin(registry: ContextEnginePluginRegistry) -> None:
    with pytest.raises(TypeError, match="object lacks name, bootstrap, ingest, assemble, compact"):
        registry.register(object())  # type: ignore[arg-type]


async def test_the_optional_members_do_nothing() -> None:
    state = ContextState("one")
    await Plain().on_compact_complete(CompactResult([]), state)
    await Plain().on_session_end(state, [])
    assert Plain().get_status(state) == {"session_id": "one", "compaction_count": 0}


@pytest.mark.parametrize(
    ("max_tokens", "kept"),
    [
        (4_000, [0, 1, 2, 3, 4, 5]),
        (800, [0, 2, 3, 4, 5]),
        (700, [0, 4, 5]),
        (500, [0, 4, 5]),
        (1, [0, 5]),
    ],
)
async def test_the_default_keeps_what_leads_and_the_newest(
    max_tokens: int, kept: list[int]
) -> None:
    """A call with its result, or neither; and the newest, whatever its size."""
    roles = ("system", "user", "assistant", "tool", "user", "assistant")
    messages = [{"role": role, "content": str(n) * 400} for n, role in enumerate(roles)]
    plugin = DefaultContextPlugin()
    result = await plugin.compact(messages, ContextState("one"), max_tokens=max_tokens)
    left = [messages.index(one) for one in result.messages]
    assert left == kept
    assert result.tokens_saved == result.tokens_before - result.tokens_after
    assert (await plugin.assemble(ContextState("one")), plugin.name) == ([], "default")
