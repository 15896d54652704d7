"""Plugins of the shape that those of the field have: for Hermes with `register(ctx)`, a module for
the engine, one for its tools, files in Hermes's home; and the sample classes of the guides."""

from __future__ import annotations

from pathlib import Path

from contextengine_server.plugins.folder.directory import PluginDirectory

LEDGER_YAML = """\
name: hermes-ledger
version: 0.3.1
description: "Ledger: keeps every message in a file of its own, and leaves notes in their place"
author: "somebody"
provides_tools:
  - ledger_find
hooks: [pre_llm_call]
"""

LEDGER_INIT = '''\
"""Ledger plugin for Hermes."""
import logging
import os

logger = logging.getLogger(__name__)


def register(ctx):
    from .config import LedgerConfig
    from .engine import LedgerEngine
    from .schemas import LEDGER_FIND

    hermes_home = ""
    try:
        from hermes_cli.config import get_hermes_home
        hermes_home = str(get_hermes_home())
    except Exception as exc:
        logger.debug("no hermes_cli: %s", exc)
        hermes_home = os.environ.get("HERMES_HOME", "")
    engine = LedgerEngine(config=LedgerConfig.from_env(), hermes_home=hermes_home)
    ctx.register_context_engine(engine)
    register_skill = getattr(ctx, "register_skill", None)
    if callable(register_skill):
        register_skill("hermes-ledger", "skills", description="how to recall")
    if getattr(ctx, "context_engine_tool_handlers_receive_messages", False):
        ctx.register_tool(name="ledger_find", schema=LEDGER_FIND, handler=engine.handle_tool_call)
    ctx.register_command("ledger", lambda raw: "status", description="Ledger status")
    ctx.register_hook("pre_llm_call", lambda **payload: None)
'''

LEDGER_CONFIG = """\
from __future__ import annotations
import os
from dataclasses import dataclass


@dataclass
class LedgerConfig:
    keep: int = 4

    @classmethod
    def from_env(cls) -> "LedgerConfig":
        return cls(keep=int(os.environ.get("LEDGER_KEEP", "4")))
"""

LEDGER_SCHEMAS = """\
LEDGER_FIND = {
    "name": "ledger_find",
    "description": "Search the ledger.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}
"""

LEDGER_ENGINE = """\
from __future__ import annotations
import json
import sqlite3
from pathlib import Path
from typing import Any, Dict, List, Optional

from agent.context_engine import ContextEngine

try:
    from hermes_constants import get_hermes_home
except Exception:
    get_hermes_home = None

from .config import LedgerConfig
from .schemas import LEDGER_FIND

MARK = "[LEDGER NOTE]"


class LedgerEngine(ContextEngine):
    threshold_percent = 0.6
    protect_first_n = 1

    def __init__(self, config: LedgerConfig, hermes_home: str = "") -> None:
        self._config = config
        self._home = hermes_home
        self._conn: Optional[sqlite3.Connection] = None
        self._session_id = ""
        self.context_length = 200_000
        self.threshold_tokens = int(self.context_length * self.threshold_percent)

    @property
    def name(self) -> str:
        return "ledger"

    def is_available(self) -> bool:
        return True

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:
        self._session_id = session_id
        home = Path(kwargs.get("hermes_home") or self._home or get_hermes_home())
        home.mkdir(parents=True, exist_ok=True)
        self._conn = sqlite3.connect(home / "ledger.db")
        self._conn.execute(
            "create table if not exists rows (session text, role text, content text)"
        )

    def on_session_end(self, session_id: str, messages: List[Dict[str, Any]]) -> None:
        for message in messages:
            self._conn.execute(
                "insert into rows values (?, 'ended', ?)",
                (self._session_id, str(message.get("content"))),
            )
        self._conn.commit()

    def on_session_reset(self) -> None:
        super().on_session_reset()
        self._conn.execute("insert into rows values (?, 'reset', '')", (self._session_id,))
        self._conn.commit()

    def update_from_response(self, usage: Dict[str, Any]) -> None:
        self.last_prompt_tokens = int(usage.get("prompt_tokens", 0))
        self.last_completion_tokens = int(usage.get("completion_tokens", 0))
        self.last_total_tokens = int(usage.get("total_tokens", 0))

    def should_compress(self, prompt_tokens: int = None) -> bool:
        tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        return tokens >= self.threshold_tokens

    def compress(
        self,
        messages: List[Dict[str, Any]],
        current_tokens: int = None,
        focus_topic: str = None,
    ) -> List[Dict[str, Any]]:
        start = 1 if messages and messages[0].get("role") == "system" else 0
        start += self.protect_first_n
        end = len(messages) - self._config.keep
        while end > start and messages[end].get("role") == "tool":
            end -= 1
        if end <= start:
            return messages
        gone = messages[start:end]
        for message in gone:
            self._conn.execute(
                "insert into rows values (?, ?, ?)",
                (self._session_id, message["role"], str(message.get("content"))),
            )
        self._conn.commit()
        first = next((m["content"] for m in gone if m["role"] == "user"), "")
        text = f"{MARK} {len(gone)} messages, from {str(first)[:20]!r}"
        if focus_topic:
            text += f", about {focus_topic}"
        messages[0]["touched"] = True
        self.compression_count += 1
        role = "user" if messages[start - 1].get("role") == "assistant" else "assistant"
        return [m.copy() for m in messages[:start]] + [{"role": role, "content": text}] + [
            m.copy() for m in messages[end:]
        ]

    def get_tool_schemas(self) -> List[Dict[str, Any]]:
        return [LEDGER_FIND]

    def handle_tool_call(self, name: str, args: Dict[str, Any], **kwargs: Any) -> str:
        if name != "ledger_find":
            return json.dumps({"success": False, "error": f"Unknown tool: {name}"})
        live = [str(m.get("content")) for m in kwargs.get("messages") or []]
        kept = self._conn.execute(
            "select content from rows where session = ?", (self._session_id,)
        )
        texts = live + [content for (content,) in kept]
        query = str(args["query"])
        return json.dumps({"success": True, "hits": sum(query in text for text in texts)})

    def get_status(self) -> Dict[str, Any]:
        rows = self._conn.execute("select count(*) from rows").fetchone()[0]
        return {**super().get_status(), "ledger_rows": rows}
"""

