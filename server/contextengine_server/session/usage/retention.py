"""How long the provider should keep an assembly's prefix, and where breakpoints stand best in it
(docs/semantics.md#the-providers-cache)."""

from __future__ import annotations

from collections.abc import Sequence

from contextengine_server.context.plan import Beside, Listed, Summarized, shown_at
from contextengine_server.context.prefix import JoinedList
from contextengine_server.context.view import View
from contextengine_server.session.state import SessionState
from contextengine_server.usage.retention import RetentionRules

NONE, SHORT, LONG = 1, 2, 3
"""By the wire's numbers; 0: not said."""
_FIXED = {"none": NONE, "short": SHORT, "long": LONG}

MARKED = frozenset({"anthropic"})
"""Providers whose requests say where a prefix ends and how long it is kept."""

MOST_BREAKPOINTS = 3
"""Anthropic takes four; one is for the end of the system prompt, which is no item."""


def retention_of(
    rules: RetentionRules, asked: int, view: View, state: SessionState, *, broke: bool
) -> int:
    """What was asked for; else, as the session has proved itself, short or long. `broke`: the host
    saw the newest call break the cache. Whether the cache is gone since then is told by the newest
    message's own time."""
    if asked:
        return asked
    if not rules.adaptive:
        return _FIXED[rules.fixed]
    # A step may show nothing: one that holds results without a call alone.
    said = view.atoms[-1].entries if view.atoms else []
    newest = said[-1].time_ms if said else None
    gone = newest is not None and state.cache.expired(newest)
    return LONG if state.cache.long and not broke and not gone else SHORT


def breakpoints_of(
    view: View, listed: Sequence[Listed], joined: JoinedList, outside: int, least: float
) -> tuple[int, ...]:
    """The indexes behind which breakpoints stand best, rising: the end of what only a compaction
    changes (summaries, else the leading messages), the end of what the turn before left, and the
    end of the list, with which the next request begins. `outside`: the tokens before the items;
    `least`: no shorter prefix is kept."""
    count, stable, turn = 0, 0, 0
    for segment in listed:
        if isinstance(segment, (Summarized, Beside)):
            # What comes back directly behind a summary changes with it.
            if isinstance(segment, Summarized) or stable == count:
                stable = count + 1
            count += 1
            continue
        for step in range(segment.first, segment.last + 1):
            if step == view.fold.user_step:
                turn = count
            count += len(shown_at(segment, view.atom(step)))
            if step < view.fold.leading:
                stable = count
    ends = sorted({end for end in (stable, turn, joined.total) if end})
    long = [end - 1 for end in ends if joined.tokens_of(end) + outside >= least]
    return tuple(long[-MOST_BREAKPOINTS:])
