"""What the table of scenarios is played on: a service that can be killed, each host in front of it,
and what its user says."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from contextengine import AsyncClient, text_of
from contextengine.types import SessionRef
from tests.acceptance.shell import serving
from tests.hosts.frameworks.brain import NOTHING, Brain, calling
from tests.hosts.frameworks.host import Host
from tests.hosts.gate import Gate, Way, gate
from tests.hosts.stage import soon
from tests.hosts.wire import Wire

WHERE = {
    "langchain": ("langchain.agents", "langchain_host", "LangChainHost"),
    "langgraph": ("langgraph.prebuilt", "langchain_host", "LangGraphHost"),
    "openai-agents": ("agents.run", "openai_agents_host", "OpenAIAgentsHost"),
    "pydantic-ai": ("pydantic_ai.capabilities", "pydantic_ai_host", "PydanticAIHost"),
    "google-adk": ("google.adk.plugins", "google_adk_host", "GoogleAdkHost"),
    "proxy-chat": ("openai", "proxy_hosts", "ChatProxyHost"),
    "proxy-responses": ("openai", "proxy_hosts", "ResponsesProxyHost"),
    "proxy-anthropic": ("anthropic", "proxy_hosts", "AnthropicProxyHost"),
    "ai-sdk": ("npm:../../integrations/ai-sdk/dist/src/index.js", "ai_sdk_host", "AiSdkHost"),
    "codex": (
        "npm:../codex/node_modules/@openai/codex-*/vendor/*/bin/codex",
        "codex_host",
        "CodexHost",
    ),
    "claude-code": (
        "npm:claude-code/node_modules/@anthropic-ai/claude-code-*/claude",
        "claude_code_host",
        "ClaudeCodeHost",
    ),
}
"""What each host needs, a module or a program that npm brings, and where it is."""
HERE = Path(__file__).parent


class Stage:
    """A service of its own process, which can be killed, behind a way that can be closed."""

    def __init__(self, path: Path, way: Gate, wire: Wire | None = None) -> None:
        """wire: what calls are counted by. None: they are not."""
        self.path, self.way, self._wire = path, way, wire
        self.brain = Brain()
        self.life = ExitStack()
        self.address = ""

    def serve(self) -> None:
        """Begins, or begins again over what was stored."""
        server = self.life.enter_context(serving(self.path))
        self.process, self.address = server.process, server.address
        if self._wire is not None:
            self._wire.target = server.address
        self.way.lead_to(self._wire.address if self._wire else server.address)
        self.way.turn(Way.OPEN)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()
        self.way.turn(Way.CLOSED)

    async def stored(self, ref: SessionRef) -> list[str]:
        """The texts of the session's view, in order."""
        async with AsyncClient(self.address, retry_for=0) as client:
            rows = [
                reply.message
                async for reply in client.sessions.export(ref)
                if reply.HasField("message")
            ]
        texts = [text_of(row.message) for row in rows if not row.retired_revision]
        return [text for text in texts if text]

    async def compact(self, host: Host) -> None:
        """Compacts the session though it need not be, as `contextengine compact --force` does."""
        async with AsyncClient(self.address, retry_for=0) as client:
            done = await client.compact(host.ref, force=True)
        assert done.compacted, done.reason

    async def agrees(self, host: Host) -> None:
        """Waits until the service holds what the host has, in its order and nothing else."""
        await self.holds(host, await host.transcript())

    async def holds(self, host: Host, texts: list[str]) -> None:
        """Waits until the service holds these texts, in their order and nothing else."""
        wanted = joined(texts)

        async def same() -> bool:
            return await self.view(host, host.ref) == wanted

        try:
            await soon(same)
        except TimeoutError:
            assert await self.view(host, host.ref) == wanted

    async def view(self, host: Host, ref: SessionRef) -> str:
        """What the user, the model and its tools said in a session, in order."""
        return joined([text for text in await self.stored(ref) if not host.own(text)])

    async def rested(self, host: Host) -> None:
        """Waits until the background owes the session nothing: it has a second for it where a real
        model answers."""

        async def done() -> bool:
            async with AsyncClient(self.address, retry_for=0) as client:
                return not (await client.get_status(host.ref)).jobs

        await soon(done)

    async def summarized(self, host: Host) -> None:
        """Waits until the background has made a summary: a real model takes longer than ours."""

        async def there() -> bool:
            async with AsyncClient(self.address, retry_for=0) as client:
                return (await client.get_status(host.ref)).summary_count > 0

        await soon(there)


def joined(texts: list[str]) -> str:
    """Texts in their order, however a format parts them into messages, and whether or not a host
    cuts off the blanks and empty lines behind them."""
    lines = [line.rstrip() for line in "\n".join(texts).split("\n")]
    return "\n".join(line for line in lines if line)


def found(name: str) -> type[Host] | None:
    """The host of a name. None: it is not installed here."""
    needs, module, kind = WHERE[name]
    if needs.startswith("npm:"):
        if not any(HERE.glob(needs.removeprefix("npm:"))):
            return None
    else:
        try:
            importlib.import_module(needs)
        except ImportError:
            return None
    host: type[Host] = getattr(importlib.import_module(f"tests.hosts.frameworks.{module}"), kind)
    return host


@asynccontextmanager
async def played(
    name: str, path: Path, wire: Wire | None = None
) -> AsyncIterator[tuple[Stage, Host]]:
    """A host with the service behind it. wire: what its calls are counted by. None: they are
    not."""
    kind = found(name)
    if kind is None:
        pytest.skip(f"{name} is not installed")
    async with gate("127.0.0.1:1") as way:
        stage = Stage(path, way, wire)
        with stage.life:
            stage.serve()
            host = kind(way.address, stage.brain)
            async with host.running():
                yield stage, host


def question(turn: int) -> str:
    """What the user says. Some turns call the tool, some twice at once, some in vain."""
    kinds = ["", calling(f"{turn}-a"), calling(f"{turn}-a", f"{turn}-b", NOTHING), ""]
    return f"Question {turn}? {kinds[turn % 4]} {'please ' * 40}".rstrip()


def questions_in(texts: list[str]) -> list[str]:
    return [text.split("?")[0] for text in texts if text.startswith("Question")]
