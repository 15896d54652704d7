"""How much of a context goes to Codex. Constants are those of OpenClaw's projection of
2026.9 (extensions/codex/src/app-server/context-engine-projection.ts) and of Codex 0.169."""

from __future__ import annotations

TURN_CHARS = 1 << 20
"""Characters of text that one `turn/start` takes: Codex counts code points over all its texts and
refuses more."""

DEFAULT_CHARS = 24_000
"""The context's characters where no budget is known."""
MAX_CHARS = 1_000_000
"""The most characters of OpenClaw's context, whatever the budget."""
CHARS_PER_TOKEN = 4
RESERVE_TOKENS = 20_000
"""Kept free of the budget for the rest of the turn."""
MIN_PROMPT_TOKENS = 8_000
"""What the reserve never takes, or half of a budget that is smaller than twice this."""

PART_MIN_CHARS, PART_MAX_CHARS = 6_000, 128_000
"""Bounds of one part of a message; a quarter of the context lies between."""

DEVELOPER_CHARS = 32_768
"""The most characters of developer instructions, or a quarter of the context where that is less."""

OUTPUT_BYTES = 12_000
"""A tool's output that Codex keeps whole for a model that it does not know: 10,000 bytes and a
fifth. What is longer it cuts blindly."""
KNOWN_OUTPUT_BYTES = 48_000
"""The same for models of its catalog: 12,000 tokens, which it counts as four bytes each."""

COMPACTION_SHARE = 0.9
"""The share of the model's window from which on Codex compacts."""

RETAINED_BYTES = 80_000
"""What survives Codex's own compaction of the user's messages: 20,000 tokens of four bytes."""


def context_chars(budget: int | None, reserve: int | None = None) -> int:
    """The context's characters for a budget in tokens: what the reserve leaves, at four characters
    a token.

    16,000 tokens give 32,000 characters, 80,000 give 240,000, a million give the most there is; no
    budget gives the default.
    """
    if not budget or budget < 0:
        return DEFAULT_CHARS
    least = min(MIN_PROMPT_TOKENS, max(1, budget // 2))
    kept = min(RESERVE_TOKENS if reserve is None else reserve, max(0, budget - least))
    return min(MAX_CHARS, max(1, budget - kept) * CHARS_PER_TOKEN)


def part_chars(total: int) -> int:
    """The most characters of one part, for a context of `total`."""
    return min(PART_MAX_CHARS, max(PART_MIN_CHARS, total // 4))


def output_bytes(model: str) -> int:
    """The most bytes of a tool's output that Codex does not cut, by the model's name."""
    return KNOWN_OUTPUT_BYTES if model.startswith(("gpt-", "codex-")) else OUTPUT_BYTES
