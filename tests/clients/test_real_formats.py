"""Real conversations through each format and each language: what a message was made of comes back
byte for byte, and without its original it says the same to a model."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from contextengine import types as t
from contextengine.formats import read_transcript
from tests.clients.drivers import NAMED, ROOT, Driver, read, written
from tests.clients.vectors import vectors
from tests.unit.client.test_to_responses import said

DATA = ROOT / "tests" / "data"


@cache
def conversations() -> list[list[t.Message]]:
    """The messages of real sessions, without the originals they were read from."""
    found = []
    for name in ("airline_transcripts.jsonl", "coding_session.pi.jsonl"):
        for session in read_transcript(DATA / name):
            for message in session.messages:
                message.ClearField("native")
            # A leading instruction stands beside the list in two formats.
            found.append([one for one in session.messages if one.role != t.ROLE_SYSTEM])
    return found


def pairs() -> list[Any]:
    """Each client with what it reads and writes; asyncio's shares the code of Python's other."""
    return [
        pytest.param(language, case["format"], id=f"{language}-{case['format']}")
        for language in NAMED
        for case in vectors("formats.json")["cases"]
        if language != "python-asyncio" and language in case.get("by", [language])
    ]


def through(driver: Driver, name: str, messages: list[t.Message]) -> tuple[list[t.Message], Any]:
    """A request of these messages, and what is made of it again."""
    out = [written(message) for message in messages]
    request = driver.ask("format", format=name, out=out)["json"]
    again = driver.ask("format", format=name, **{"in": request})["messages"]
    return [read(t.Message, message) for message in again], json.loads(request)


@pytest.mark.parametrize(("language", "name"), pairs())
def test_real_sessions_lose_nothing_that_a_model_is_told(
    language: str, name: str, everyone: dict[str, Driver]
) -> None:
    driver = everyone[language]
    told = 0
    for messages in conversations():
        made, request = through(driver, name, messages)
        assert said(made) == said(messages)
        told += len(said(messages))
        # With their originals the messages are the very request again.
        _, again = through(driver, name, made)
        assert again == request
    assert told > 3_000
