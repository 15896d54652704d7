"""Random lives of a host's model with the tools over MCP: what was said is found, page by page and
to the letter, whatever was asked, broken off or away before; and the process that serves them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from grpc import StatusCode
from mcp import Client

from contextengine import AsyncClient, ContextEngineError, user
from contextengine.errors import SessionNotFound
from contextengine_mcp.away import Away
from contextengine_mcp.later import Later
from contextengine_mcp.names import Names
from contextengine_mcp.server import STATUS, server
from tests.hosts.gate import Way, gate
from tests.integration.harness import House, house, ref

MOST_CHARS = 60_000
"""What an answer may take of a model's context: hosts cut it at 25,000 tokens."""
LIFE = ref("talk", agent="codex")
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("ctx_search", {}),
    ("ctx_search", {"query": 5}),
    ("ctx_search", {"query": "x" * 100_000}),
    ("ctx_search", {"query": "(((", "mode": "regex"}),
    ("ctx_search", {"query": "a", "limit": 10**400}),
    ("ctx_search", {"query": "a", "page": "\u202e\0"}),
    ("ctx_search", {"query": "a", "of": 1}),
    ("ctx_expand", {"sequences": [{}]}),
    ("ctx_expand", {"sequences": [1], "session_id": "others/../talk"}),
    ("ctx_inspect", {"summary_id": ["a"]}),
    ("", {}),
    ("no such tool" * 1_000, {}),
]


def said(answer: Any) -> Any:
    """What a tool answered, which no context is flooded by."""
    text = answer.content[0].text
    assert len(text) < MOST_CHARS
    return json.loads(text)


class Life:
    """A host, its model, and the service behind a gate."""

    def __init__(self, seed: int, home: House, host: Client) -> None:
        self.random, self.home, self.host = Random(seed), home, host
        self.texts: list[str] = []

    async def live(self) -> None:
        for _ in range(25):
            await self.random.choice(
                (self.talk, self.talk, self.find, self.read, self.err, self.stop, self.many)
            )()

    async def talk(self) -> None:
        for _ in range(self.random.randint(1, 12)):
            filler = self.random.choice(("", "\u202e😀 ", "so it goes " * 2_000))
            self.texts.append(f"door{len(self.texts):03} {filler}is open")
            at = len(self.texts)
            await self.home.client.ingest(LIFE, user(self.texts[-1], id=f"u{at}"))

    async def find(self) -> None:
        """Each message is found, once, over all pages."""
        given: dict[str, Any] = {"query": "open", "limit": self.random.choice((-1, 1, 7, 10**9))}
        found: list[int] = []
        while self.texts:
            page = said(await self.host.call_tool("ctx_search", given))
            found += [hit["sequence"] for hit in page["hits"]]
            if "next_page" not in page:
                break
            given["page"] = page["next_page"]
        assert sorted(found) == list(range(1, len(self.texts) + 1))

    async def read(self) -> None:
        """A message comes back to the letter, in pieces where it is long."""
        if not self.texts:
            return
        at = self.random.randrange(len(self.texts))
        given: dict[str, Any] = {"sequences": [at + 1]}
        pieces: list[str] = []
        while True:
            page = said(await self.host.call_tool("ctx_expand", given))
            pieces += [one["text"] for one in page["items"]]
            if "next_page" not in page:
                break
            given["page"] = page["next_page"]
        assert all(f"door{at:03} " in text or "so it goes" in text for text in pieces)
        assert self.texts[at][:40] in pieces[0]
        assert "is open" in pieces[-1]

    async def err(self) -> None:
        if self.texts:
            name, given = self.random.choice(WRONG)
            answer = await self.host.call_tool(name, given)
            assert answer.is_error
            assert said(answer)["error"]["message"]

    async def stop(self) -> None:
        """A host breaks calls off."""
        calls = [
            asyncio.ensure_future(self.host.call_tool("ctx_search", {"query": "open"}))
            for _ in range(3)
        ]
        await asyncio.sleep(self.random.random() * 0.01)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    async def many(self) -> None:
        """Several at once, each with its own answer."""
        if self.texts:
            words = [f"door{self.random.randrange(len(self.texts)):03}" for _ in range(8)]
            asked = [self.host.call_tool("ctx_search", {"query": word}) for word in words]
            for word, answer in zip(words, await asyncio.gather(*asked), strict=True):
                assert f"{word} " in said(answer)["hits"][0]["snippet"]


@pytest.mark.parametrize("seed", [0, 1])
async def test_what_was_said_is_found_whatever_was_asked_before(tmp_path: Path, seed: int) -> None:
    async with AsyncExitStack() as life:
        home = await life.enter_async_context(house(tmp_path))
        client = await life.enter_async_context(AsyncClient(home.app.address, retry_for=0))
        away = Away("", lambda: None, tmp_path)
        serving = server(client, Names("codex", "talk"), away)
        host = await life.enter_async_context(Client(serving))
        await Life(seed, home, host).live()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (SessionNotFound("none", code=StatusCode.NOT_FOUND), True),
        (ContextEngineError("not yours", code=StatusCode.PERMISSION_DENIED), False),
    ],
    ids=["no session yet", "refused"],
)
async def test_a_service_that_answers_is_not_asked_again(
    answer: ContextEngineError, told: bool
) -> None:
    away = ContextEngineError("away", code=StatusCode.UNAVAILABLE)
    answers, asked, heard = iter([away, answer]), list[None](), list[None]()

    class Session:
        async def send_tool_list_changed(self) -> None:
            heard.append(None)

    async def there() -> None:
        asked.append(None)
        raise next(answers)

    later = Later(pause=0.01)
    async with later.living(None):
        later.tell(Session(), there)  # type: ignore[arg-type]
        await asyncio.sleep(0.3)
    assert len(asked) == 2
    assert bool(heard) == told