LEDGER = {
    "plugin.yaml": LEDGER_YAML,
    "__init__.py": LEDGER_INIT,
    "config.py": LEDGER_CONFIG,
    "schemas.py": LEDGER_SCHEMAS,
    "engine.py": LEDGER_ENGINE,
}
"""As it would be unpacked into Hermes's own directory of plugins."""


def installed(directory: Path, files: dict[str, str], *, enable: bool = True) -> str:
    """A plugin of these files, and the directory of plugins as a setting says it."""
    folder = directory / "plugins" / f"folder-{len(list(directory.glob('plugins/*')))}"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    plugins = PluginDirectory(directory / "plugins")
    if enable:
        [name] = [one.name for one in plugins.plugins() if one.folder == folder]
        plugins.enable(name)
    return str(directory / "plugins")


SEED_HERMES = '''\
from contextengine_server.plugins.hermes import ContextEngine
import json


class LCMEngine(ContextEngine):
    """The class of the guide, its holes filled as its text says."""

    last_prompt_tokens: int = 0
    last_completion_tokens: int = 0
    last_total_tokens: int = 0
    threshold_tokens: int = 0
    context_length: int = 0
    compression_count: int = 0

    @property
    def name(self) -> str:
        """Short identifier, e.g. 'lcm'. Must match config.yaml value."""
        return "lcm"

    def update_from_response(self, usage: dict) -> None:
        self.last_prompt_tokens = usage["prompt_tokens"]
        self.last_completion_tokens = usage["completion_tokens"]
        self.last_total_tokens = usage["total_tokens"]

    def should_compress(self, prompt_tokens: int = None) -> bool:
        return (prompt_tokens or self.last_prompt_tokens) >= self.threshold_tokens

    def compress(self, messages: list, current_tokens: int = None,
                 focus_topic: str = None) -> list:
        self.compression_count += 1
        note = {"role": "assistant", "content": f"note {self.compression_count} of what was"}
        return messages[:1] + [note] + messages[-4:]

    def get_tool_schemas(self):
        return [{"name": "lcm_grep", "description": "Search", "parameters": {"type": "object"}}]

    def handle_tool_call(self, name, args, **kwargs):
        return json.dumps({"error": f"Unknown tool: {name}"})
'''

SEED_PYCLAW = '''\
from contextengine_server.plugins.pyclaw import (
    ContextEnginePlugin,
    ContextState,
    CompactResult,
)

class MyPlugin(ContextEnginePlugin):
    @property
    def name(self) -> str:
        return "my-plugin"
    async def bootstrap(self, state: ContextState) -> None:
        """Session init."""
        pass
    async def ingest(self, messages: list[dict], state: ContextState) -> None:
        """Process new messages."""
        pass
    async def assemble(self, state: ContextState) -> list[dict]:
        """Assemble final context for LLM consumption."""
        return []  # return OpenAI-format message list
    async def compact(
        self,
        messages: list[dict],
        state: ContextState,
        *,
        max_tokens: int | None = None,
    ) -> CompactResult:
        """Compact messages when token budget exceeded."""
        return CompactResult(
            messages=messages,
            tokens_before=1000,
            tokens_after=800,
            tokens_saved=200,
        )
'''

SEED_PERSISTENT = """\
from pathlib import Path

from contextengine_server.plugins.context_store import ContextStore
from contextengine_server.plugins.pyclaw import CompactResult, ContextState, DefaultContextPlugin

store = ContextStore(Path(__file__).parent / "data" / "context.db")


class PersistentPlugin(DefaultContextPlugin):
    async def bootstrap(self, state: ContextState) -> None:
        await super().bootstrap(state)
        chunks = await store.get_chunks(state.session_id)
        for chunk in chunks:
            self._load_chunk(chunk)

    async def on_compact_complete(self, result: CompactResult, state: ContextState) -> None:
        await store.save_chunk(
            session_id=state.session_id,
            chunk_id=f"compaction-{state.compaction_count}",
            content=result.summary or "",
        )
"""

WORKING_PYCLAW = """\
from pyclaw.agents.context.plugins import ContextEnginePluginRegistry
from pyclaw.agents.context.plugins.base import ContextEnginePlugin, CompactResult


class Diary(ContextEnginePlugin):
    name = "diary"
    description = "One line for what was"

    def __init__(self):
        self.log = []

    async def bootstrap(self, state):
        self.log.append("bootstrap")

    async def ingest(self, messages, state):
        self.log.append(f"ingest {len(messages)}")

    async def assemble(self, state):
        return []

    async def compact(self, messages, state, *, max_tokens=None):
        self.log.append(f"compact {len(messages)}")
        line = f"diary {state.compaction_count}: " + ", ".join(self.log)
        return CompactResult(messages=messages[-3:], summary=line)

    async def on_compact_complete(self, result, state):
        self.log.append(f"done {state.compaction_count}")


ContextEnginePluginRegistry.get_instance().register(Diary(), set_default=True)
"""


def single(name: str, source: str, yaml: str = "") -> dict[str, str]:
    """A plugin of one module."""
    return {"plugin.yaml": f"name: {name}\n{yaml}", "__init__.py": source}
