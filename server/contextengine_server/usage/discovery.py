"""Finding a tool: by what its name is or begins with, by its server, and by words. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from .deferral import DeferralRules, OfferedTool

_K1, _B = 1.2, 0.75
"""Of BM25, as Comis has them."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


def find(rules: DeferralRules, tools: Sequence[OfferedTool], query: str) -> Sequence[OfferedTool]:
    """The tools that a query means, the best first: those that it selects, the one of that name,
    those whose names begin so, those of that server, else those whose name and description have its
    words."""
    asked = query.strip()
    if asked.lower().startswith("select:"):
        names = [name.strip() for name in asked[len("select:") :].split(",")]
        named = {tool.name: tool for tool in reversed(tools)}
        return [named[name] for name in dict.fromkeys(names) if name in named][: rules.results]
    lowered = asked.lower()
    ways = (
        [tool for tool in tools if tool.name.lower() == lowered],
        [
            tool
            for tool in tools
            if lowered.startswith(("mcp__", "mcp:")) and tool.name.lower().startswith(lowered)
        ],
        [tool for tool in tools if tool.server.lower() == lowered != ""],
    )
    for found in ways:
        if found:
            return found[: rules.results]
    return _ranked(rules, tools, asked)


def _ranked(
    rules: DeferralRules, tools: Sequence[OfferedTool], query: str
) -> Sequence[OfferedTool]:
    """By BM25 over names and descriptions. Scores are shares of the best one before the floor is
    applied: a floor on raw scores hides the only hit of a short query."""
    wanted = set(_words(query))
    texts = [Counter(_words(f"{tool.name} {tool.server} {tool.description}")) for tool in tools]
    lengths = [sum(words.values()) for words in texts]
    mean = sum(lengths) / max(1, len(texts)) or 1.0
    scores = [0.0] * len(texts)
    for word in sorted(wanted):
        holders = sum(word in words for words in texts)
        if not holders:
            continue
        rarity = math.log(1 + (len(texts) - holders + 0.5) / (holders + 0.5))
        for place, words in enumerate(texts):
            often = words[word]
            damped = _K1 * (1 - _B + _B * lengths[place] / mean)
            scores[place] += rarity * often * (_K1 + 1) / (often + damped)
    best = max(scores, default=0.0)
    if best <= 0:
        return []
    order = sorted(range(len(tools)), key=lambda place: (-scores[place], tools[place].name, place))
    hits = [place for place in order if scores[place] >= rules.least_score * best]
    return [tools[place] for place in hits[: rules.results]]


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]
