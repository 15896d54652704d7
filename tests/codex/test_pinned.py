"""What Codex does that the projection stands on. A version that changes one of these is to be
looked at before it is pinned."""

from __future__ import annotations

import pytest

from contextengine_server.projection.codex.limits import OUTPUT_BYTES, RETAINED_BYTES, TURN_CHARS
from tests.codex.app_server import AppServer
from tests.codex.mock import ResponsesMock, texts


async def test_a_turn_takes_so_many_code_points_and_no_more(
    codex: AppServer, mock: ResponsesMock
) -> None:
    thread = await codex.thread()
    whole = "😀" * TURN_CHARS  # twice as many UTF-16 units
    await codex.turn(thread, [{"type": "text", "text": whole}])
    assert texts(mock.requests[-1], "user")[-1] == whole
    with pytest.raises(AssertionError, match="input_too_large"):
        await codex.call(
            "turn/start", threadId=thread, input=[{"type": "text", "text": whole + "x"}]
        )


async def test_an_injected_output_is_whole_up_to_its_policy_and_cut_beyond(
    codex: AppServer, mock: ResponsesMock
) -> None:
    thread = await codex.thread()
    for name, size in (("fits", OUTPUT_BYTES), ("cut", OUTPUT_BYTES + 1)):
        call = {"type": "function_call", "call_id": name, "name": "look", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": name, "output": "x" * size}
        await codex.call("thread/inject_items", threadId=thread, items=[call, output])
    await codex.turn(thread, [{"type": "text", "text": "go on"}])
    sent = {
        item["call_id"]: item["output"]
        for item in mock.requests[-1]["input"]
        if item["type"] == "function_call_output"
    }
    assert sent["fits"] == "x" * OUTPUT_BYTES
    assert "tokens truncated" in sent["cut"]


async def test_a_compaction_keeps_users_texts_of_so_many_bytes(
    codex: AppServer, mock: ResponsesMock
) -> None:
    """Why a bootstrap is projected again, and why longer ones are warned of."""
    thread = await codex.thread()
    await codex.turn(thread, [{"type": "text", "text": "h" + "x" * (3 * RETAINED_BYTES) + "t"}])
    await codex.compact(thread)
    await codex.turn(thread, [{"type": "text", "text": "after"}])
    kept = "".join(texts(mock.requests[-1], "user"))
    assert RETAINED_BYTES * 0.9 < kept.count("x") <= RETAINED_BYTES
    assert "hx" in kept
    assert "xt" in kept
