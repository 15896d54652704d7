"""docs/summaries.md does what it says: its code lends a model, its settings are settings."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from contextengine_server.cli.sessions import _facts
from contextengine_server.config.lint import config_lint
from contextengine_server.config.load import load_settings
from contextengine_server.telemetry.meters import _DEGRADED

from ..harness import House, house
from .lending import compacting, talk, until, written_by
from .provider import GOOD

PAGE = (Path(__file__).parents[3] / "docs" / "summaries.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


async def test_the_code_lends_a_model(tmp_path: Path) -> None:
    written: dict[str, Any] = {}
    exec(compile(block("python"), "summaries.md", "exec"), written)
    seen: list[tuple[str, str, int]] = []

    async def complete(instructions: str, text: str, max_tokens: int) -> str:
        seen.append((instructions, text, max_tokens))
        if len(seen) == 1:
            raise RuntimeError("busy")
        return GOOD

    async with house(tmp_path, **{"engine.dag.freshTailTurns": 1}) as at:
        session = await talk(at)
        lending = asyncio.ensure_future(written["lend"](at.client, complete))
        try:
            await until(lambda: bool(at.app.core.attached("default")))
            async with compacting(at, session):
                pass
            assert await written_by(at, session) == ["runtime"]
        finally:
            lending.cancel()
            await asyncio.gather(lending, return_exceptions=True)
    assert len(seen) == 2
    assert "Step 0" in seen[1][1]


def test_the_settings_are_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    path = tmp_path / "contextengine.yaml"
    path.write_text(block("yaml"))
    settings = load_settings(path, {}, {})
    assert [endpoint.name for endpoint in settings.summarizer.endpoints] == ["local", "cloud"]
    assert yaml.safe_load(block("yaml"))["summarizer"]["order"] == list(settings.summarizer.order)
    assert [finding for finding in config_lint(settings) if finding.status != "ok"] == []


def test_the_page_names_what_there_is() -> None:
    for reason in _DEGRADED:
        assert f"`{reason}`" in PAGE


async def test_the_command_line_shows_the_guards(house: House) -> None:
    session = await talk(house)
    shown = dict(_facts(await house.client.get_status(session=session)))
    assert (
        shown["summarizers"]
        == "breaker closed, 0 of 500,000 tokens an hour, 0 of 5,000,000 a day, 0 harnesses"
    )
