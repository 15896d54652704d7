"""Models are known by their names, and the factors are what the transcripts say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contextengine_server.tokens import MESSAGE_TOKENS, ModelProfile, TokenCounter, profile

DATA = Path(__file__).resolve().parents[2] / "data"


@pytest.mark.parametrize(
    ("model", "provider", "window", "max_output"),
    [
        ("gpt-5.1-codex", "openai", 400_000, 128_000),
        ("openai/gpt-5.4-2026-03-05", "openai", 1_050_000, 128_000),
        ("gpt-4.1-mini", "openai", 1_047_576, 32_768),
        ("GPT-4o-2024-08-06", "openai", 128_000, 16_384),
        ("gpt-4-0613", "openai", 8_192, 8_192),
        ("gpt-4-1106-preview", "openai", 128_000, 4_096),
        ("o3-mini", "openai", 200_000, 100_000),
        ("claude-sonnet-4-5", "anthropic", 200_000, 64_000),
        ("claude-sonnet-4-20250514", "anthropic", 200_000, 64_000),
        ("us.anthropic.claude-opus-4-1-20250805-v1:0", "anthropic", 200_000, 32_000),
        ("openrouter/anthropic/claude-sonnet-4.6", "anthropic", 1_000_000, 64_000),
        ("claude-something-new", "anthropic", 200_000, None),
        ("models/gemini-2.5-pro", "google", 1_048_576, 65_536),
    ],
)
def test_a_model_is_known_by_its_name(
    model: str, provider: str, window: int, max_output: int | None
) -> None:
    found = profile(model)
    assert (found.model, found.provider, found.window, found.max_output) == (
        model,
        provider,
        window,
        max_output,
    )


@pytest.mark.parametrize("model", ["", "llama-3", "gpt", "gpt-50", "o30", "my-claude", "  ", "💥"])
def test_an_unknown_model_is_taken_as_it_is(model: str) -> None:
    assert profile(model) == ModelProfile(model, "", "", None, None, 1.0)


def coding_session() -> list[dict[str, Any]]:
    with (DATA / "coding_session.pi.jsonl").open(encoding="utf-8") as lines:
        return [row["message"] for row in map(json.loads, lines) if row["type"] == "message"]


def texts_of(message: dict[str, Any]) -> list[str]:
    texts = []
    for part in message["content"]:
        if part["type"] == "toolCall":
            texts += [part["name"], json.dumps(part["arguments"])]
        else:
            texts.append(part.get("text") or part["thinking"])
    return texts


def test_the_factor_of_anthropic_is_what_the_bills_say() -> None:
    counter = TokenCounter()
    points: list[tuple[int, int]] = []
    counted = 0
    for message in coding_session():
        usage = message.get("usage", {})
        billed = sum(usage.get(bucket, 0) for bucket in ("input", "cacheRead", "cacheWrite"))
        if message.get("model") == "claude-sonnet-4-5" and billed:
            points.append((counted, billed))
        counted += MESSAGE_TOKENS + sum(map(counter.count_text, texts_of(message)))
    factor = profile("claude-sonnet-4-5").factor
    first_counted, first_billed = points[0]
    overhead = first_billed - factor * first_counted
    slope = sum((y - overhead) * x for x, y in points) / sum(x * x for x, _ in points)
    assert len(points) == 439
    assert slope == pytest.approx(factor, abs=0.005)
    assert max(y / (overhead + factor * x) for x, y in points) < 1.04


def test_the_two_encodings_count_real_transcripts_alike() -> None:
    newer, older = TokenCounter("o200k_base"), TokenCounter("cl100k_base")
    coding = [text for message in coding_session() for text in texts_of(message)]
    with (DATA / "airline_transcripts.jsonl").open(encoding="utf-8") as lines:
        airline = [
            message["content"] or ""
            for row in map(json.loads, lines)
            for message in row["messages"]
        ]
    for texts, expected in ((coding, 138_000), (airline, 400_000)):
        count = sum(map(newer.count_text, texts))
        assert count == pytest.approx(expected, rel=0.1)
        assert sum(map(older.count_text, texts)) == pytest.approx(count, rel=0.01)
