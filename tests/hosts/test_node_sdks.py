"""The proxy as clients on Node meet it: the SDKs of OpenAI and Anthropic, whole and streamed, with
tools. Runs where they are installed (`make test-hosts`, which plays two hundred turns)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from contextengine import Message
from contextengine import name_by_content as name
from contextengine.formats import from_anthropic, from_openai, from_responses
from contextengine_server.tokens.counter import TokenCounter
from tests.hosts.stage import WINDOW, staged
from tests.integration.harness import ref

HERE = Path(__file__).parent / "node"
TURNS = int(os.environ.get("CONTEXTENGINE_HOST_TURNS", "10"))
READ: dict[str, Callable[[Iterable[Any]], list[Message]]] = {
    "chat": from_openai,
    "responses": from_responses,
    "messages": from_anthropic,
}
pytestmark = [
    pytest.mark.timeout(180 + 8 * TURNS),
    pytest.mark.skipif(
        shutil.which("node") is None or not (HERE / "node_modules" / "openai").exists(),
        reason="the SDKs are not installed: `make test-hosts` does it where npm is",
    ),
]


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("how", ["whole", "stream"])
async def test_a_conversation_is_stored_as_the_client_has_it_and_replies_come_byte_for_byte(
    kind: str, how: str, tmp_path: Path
) -> None:
    async with staged(tmp_path) as stage:
        node = await asyncio.create_subprocess_exec(
            *("node", "agents.mjs", kind, how, stage.base, "talk", str(TURNS)),
            cwd=HERE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await node.communicate()
        assert node.returncode == 0, err.decode()
        said = json.loads(out)
        await stage.settled("talk", name(READ[kind](said["messages"])))
        sent = [hashlib.sha256(one.sent).hexdigest() for one in stage.upstream.seen]
        assert said["digests"] == sent
        assert len(sent) > TURNS, "the model never called its tool"
        # What the provider was sent fits, although the client sent all of it.
        last = stage.upstream.seen[-1].json
        assert len(last.get("messages") or last["input"]) < len(said["messages"]) - 4
        count = TokenCounter().count_text
        assert max(count(one.body.decode()) for one in stage.upstream.seen) < WINDOW
        status = await stage.home.client.get_status(ref("talk", agent="proxy"))
        assert status.last_total_tokens == 105
