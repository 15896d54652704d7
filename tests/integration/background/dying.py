"""A real server in a process of its own that dies by SIGKILL at a named point of a pass of its
compactions.

    python -m tests.integration.background.dying STORE POINT PASS

It prints its address once it serves. Everything in it is the service's own, but for the deadly
steps laid over it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from contextengine_server.app import App, running
from contextengine_server.compaction.compactor import Compactor
from contextengine_server.config.load import load_settings
from contextengine_server.store.rows import Commit
from contextengine_server.summarize.request import SummaryRequest, SummaryResult

LONGEST_S = 150
"""Where it does not die it ends by then."""

POINTS = ("planned", "summarizing", "summarized", "committing", "writing", "committed")
"""In order. `writing` is somewhere within the transaction."""


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody survives this")


def arm(app: App, point: str, number: int) -> None:
    """Lays the deadly step over the service: it is taken in the `number`-th pass."""
    plan, write = Compactor.next_pass, app.store.commit
    summarizer = app.core.summaries.summarizer
    counts = dict.fromkeys(POINTS, 0)

    def reached(here: str) -> bool:
        counts[here] += 1
        return here == point and counts[here] == number

    async def next_pass(*arguments: Any) -> Any:
        made = await plan(*arguments)
        if reached("planned"):
            die()
        return made

    class Deadly:
        name = "deadly"

        async def summarize(self, request: SummaryRequest) -> SummaryResult:
            if reached("summarizing"):
                die()
            result = await summarizer.summarize(request)
            if reached("summarized"):
                die()
            return result

    async def commit(change: Commit) -> None:
        if not change.summaries:
            return await write(change)
        if reached("committing"):
            die()
        if reached("writing"):
            under_way = asyncio.ensure_future(write(change))
            await asyncio.sleep(0.001)
            assert not under_way.cancelled()
            die()
        await write(change)
        if reached("committed"):
            die()
        return None

    Compactor.next_pass = next_pass  # type: ignore[method-assign, assignment]
    app.core.summaries.summarizer = Deadly()
    app.store.commit = commit  # type: ignore[method-assign, assignment]


async def serve(store: str, point: str, number: int) -> None:
    settings = load_settings(None, {"server.address": "127.0.0.1:0", "store.url": store}, {})
    async with running(settings) as app:
        arm(app, point, number)
        print(app.address, flush=True)
        await asyncio.sleep(LONGEST_S)


class Dying:
    """The process, as a test has it."""

    def __init__(self, store: Path, point: str, number: int) -> None:
        self.arguments = (str(store), point, str(number))
        self.process: asyncio.subprocess.Process

    async def start(self) -> str:
        """Starts it; its address."""
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", __name__, *self.arguments, stdout=asyncio.subprocess.PIPE
        )
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            if line.startswith(b"127.0.0.1:"):
                return line.decode().strip()
        raise AssertionError(f"it did not serve: exit {await self.process.wait()}")

    async def dead(self) -> int:
        """Waits until it is dead; how it ended."""
        return await self.process.wait()

    def end(self) -> None:
        """Ends it where it still lives."""
        if self.process.returncode is None:
            self.process.kill()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2], int(sys.argv[3])))
