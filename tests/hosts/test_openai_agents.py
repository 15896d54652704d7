"""A session of the OpenAI Agents SDK is what the SDK's own would be, as long as it all fits: held
to its SQLite session in made-up lives. Runs where the SDK is installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("agents")

from agents import SQLiteSession
from agents.memory.session_settings import SessionSettings

from contextengine import AsyncClient
from contextengine_openai_agents import ContextengineSession
from tests.integration.harness import house

OPEN = ("function_call", "function_call_output", "reasoning")
"""What a host takes back whole: a step of which the call stayed would be no request for a model."""


class Talk:
    """What a run may add, made up."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._numbers: Iterator[int] = count()

    def number(self) -> int:
        return next(self._numbers)

    def piece(self) -> list[Any]:
        """A request, instructions, a step or an answer."""
        match self.random.choice(
            ("user", "user", "picture", "developer", "step", "step", "answer")
        ):
            case "user":
                said = self.random.choice(("go on", "yes", f"question {self.number()}"))
                return [{"role": "user", "content": said}]
            case "picture":
                image = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
                text = {"type": "input_text", "text": f"see {self.number()}"}
                return [{"role": "user", "content": [text, {**image, "detail": "auto"}]}]
            case "developer":
                return [{"role": "developer", "content": f"mode {self.number()}"}]
            case "step":
                return [*self._thought(), *self._said(0.3), *self._calls()]
            case _:
                return [*self._thought(), *self._said(1.0)]

    def _thought(self) -> list[Any]:
        thought = {"id": f"rs_{self.number()}", "type": "reasoning", "summary": []}
        signed = {"summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"}
        return self.random.choice(([], [thought], [{**thought, **signed}]))

    def _said(self, share: float) -> list[Any]:
        if self.random.random() >= share:
            return []
        said = self.random.choice(("done", "ok", f"answer {self.number()}"))
        content = {"type": "output_text", "text": said, "annotations": []}
        return [
            {
                "id": f"msg_{self.number()}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [content],
            }
        ]

    def _calls(self) -> list[Any]:
        # Providers count from the start again in each reply.
        again = self.random.random() < 0.3
        ids = [f"call_{at if again else self.number()}" for at in range(self.random.randint(1, 3))]
        calls = [
            {
                "id": f"fc_{self.number()}",
                "type": "function_call",
                "call_id": id,
                "name": "look",
                "arguments": json.dumps({"of": self.random.choice("abc")}),
                "status": "completed",
            }
            for id in ids
        ]
        found = [self.random.choice(("found", "", f"found {self.number()}" * 40)) for _ in ids]
        return [
            *calls,
            *(
                {"type": "function_call_output", "call_id": id, "output": one}
                for id, one in zip(ids, found, strict=True)
            ),
        ]


def _opened(client: AsyncClient) -> ContextengineSession:
    return ContextengineSession("talk", client, window=400_000, patience=20.0)


@pytest.mark.parametrize("seed", range(12))
async def test_it_holds_what_the_sdks_own_holds(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    talk = Talk(random)
    async with house(tmp_path) as living:
        client = living.client
        ours = _opened(client)
        theirs = SQLiteSession("talk", ":memory:")
        for _ in range(15):
            match random.choice(("add", "add", "add", "pop", "pop", "clear", "again")):
                case "add":
                    pieces = [talk.piece() for _ in range(random.randint(1, 3))]
                    for added in (pieces[0], [item for one in pieces[1:] for item in one]):
                        await ours.add_items(added)
                        await theirs.add_items(added)
                case "pop":
                    for _ in range(random.randint(1, 3)):
                        assert await ours.pop_item() == await theirs.pop_item()
                    while (left := await theirs.get_items()) and left[-1].get("type") in OPEN:
                        assert await ours.pop_item() == await theirs.pop_item()
                case "clear" if random.random() < 0.3:
                    await ours.clear_session()
                    await theirs.clear_session()
                case "again":
                    ours = _opened(client)
            limit = random.choice((None, None, 0, 3, 50))
            assert await ours.get_items(limit) == await theirs.get_items(limit)
        ours.session_settings = theirs.session_settings = SessionSettings(limit=5)
        assert await ours.get_items() == await theirs.get_items()
