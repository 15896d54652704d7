"""What Gemini asks of a request beside its texts. Runs where Google's Agent Development Kit is
installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.hosts.providers import SIGNATURE
from tests.hosts.table import played, question


async def test_what_gemini_signed_goes_back_signed(tmp_path: Path) -> None:
    """Gemini 3 refuses a call of its own whose signature is missing."""
    pytest.importorskip("google.adk.plugins", exc_type=ImportError)
    from tests.hosts.frameworks.google_adk_host import GoogleAdkHost

    async with played("google-adk", tmp_path) as (stage, host):
        for turn in range(12):
            await host.say(question(turn))
        await stage.summarized(host)
        await host.say("And the last one?")
        assert isinstance(host, GoogleAdkHost)
        requests: list[Any] = [one.json for one in host.upstream.seen]
    assert any("trust=untrusted" in text for text in stage.brain.seen[-1])
    signed = [
        [part.get("thoughtSignature") for part in content["parts"] if "functionCall" in part]
        for request in requests
        for content in request["contents"]
        if content["role"] == "model"
    ]
    calls = [one for one in signed if one]
    assert {len(one) for one in calls} == {1, 3}, "alone and side by side"
    # Of calls side by side the first is signed.
    assert all(one == [SIGNATURE, *[None] * (len(one) - 1)] for one in calls)
