"""Our own targets pass the suite that we ship, over more real sessions than are shipped with it."""

from __future__ import annotations

from pathlib import Path

from contextengine_server.projection import (
    anthropic,
    codex,
    gemini,
    openai_chat,
    openai_responses,
)
from contextengine_server.projection.targets import OWN
from contextengine_server.testing.contexts import AIRLINE, Maker
from contextengine_server.testing.target import TargetSuite

DATA = Path("tests/data")
FILES = (AIRLINE, DATA / "airline_transcripts.jsonl", DATA / "coding_session.pi.jsonl")


class OwnSuite(TargetSuite):
    files = FILES
    most_sessions = 6


class TestOpenAIChat(OwnSuite):
    target = openai_chat.TARGET
    makers = (Maker(), Maker("openai", "gpt-6-sol"))


class TestOpenAIResponses(OwnSuite):
    target = openai_responses.TARGET
    makers = (Maker(), Maker("openai", "gpt-6-sol"))


class TestAnthropic(OwnSuite):
    target = anthropic.TARGET
    makers = (Maker(), Maker("anthropic", "claude-opus-4-8"))


class TestGemini(OwnSuite):
    target = gemini.TARGET
    makers = (Maker("google", "gemini-2.5-pro"), Maker("google", "gemini-3-pro"))


class TestCodex(OwnSuite):
    target = codex.TARGET
    ways = ({}, {"inject": True}, {"renderer": "openclaw"})


def test_every_target_of_ours_passes_the_suite() -> None:
    assert {suite.target for suite in OwnSuite.__subclasses__()} == set(OWN)
