"""A thread of Codex as its plugin sees it, without Codex and without a key: the hooks of this
folder are called with a rollout file, and what was compacted away is found by the tools.

make run                                          # the service, in another terminal
python integrations/codex/examples/offline.py
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

from mcp import Client as Host
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client

PLUGIN = Path(__file__).parents[1]
THREAD = str(uuid.uuid4())
ENVIRONMENT = {
    **os.environ,
    "CONTEXTENGINE_ADDRESS": os.environ.get("CONTEXTENGINE_ADDRESS", "127.0.0.1:50051"),
    # Where pip put `contextengine-mcp`, also where no shell has it on its PATH.
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
}


class Codex:
    """What Codex does beside its model: writes down what is said, and calls the plugin."""

    def __init__(self, transcript: Path) -> None:
        self.transcript = transcript
        self._hooks = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())["hooks"]
        self._write("session_meta", id=THREAD, model_provider="openai")

    def fire(self, event: str) -> str:
        """Calls the plugin's hooks of an event; what they print."""
        given = {
            "session_id": THREAD,
            "transcript_path": str(self.transcript),
            "hook_event_name": event,
        }
        done = [
            subprocess.run(
                shlex.split(hook["command"]),
                input=json.dumps(given),
                env=ENVIRONMENT,
                capture_output=True,
                text=True,
                check=True,
            )
            for group in self._hooks.get(event, [])
            for hook in group["hooks"]
        ]
        sys.stderr.write("".join(one.stderr for one in done))
        return "".join(one.stdout for one in done)

    def say(self, role: str, words: str) -> None:
        """Writes down what somebody says."""
        kind = "output_text" if role == "assistant" else "input_text"
        content = [{"type": kind, "text": words}]
        self._write("response_item", type="message", role=role, content=content)

    def compact(self, summary: str) -> None:
        """Summarizes all that was said."""
        self._write("compacted", message=summary)

    def _write(self, kind: str, **payload: Any) -> None:
        line = {"timestamp": "2026-11-23T20:42:08.036Z", "type": kind, "payload": payload}
        with self.transcript.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    async def call(self, tool: str, **arguments: str) -> Any:
        """Calls a tool of the plugin's MCP server, as the model would."""
        named = json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]["contextengine"]
        server = StdioServerParameters(
            command=named["command"], args=named["args"], env=ENVIRONMENT
        )
        async with Host(stdio_client(server)) as host:
            thread: Any = {"threadId": THREAD}
            answer: Any = await host.call_tool(tool, arguments, meta=thread)
        return json.loads(answer.content[0].text)


def main() -> None:
    """A session of twelve turns, a compaction of Codex's own, and a search."""
    with tempfile.TemporaryDirectory() as folder:
        host = Codex(Path(folder) / f"rollout-{THREAD}.jsonl")
        note = json.loads(host.fire("SessionStart"))["hookSpecificOutput"]["additionalContext"]
        print("The model is told:", note)
        for turn in range(12):
            asked = "The door code is 4711." if turn == 0 else f"Question {turn}: how goes it?"
            host.fire("UserPromptSubmit")
            host.say("user", asked)
            host.say("assistant", "So it goes. " * 40)
            host.fire("Stop")
        host.fire("PreCompact")
        host.compact("They talked of how it goes.")
        host.fire("PostCompact")
        status = asyncio.run(host.call("context_status"))
        print("Stored:", status["messages"], "messages. Its context is a summary of Codex's now.")
        found = asyncio.run(host.call("ctx_search", query="door code"))
        print("ctx_search finds:", found["hits"][0]["snippet"].splitlines()[1])


if __name__ == "__main__":
    main()