async def test_a_host_hears_of_tools_that_it_could_not_be_told_of(tmp_path: Path) -> None:
    async with AsyncExitStack() as life:
        home = await life.enter_async_context(house(tmp_path))
        await home.client.ingest(LIFE, user("The door code is 4711.", id="u1"))
        way = await life.enter_async_context(gate(home.app.address))
        way.turn(Way.CLOSED)
        client = await life.enter_async_context(AsyncClient(way.address, retry_for=0, breaker=True))
        names, away = Names("codex", "talk"), Away("", lambda: None, tmp_path)
        serving = server(client, names, away, Later(pause=0.05))
        host = await life.enter_async_context(Client(serving))
        heard = await life.enter_async_context(host.listen(tools_list_changed=True))
        for _ in range(2):
            assert [tool.name for tool in (await host.list_tools()).tools] == [STATUS]
        refused = await host.call_tool("ctx_search", {"query": "door"})
        assert refused.is_error
        assert said(refused)["error"]["code"] == "unavailable"
        assert "go on without it" in said(refused)["error"]["message"]
        way.turn(Way.OPEN)
        async with asyncio.timeout(20):
            async for _ in heard:
                break
        assert len((await host.list_tools()).tools) > 1
        assert said(await host.call_tool("ctx_search", {"query": "door"}))["total"] == 1


class Process:
    """The command, spoken to by its lines, as hosts of the protocol before 2026 do."""

    def __init__(self, running: asyncio.subprocess.Process) -> None:
        self.running = running

    @staticmethod
    async def begun(address: str, *words: str) -> Process:
        running = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "contextengine_mcp.command", "--agent", "codex"),
            *("--address", address, *words),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PYTHONPATH": ":".join(sys.path), "PATH": os.environ["PATH"]},
        )
        made = Process(running)
        about = {"name": "host", "version": "1"}
        began = await made.asked(
            "initialize", protocolVersion="1999-01-01", capabilities={}, clientInfo=about
        )
        assert began["serverInfo"]["version"]
        assert began["capabilities"]["tools"] == {"listChanged": True}
        await made.sent({"method": "notifications/initialized"})
        return made

    async def sent(self, message: dict[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message})
        assert self.running.stdin is not None
        self.running.stdin.write(f"{line}\n".encode())
        await self.running.stdin.drain()

    async def asked(self, method: str, **params: Any) -> Any:
        await self.sent({"id": 1, "method": method, "params": params})
        assert self.running.stdout is not None
        async with asyncio.timeout(30):
            return json.loads(await self.running.stdout.readline())["result"]

    async def called(self, tool: str, **given: Any) -> Any:
        answer = await self.asked("tools/call", name=tool, arguments=given)
        return json.loads(answer["content"][0]["text"])

    async def ended(self) -> tuple[int, bytes]:
        """Its exit status, and what it said to people."""
        assert self.running.stderr is not None
        async with asyncio.timeout(30):
            told = await self.running.stderr.read()
            return await self.running.wait(), told


async def test_the_process_reads_what_is_no_text_and_ends_when_its_host_does(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as home:
        await home.client.ingest(LIFE, user("The door code is 4711 😀.", id="u1"))
        host = await Process.begun(home.app.address, "--session-id", "talk")
        # json.dumps writes half a pair as JavaScript does.
        for word in ("\ud83d door", "door \\ud83d \ude00", "door 😀"):
            found = await host.called("ctx_search", query=word)
            assert "hits" in found
        tools = (await host.asked("tools/list"))["tools"]
        assert all(tool["annotations"]["readOnlyHint"] for tool in tools)
        assert host.running.stdin is not None
        host.running.stdin.close()
        assert await host.ended() == (0, b"")

        host = await Process.begun(home.app.address, "--session-key", "/fold\udcffer")
        assert len((await host.asked("tools/list"))["tools"]) > 1
        missing = (await host.called("ctx_search", query="door"))["error"]
        assert missing["code"] == "session_not_found"
        assert "'/fold?er' of agent 'codex'" in missing["message"]
        host.running.send_signal(2)
        assert (await host.ended())[1] == b""

        host = await Process.begun(home.app.address, "--session-id", "talk")
        transport: Any = host.running._transport  # type: ignore[attr-defined]
        transport.get_pipe_transport(1).close()
        for _ in range(3):
            with suppress(OSError):
                await host.sent({"id": 2, "method": "ping"})
            await asyncio.sleep(0.1)
        host.running.stdin.close()  # type: ignore[union-attr]
        assert await host.ended() == (0, b"")
