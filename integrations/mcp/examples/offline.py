"""A host that speaks MCP, without a model and without a key: what it no longer shows its model is
found by the tools of a server that it starts itself.

make run                                        # the service, in another terminal
python integrations/mcp/examples/offline.py
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import uuid
from typing import Any

from mcp import Client as Host
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client

from contextengine import AsyncClient, assistant, user
from contextengine.types import Budget


async def main() -> None:
    """Talks, and asks the tools."""
    address = os.environ.get("CONTEXTENGINE_ADDRESS", "127.0.0.1:50051")
    name = f"offline-{uuid.uuid4()}"
    async with AsyncClient(address) as client:
        kept = client.session(agent_id="mcp", session_id=name)
        await kept.after_turn([user("The door code is 4711."), assistant("Noted.")])
        for turn in range(40):
            said = "So it goes. " * 40
            await kept.after_turn([user(f"Question {turn}: how goes it?"), assistant(said)])
        shown = await kept.assemble(budget=Budget(message_tokens=2_000))
    verbatim = [item.origin.sequence for item in shown.items if item.origin.sequence]
    print(f"Of {2 * 41} messages the model is shown those from message {verbatim[0]} on.")

    words = ["-m", "contextengine_mcp.command", "--agent", "mcp", "--session-id", name]
    server = StdioServerParameters(
        command=sys.executable, args=words, env={"CONTEXTENGINE_ADDRESS": address}
    )
    async with Host(stdio_client(server)) as host:
        offered = [tool.name for tool in (await host.list_tools()).tools]
        print("Its tools:", ", ".join(offered))
        found = await said_by(host, "ctx_search", query="door code")
        print("ctx_search finds:", found["hits"][0]["snippet"].splitlines()[1])


async def said_by(host: Host, tool: str, **arguments: str) -> Any:
    """What a tool answers."""
    answer: Any = await host.call_tool(tool, arguments)
    return json.loads(answer.content[0].text)


if __name__ == "__main__":
    asyncio.run(main())
