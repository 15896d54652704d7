"""The drivers of the clients: which there are, how each is started, and talking to one."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, Queue
from typing import Any, TypeVar

from google.protobuf.message import Message as ProtoMessage

from contextengine import types as t

ROOT = Path(__file__).parents[2]
PYTHON = [sys.executable, "-m", "tests.conformance.drivers.python_driver"]
JAVA = os.pathsep.join(
    str(ROOT / "clients/java/target" / part) for part in ("classes", "test-classes", "lib/*")
)
COMMANDS: dict[str, list[str]] = {
    "python": PYTHON,
    "python-asyncio": [*PYTHON, "--asyncio"],
    "go": [str(ROOT / "build" / "clients" / "conformance-driver")],
    "typescript": [
        "node",
        str(ROOT / "clients" / "typescript" / "dist" / "conformance" / "driver.js"),
    ],
    "java": ["java", "-cp", JAVA, "dev.contextengine.conformance.ConformanceDriver"],
    "rust": [str(ROOT / "build" / "rust" / "debug" / "examples" / "conformance_driver")],
}
"""How each driver is started, from the root of the repository. A new language adds its line
here."""
NAMED = os.environ.get("CONTEXTENGINE_CLIENTS", "python").split(",")
"""The clients to test: `make test-clients` names those that it built, other runs take those that
need no building."""
PATIENCE_S = 60

Kind = TypeVar("Kind", bound=ProtoMessage)
Json = dict[str, Any]


class Refused(Exception):
    """What a driver answered as an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error['type']} {error['reason']} {error['code']}: {error['message']}")
        self.error = error


def written(message: ProtoMessage) -> str:
    """An encoding as the protocol carries it."""
    return base64.b64encode(message.SerializeToString(deterministic=True)).decode()


def read(kind: type[Kind], encoded: str) -> Kind:
    """What the protocol carries."""
    found: Kind = kind.FromString(base64.b64decode(encoded))
    return found


class Driver:
    """A driver that runs, and the ops of tests/conformance/protocol.md."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._process = subprocess.Popen(
            COMMANDS[language],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._lines: Queue[str] = Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def send(self, op: str, **more: Any) -> None:
        """Asks without waiting for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"op": op, **more}) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Json:
        """The next answer. Raises Refused for an error."""
        try:
            line = self._lines.get(timeout=PATIENCE_S)
        except Empty:
            raise AssertionError(f"{self.language}: no answer within {PATIENCE_S} s") from None
        assert line, f"{self.language}: the driver ended"
        answer: Json = json.loads(line)
        assert "defect" not in answer, f"{self.language}: {answer['defect']}"
        if "error" in answer:
            raise Refused(answer["error"])
        return answer

    def ask(self, op: str, **more: Any) -> Json:
        """Asks and waits for the answer."""
        self.send(op, **more)
        return self.hear()

    def connect(self, target: str, **settings: Any) -> None:
        self.ask("connect", target=target, settings=settings)

    def call(self, rpc: str, request: ProtoMessage, kind: type[Kind]) -> Kind:
        return read(kind, self.ask("call", rpc=rpc, request=written(request))["response"])

    def session(
        self,
        session: Json,
        method: str,
        request: ProtoMessage,
        kind: type[Kind],
        fallback: bool | None = None,
    ) -> Kind:
        more = {} if fallback is None else {"fallback": fallback}
        asked = {"session": session, "method": method, "request": written(request), **more}
        return read(kind, self.ask("session", **asked)["response"])

    def assemble(
        self,
        session: Json,
        request: t.AssembleRequest,
        delta: bool = True,
        fallback: bool | None = None,
        host_messages: Sequence[t.Message] | None = None,
    ) -> Context:
        more: Json = {} if fallback is None else {"fallback": fallback}
        if host_messages is not None:
            more["host_messages"] = [written(message) for message in host_messages]
        asked = {"session": session, "request": written(request), "delta": delta, **more}
        return Context(self.ask("assemble", **asked))

    def project_codex(self, session: Json, request: t.AssembleRequest) -> t.ProjectResponse:
        answer = self.ask("project_codex", session=session, request=written(request))
        return read(t.ProjectResponse, answer["response"])

    def export(self, session: Json) -> list[bytes]:
        """Messages in Python's encoding: libraries differ in the order of fields, which says
        nothing."""
        messages = [
            read(t.Message, message) for message in self.ask("export", session=session)["messages"]
        ]
        return [message.SerializeToString(deterministic=True) for message in messages]

    def pending(self, session: Json | None = None) -> int:
        return int(self.ask("pending", session=session)["pending"])

    def close(self) -> None:
        """Ends the driver and waits for it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()


class Context:
    """What `assemble` answered."""

    def __init__(self, answer: Json) -> None:
        self.items = [read(t.Item, item) for item in answer["items"]]
        self.response = read(t.AssembleResponse, answer["response"])
        self.degraded: Json | None = answer["degraded"]

    @property
    def ids(self) -> list[str]:
        return [item.message.id for item in self.items]

    @property
    def bytes(self) -> Sequence[bytes]:
        """The items as they are, encoded."""
        return [item.SerializeToString(deterministic=True) for item in self.items]
