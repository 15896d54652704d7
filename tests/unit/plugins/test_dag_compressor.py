"""What plugins for PyClaw find by the names of its `dag-compressor`."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine_server.plugins.dag_compressor import (
    DagCompressorPlugin,
    DagLayerConfig,
    _classify_message,
    _extract_facts,
)
from contextengine_server.plugins.pyclaw import ContextState


@pytest.mark.parametrize(
    ("message", "layer"),
    [
        ({"role": "system", "content": "You are a helpful assistant."}, "critical"),
        ({"role": "assistant", "tool_calls": [{"name": "read_file"}]}, "important"),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function",
          "function": {"name": "read_file", "arguments": "{}"}}]}, "important"),
        ({"role": "tool", "content": "File contents: ..."}, "important"),
        ({"role": "function", "name": "f", "content": "42"}, "important"),
        ({"role": "tool", "content": ""}, "transient"),
        ({"role": "tool"}, "transient"),
        ({"role": "user", "content": "You must always respond in Chinese."}, "critical"),
        ({"role": "user", "content": [{"type": "text", "text": "yes"}]}, "transient"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a"}}]},
         "important"),
        ({"role": "assistant", "content": "ok"}, "transient"),
        ({"role": "user", "content": "I prefer dark mode."}, "contextual"),
        ({"role": "user", "content": "What is the capital of France?"}, "important"),
        ({"role": "assistant", "content": "A long reply. " * 60}, "important"),
        ({"role": "user", "content": "好的,谢谢"}, "transient"),
        ({"role": "user", "content": "你必须始终用中文回答。"}, "critical"),
    ],
)  # fmt: skip
def test_the_layer_of_a_message(message: dict[str, Any], layer: str) -> None:
    assert _classify_message(message) == layer


def test_facts_are_lines_by_category() -> None:
    told = [
        {"role": "assistant", "content": "We decided to use PostgreSQL for the database."},
        {"role": "user", "content": "My email is alice@example.com. I prefer dark mode."},
        {"role": "user", "content": "I prefer dark mode."},
        {"role": "tool", "content": "I prefer nothing."},
    ]
    assert _extract_facts(told) == (
        "email: alice@example.com\npreference: I prefer dark mode\n"
        "decision: decided to use PostgreSQL"
    )
    assert _extract_facts([]) == ""


def test_it_has_four_layers_by_default() -> None:
    plugin = DagCompressorPlugin()
    assert plugin.total_max_tokens == 128_000
    assert plugin.layers == {
        "critical": DagLayerConfig(2_000, "keep"),
        "important": DagLayerConfig(3_000, "summarize"),
        "contextual": DagLayerConfig(2_000, "extract_facts"),
        "transient": DagLayerConfig(0, "drop"),
    }
    with pytest.raises(ValueError, match="'forget' is none of keep, summarize, extract_facts"):
        DagLayerConfig(1, "forget")
    with pytest.raises(ValueError, match="layers other are none of critical, important"):
        DagCompressorPlugin(layers={"other": DagLayerConfig(1, "keep")})


async def test_what_is_kept_stays_and_no_call_parts_from_its_result() -> None:
    said: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "You must always respond in Chinese."},
        {"role": "user", "content": "Fix the parser. " * 40},
        {"role": "assistant", "tool_calls": [{"id": "a", "name": "read_file"}]},
        {"role": "tool", "tool_call_id": "a", "content": "x" * 2_000},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "And the lexer?"},
        {"role": "assistant", "tool_calls": [{"id": "b", "name": "read_file"}]},
        {"role": "tool", "tool_call_id": "b", "content": "y"},
    ]
    plugin, state = DagCompressorPlugin(), ContextState("one")
    same = await plugin.compact(said, state)
    assert (same.messages, same.tokens_saved) == (said, 0), "up to 89,600 tokens nothing changes"
    done = await plugin.compact(said, state, max_tokens=500)
    assert [said.index(one) for one in done.messages] == [0, 1, 6, 7, 8]
    assert done.tokens_saved == done.tokens_before - done.tokens_after > 600
    kept = DagCompressorPlugin(layers={"important": DagLayerConfig(3_000, "keep")})
    assert [
        said.index(one) for one in (await kept.compact(said, state, max_tokens=500)).messages
    ] == [0, 1, 2, 3, 4, 6, 7, 8]
