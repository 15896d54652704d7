"""The sample of docs/subagents.md does what it says when things go wrong."""

from __future__ import annotations

import asyncio
import re
import textwrap
from pathlib import Path
from typing import Any

import grpc
import pytest

from contextengine import ContextEngineError
from contextengine import types as t

PAGE = Path(__file__).parents[3] / "docs" / "subagents.md"


class Losing:
    """A client whose service went away after the child was prepared."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def prepare_subagent_spawn(self, *_: Any, **__: Any) -> Any:
        return t.PrepareSubagentSpawnResponse(spawn_token="token")

    async def rollback_subagent_spawn(self, token: str, *_: Any) -> None:
        self.asked.append(token)
        raise ContextEngineError("the service is away", code=grpc.StatusCode.UNAVAILABLE)


def test_a_rollback_that_fails_does_not_hide_why_the_spawn_did() -> None:
    sample = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[0]
    body = textwrap.indent(sample, "    ")
    names: dict[str, Any] = {"t": t, "ContextEngineError": ContextEngineError}
    exec(f"async def run(client, parent, child, dispatch):\n{body}", names)
    client = Losing()

    def dispatch(_: Any) -> None:
        raise RuntimeError("the child did not start")

    with pytest.raises(RuntimeError, match="the child did not start"):
        asyncio.run(names["run"](client, "parent", "child", dispatch))
    assert client.asked == ["token"]
