"""An agent of Hermes that says what it is told to say: run by the Python that has Hermes.

Takes the provider's address; then from standard input one JSON object a line, `{"say": …}`, or
`{"undo": n}` to take so many messages back; answers each with `{"rows": [role and content, …]}` of
Hermes' list.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

SETTINGS = """
plugins: {enabled: [contextengine]}
context: {engine: contextengine}
memory: {memory_enabled: false, user_profile_enabled: false}
model: {context_length: 64000}
"""


def main() -> None:
    """Serves until standard input ends."""
    out = os.fdopen(os.dup(1), "w")
    sys.stdout = sys.stderr  # what Hermes prints
    Path(os.environ["HERMES_HOME"]).mkdir(parents=True, exist_ok=True)
    Path(os.environ["HERMES_HOME"], "config.yaml").write_text(SETTINGS)
    from run_agent import AIAgent  # type: ignore[import-not-found]

    agent = AIAgent(
        base_url=f"http://{sys.argv[1]}/v1",
        api_key="k",
        model="mock-1",
        provider="custom",
        quiet_mode=True,
        enabled_toolsets=["todo", "context_engine"],
        skip_context_files=True,
        session_id="h1",
    )
    rows: list[dict[str, Any]] = []
    for line in sys.stdin:
        asked = json.loads(line)
        if "undo" in asked:
            del rows[-asked["undo"] :]
        else:
            rows = agent.run_conversation(asked["say"], conversation_history=rows)["messages"]
        engine = agent.context_compressor
        told = {
            "rows": [[row["role"], row.get("content") or ""] for row in rows],
            "engine": engine.name,
            "compactions": engine.compression_count,
            "tools": sorted(agent._context_engine_tool_names),
        }
        out.write(json.dumps(told) + "\n")
        out.flush()


main()
