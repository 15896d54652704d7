"""What to do where a provider refuses a prompt for its length. Pure."""

from __future__ import annotations

import re

from .types import AssembleResponse, Budget

TIMEOUT = 15.0
"""Seconds that a compaction may take before it is asked again without it: a turn waits for it."""
SHARE = 2
"""The refused context is divided by this: the same again would be refused, and what it was too long
by is not always said. As the service does for Codex."""
MOST_TEXT = 8_192
"""Characters of what the provider says that the service looks at."""

_REFUSALS = re.compile(
    r"context_length_exceeded|prompt is too long|maximum context length|context window"
    r"|exceeds the maximum number of tokens|exceeds the available context size"
    r"|input is too long|ContextOverflow",
    re.IGNORECASE,
)
"""How providers say it: OpenAI (and servers that speak its form), Anthropic, Google, llama.cpp and
Bedrock; and how LangChain names it."""


def is_refusal(error: str | BaseException) -> bool:
    """Whether a provider says so that a prompt was too long. An error is looked at with its
    name and what it was raised from."""
    if isinstance(error, str):
        return bool(_REFUSALS.search(error))
    return bool(_REFUSALS.search(said(error)))


def said(error: BaseException) -> str:
    """What an error says, and what it was raised from."""
    texts: list[str] = []
    one: BaseException | None = error
    while one is not None and len(texts) < 5:
        texts.append(f"{type(one).__name__}: {one}")
        one = one.__cause__
    return "\n".join(texts)[:MOST_TEXT]


def smaller(budget: Budget | None, refused: AssembleResponse) -> Budget:
    """The budget for another attempt: that of the refused one, with half of what was shown then
    for messages."""
    less = Budget()
    if budget is not None:
        less.CopyFrom(budget)
    half = max(1, refused.estimated_tokens // SHARE)
    told = refused.budget
    if told.window and not less.HasField("message_tokens"):
        less.window.window = max(1, told.window - max(0, told.messages - half))
    else:
        less.message_tokens = half
    return less
