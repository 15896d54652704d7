"""An agent of Hermes that says what it is told to say: run by the Python that has Hermes.

Takes the provider's address, and what Hermes is to do with its sessions: write them down and
compact them in place (`kept`) or under another id each time (`turned`), or neither (empty). Then
takes from standard input one JSON object a line: `{"say": …}`; `{"undo": n}` to take so many
messages back; `{"compact": true}` as `/compress` does; `{"fork": id}` as `/branch` does;
`{"rewrite": true}` to name calls anew and drop what Hermes keeps beside a message. Answers each
with `{"rows": [role and content, …]}` of Hermes' list, and what it may have waited for the service
(tests/hosts/waits.py).
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

SETTINGS = """
plugins: {enabled: [contextengine]}
context: {engine: contextengine}
memory: {memory_enabled: false, user_profile_enabled: false}
model: {context_length: 64000}
compression: {in_place: %s}
"""


SENT = ("role", "content", "tool_calls", "tool_call_id", "name")
"""What of a message a model is sent."""


def renamed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A list as it comes back from another provider: other ids of calls, no details."""
    bare = [{name: row[name] for name in SENT if name in row} for row in rows]
    named: list[dict[str, Any]] = json.loads(
        re.sub(r"\bcall_(\d+)_(\d+)\b", r"callx\1x\2", json.dumps(bare))
    )
    return named


def branch(agent: Any, store: Any, rows: list[dict[str, Any]], name: str) -> None:
    """As `/branch` does it: the same agent goes on in a copy."""
    agent._flush_messages_to_session_db(rows)
    before = agent.session_id
    store.end_session(before, "branched")
    store.create_session(name, "cli", model="mock-1", parent_session_id=before)
    store.replace_messages(name, rows)
    agent.session_id = name
    agent.reset_session_state()
    agent._last_flushed_db_idx = len(rows)


def main() -> None:
    """Serves until standard input ends."""
    out = os.fdopen(os.dup(1), "w")
    sys.stdout = sys.stderr  # what Hermes prints
    home, sessions = Path(os.environ["HERMES_HOME"]), sys.argv[2]
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text(SETTINGS % str(sessions == "kept").lower())
    from hermes_state import SessionDB  # type: ignore[import-not-found]
    from run_agent import AIAgent  # type: ignore[import-not-found]

    sys.path.append(str(Path(__file__).parents[1]))
    from waits import waits  # type: ignore[import-not-found]

    # What Hermes wrote down of the session before, as `hermes --resume` finds it.
    store = SessionDB() if sessions else None
    rows: list[dict[str, Any]] = store.get_messages_as_conversation("h1") if store else []

    agent = AIAgent(
        base_url=f"http://{sys.argv[1]}/v1",
        api_key="k",
        model="mock-1",
        provider="custom",
        quiet_mode=True,
        enabled_toolsets=["todo", "context_engine"],
        skip_context_files=True,
        session_id="h1",
        session_db=store,
    )
    with waits() as counted:
        for line in sys.stdin:
            asked = json.loads(line)
            counted.taken()
            if "undo" in asked:
                del rows[-asked["undo"] :]
            elif "compact" in asked:
                rows, _ = agent._compress_context(rows, None, force=True)
            elif "fork" in asked:
                branch(agent, store, rows, asked["fork"])
            elif "rewrite" in asked:
                rows = renamed(rows)
            else:
                rows = agent.run_conversation(asked["say"], conversation_history=rows)["messages"]
            engine = agent.context_compressor
            sent, waited = counted.taken()
            told = {
                "session": agent.session_id,
                "rows": [[row["role"], row.get("content") or ""] for row in rows],
                "engine": engine.name,
                "compactions": engine.compression_count,
                "sent": sent,
                "waited": waited,
                "tools": sorted(agent._context_engine_tool_names),
            }
            out.write(json.dumps(told) + "\n")
            out.flush()


main()
