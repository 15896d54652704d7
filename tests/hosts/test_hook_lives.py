"""Random conversations of Claude Code, whose hooks are called at any moment while the transcript is
written: in the end the session is what the transcript says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from contextengine.formats import read_transcript
from tests.hosts.test_hooks import HERE, Host, answered, entry, said
from tests.integration.harness import house

EVENTS = ("SessionStart", "UserPromptSubmit", "PreCompact", "Stop")
Entries = list[dict[str, Any]]


class Talk:
    """What Claude Code writes down, one happening after the other."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._named = 0
        self._tip: str | None = None
        self._ends: list[str | None] = [None]
        """Where a user may go back to."""

    def goes_on(self) -> Entries:
        """A turn, or a compaction of the host's."""
        if self._tip and self._random.random() < 0.05:
            return self._compacted()
        if self._random.random() < 0.12:
            self._tip = self._random.choice(self._ends)
        asked = self._name("u")
        written = [said(asked, self._tip, f"ask {asked}")]
        self._tip = asked
        for _ in range(self._random.randint(0, 3)):
            written += self._worked()
            if self._random.random() < 0.1:
                return written  # interrupted
        reply = self._name("m")
        written += [*self._thoughts(reply), self._block(reply, "text")]
        self._ends.append(self._tip)
        return written

    def _worked(self) -> Entries:
        """A reply that calls tools, some of which answer before its last block is there."""
        reply = self._name("m")
        written = self._thoughts(reply)
        running = []
        for _ in range(self._random.randint(1, 3)):
            written.append(self._block(reply, "tool_use"))
            running.append(str(self._tip))
            if self._random.random() < 0.3:
                written.append(self._answered(running.pop()))
        for call in running:
            if self._random.random() < 0.9:
                written.append(self._answered(call))
                self._tip = written[-1]["uuid"]
        return written

    def _thoughts(self, reply: str) -> Entries:
        return [self._block(reply, "thinking")] if self._random.random() < 0.5 else []

    def _block(self, reply: str, kind: str) -> dict[str, Any]:
        name = self._name("a")
        said_in: dict[str, dict[str, Any]] = {
            "thinking": {"thinking": "hm", "signature": "s"},
            "text": {"text": f"say {name}"},
            "tool_use": {"id": f"call-{name}", "name": "look", "input": {}},
        }
        content = [{"type": kind, **said_in[kind]}]
        message = {"id": reply, "role": "assistant", "content": content}
        written = entry(name, self._tip, "assistant", message)
        self._tip = name
        return written

    def _answered(self, block: str) -> dict[str, Any]:
        return answered(self._name("r"), block, f"call-{block}")

    def _compacted(self) -> Entries:
        boundary, summary = self._name("b"), self._name("k")
        mark = {"type": "system", "subtype": "compact_boundary", "logicalParentUuid": self._tip}
        self._tip = summary
        self._ends.append(summary)
        told = said(summary, boundary, f"summary {summary}", isCompactSummary=True)
        return [{**said(boundary, None, ""), **mark}, told]

    def _name(self, kind: str) -> str:
        self._named += 1
        return f"{kind}{self._named}"


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with house(tmp_path) as home:
        yield Host(home, tmp_path)


@pytest.mark.parametrize("seed", range(12))
async def test_the_session_is_what_the_transcript_says(host: Host, seed: int) -> None:
    random = Random(seed)
    talk, written = Talk(random), b""
    for _ in range(random.randint(3, 12)):
        for one in talk.goes_on():
            written += json.dumps(one).encode() + b"\n"
            if random.random() < 0.3:
                unfinished = random.choice([0, 0, 7]) if written.count(b"\n") > 1 else 0
                host.file.write_bytes(written[: len(written) - unfinished])
                await host.fire(random.choice(EVENTS))
    host.file.write_bytes(written)
    await host.fire("Stop")
    (transcript,) = read_transcript(host.file)
    rows = [row.message for row in await host.home.rows(HERE) if not row.retired_revision]
    assert [(one.id, [*one.parts]) for one in rows] == [
        (one.id, [*one.parts]) for one in transcript.messages
    ]
