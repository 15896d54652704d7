"""Hosts that decide for themselves what their model sees: the service records their conversation by
the hooks of a plugin of ours, and the model finds by its tools what it no longer sees."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from starlette.responses import JSONResponse, Response

from tests.acceptance.shell import ROOT
from tests.hosts.providers import Answer, Json
from tests.hosts.upstream import Upstream, serving
from tests.hosts.walk import commands

from .brain import NOTHING, Brain, ModelFailed, found, texts_of
from .host import Host


class RecordedHost(Host):
    """The program itself, in a home of its own, with the plugin as docs/hosts.md installs it."""

    assembles = False
    forgets_failed = False
    title: ClassVar[str]
    """Its part of docs/hosts.md."""
    summarizing: ClassVar[str]
    """How the words begin by which the host asks for a summary of the conversation."""

    def __init__(self, address: str, brain: Brain) -> None:
        super().__init__(address, brain)
        self.life = AsyncExitStack()
        self.folder = Path(self.life.enter_context(TemporaryDirectory(prefix="host-")))
        self.work = self.folder / "work"
        self.work.mkdir()
        self.session = ""
        self.upstream = Upstream(self._answer)
        self.provider = ""
        self._told: list[str] = []
        """The texts of the newest request that was answered, and its answer."""

    async def start(self) -> None:
        if not self.provider:
            application = self.upstream.application
            self.provider = await self.life.enter_async_context(serving(application))
            await self.install()
        await self.open()

    async def end(self) -> None:
        await self.stop()
        await self.life.aclose()

    async def install(self) -> None:
        """Sets the host up, once, by what docs/hosts.md says."""
        typed = [shlex.split(line) for line in commands()[self.title]]
        for words in typed:
            if words[0] == self.name.split("-")[0] and words[1:]:
                process = await self.begin(*words[1:], where=ROOT)
                out, _ = await process.communicate()
                assert process.returncode == 0, out.decode()

    async def begin(self, *words: str, where: Path | None = None) -> asyncio.subprocess.Process:
        """Starts the program. where: the folder; None: that of the work."""
        program = self.binary()
        assert program is not None
        return await asyncio.create_subprocess_exec(
            program,
            *words,
            cwd=where or self.work,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL if where is None else asyncio.subprocess.STDOUT,
            limit=2**26,
            env={
                # The commands of integrations/mcp stand beside the Python that runs the tests.
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "HOME": str(self.folder),
                "CONTEXTENGINE_ADDRESS": self.address,
                **self.settings(),
            },
        )

    @abstractmethod
    def binary(self) -> Path | None:
        """The program that npm brought for this platform. None: it is not installed."""

    @abstractmethod
    def settings(self) -> dict[str, str]:
        """What the program is told by its environment."""

    @abstractmethod
    async def open(self) -> None:
        """Starts the program, in the session that there is, or in a new one."""

    @abstractmethod
    def call(self, of: str) -> tuple[str, Json]:
        """The tool by which the model looks up a file, and its arguments."""

    @abstractmethod
    def search(self, wanted: str) -> Answer:
        """The call by which the model searches the conversation."""

    async def transcript(self) -> list[str]:
        return self._told

    def _answer(self, number: int, given: Json) -> Answer | Response:
        rows = given["messages"] if "messages" in given else given["input"]
        rows = [row for row in rows if row.get("role") not in ("system", "developer")]
        said = [text.rstrip() for row in rows for text in texts_of(row)]
        texts = [text for text in said if not self.own(text)]
        try:
            answer = self.brain.answer(texts, _by_user(rows))
        except ModelFailed as error:
            told = {"message": str(error), "type": "invalid_request_error", "code": error.code}
            return JSONResponse({"type": "error", "error": told}, 400)
        if texts[-1].startswith(self.summarizing):
            return answer
        self._told = [*texts, answer.words] if answer.words else texts
        if answer.calls and "query" in answer.calls[0]:
            return self.search(answer.calls[0]["query"])
        for call in answer.calls:
            of = call["of"]
            if of != NOTHING:
                (self.work / of).write_text(found(of), encoding="utf-8")
        made = [self.call(call["of"]) for call in answer.calls]
        return Answer(answer.words, [call for _, call in made], tool=made[0][0] if made else "none")


def _by_user(rows: Sequence[Any]) -> bool:
    return bool(rows) and rows[-1].get("role") == "user"
