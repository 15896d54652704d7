"""A real server that is killed, and what must hold of every context that a client hands to its
agent meanwhile."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from contextengine import types as t
from tests import transports
from tests.acceptance.shell import COMMAND
from tests.soak.killing import free_port


class Mortal:
    """`contextengine serve` on one port and one store through several lives."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.address = f"127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it. Does not wait until it serves."""
        environment = transports.environment()
        words = ["serve", "--address", self.address, "--store", str(self._directory / "store.db")]
        with (self._directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [COMMAND, *words], stdout=log, stderr=log, cwd=self._directory, env=environment
            )

    def stop(self) -> int:
        """SIGTERM, and waits until it has drained and is gone. Answers its exit status."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(60)

    def hang(self, hangs: bool) -> None:
        """Lets it stand still with its connections open, or go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP if hangs else signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and waits until it is gone."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(30)

    def end(self) -> None:
        """Ends whatever runs."""
        if self._process is not None and self._process.poll() is None:
            self.kill()


def faults(
    items: Sequence[t.Item], known: Mapping[str, t.Message], asked: str, budget: int, tokens: int
) -> list[str]:
    """What is wrong with a context: `known` is all that was handed over, `asked` the id of the
    newest user message."""
    found: list[str] = []
    waiting: list[str] = []
    for index, item in enumerate(items):
        message = item.message
        if not message.id.startswith("ce:") and not item.form and message != known.get(message.id):
            found.append(f"{message.id} is not what was handed over")
        results = [
            part.tool_result.call_id for part in message.parts if part.HasField("tool_result")
        ]
        for call in results:
            if call in waiting:
                waiting.remove(call)
            else:
                found.append(f"{message.id} answers {call}, which nobody called")
        if not results:
            if waiting:
                found.append(f"{waiting} have no result before {message.id}, {index}")
            waiting = [
                part.tool_call.call_id for part in message.parts if part.HasField("tool_call")
            ]
    ids = [item.message.id for item in items]
    if len(set(ids)) != len(ids):
        found.append("a message is there twice")
    if asked not in ids:
        found.append(f"{asked}, the last user message, is missing")
    if tokens > budget:
        found.append(f"{tokens} tokens exceed {budget}")
    return found
