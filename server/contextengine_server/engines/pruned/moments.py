"""What has been shown in short by now: decided at each message that came when the provider's cache
had ended, from the messages before it alone.

A decision reads nothing that changes later: the times and sizes of the messages that had come, and
the summaries that there were. So what was decided stays so, whatever is summarized since, and a
restart finds it again. It looks no further back than the budget reaches, so a window finds what the
whole session would (see `PrunedEngine.reach`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import structs

from contextengine_server.context.carried import Pause
from contextengine_server.context.message import Role
from contextengine_server.context.observations import Observation
from contextengine_server.context.settled import SCRAP
from contextengine_server.context.view import View

from .rules import PruningRules

Place = tuple[int, int]
"""A result by its message's sequence and its part."""

IMAGE_CHARS = 8_000
"""What a picture counts, as in OpenClaw
(src/agents/pi-extensions/context-pruning/pruner.ts)."""
NOTE_CHARS = 150
"""What the words cost, about, that say what a result in short leaves out."""
_KEPT = 16
"""Decisions of a view that are kept: of budgets that take turns, and of pauses that are past."""


class Pruned(msgspec.Struct, frozen=True):
    """The results that are shown in short."""

    trimmed: int = 0
    """Long ones of the steps before this one are trimmed."""
    cleared: Place = (0, 0)
    """Those up to this place are cleared."""
    seen: int = 0
    """Pictures of the steps before this one are left out."""

    @property
    def decided(self) -> bool:
        """True where results are in short."""
        return bool(self.trimmed) or self.cleared != (0, 0)


class Reader(msgspec.Struct, frozen=True):
    """How a view is read."""

    rules: PruningRules
    tail_steps: int
    """The newest steps that the engine declares verbatim."""
    evicts: bool
    """False: the engine shows all of a view, however much it is."""


def pruned_by_now(view: View, cell: int, reader: Reader) -> Pruned:
    """What has been shown in short by now, in budgets of this cell."""
    decided = _decided(view, cell, reader) if reader.rules.on else Pruned()
    return structs.replace(decided, seen=_seen_before(view, reader))


def _seen_before(view: View, reader: Reader) -> int:
    """The step before which a model has seen all pictures some turns ago: that of the oldest of so
    many turns before the newest that the model has answered. It moves with a user's message and
    with nothing else. 0: there is none."""
    left, end = reader.rules.picture_turns, view.user_step
    if not left:
        return 0
    said = view.replies.steps
    for first in reversed(view.users[: bisect_left(view.users, end)]):
        if first < view.base:
            break
        left -= bisect_left(said, first) < bisect_left(said, end)
        if not left:
            return min(first, view.user_step + 1 - max(1, reader.tail_steps))
        end = first
    return 0


def _decided(view: View, cell: int, reader: Reader) -> Pruned:
    ended = [pause for pause in view.pauses if pause.ms >= reader.rules.ttl_ms]
    ended = [pause for pause in ended if pause.step >= view.base]
    if not ended:
        return Pruned()
    starts = tuple(view.atom(pause.step).start for pause in ended)
    facts = len(view.covered), view.late_mark, view.base, first_step(view)
    key = reader, cell, starts, facts
    known = view.observations.decided
    if key not in known:
        if len(known) >= _KEPT:
            known.clear()
        trimmed, cleared = 0, (0, 0)
        for pause in ended:
            then = _at(view, cell, pause, reader)
            trimmed, cleared = max(trimmed, then.trimmed), max(cleared, then.cleared)
        known[key] = trimmed, cleared
    return Pruned(*known[key])


def first_step(view: View) -> int:
    """The first step whose results may be shown in short: behind the first message of a user's."""
    if len(view.users) < view.fold.turns:
        return view.base  # it stands before what is in memory
    return view.users[0] if view.users else view.steps


def prunable(view: View, results: Sequence[Observation], rules: PruningRules) -> Iterator[Prunable]:
    """Those of the results that may be shown in short, with their sizes. A step that is a scrap may
    be left between two summaries, where nothing is in short."""
    tokens: dict[int, int] = {}
    chars: dict[int, int] = {}
    for one in results:
        tokens[one.sequence] = tokens.get(one.sequence, 0) + one.tokens
        chars[one.sequence] = chars.get(one.sequence, 0) + _chars(one)
    for one in results:
        atom = view.atom(one.step)
        if rules.prunes(one.tool) and not atom.pinned and atom.tokens > SCRAP:
            share = tokens[one.sequence] * _chars(one) // max(1, chars[one.sequence])
            yield Prunable(one, share, _chars(one), long=_is_long(one, rules))


class Prunable(msgspec.Struct, frozen=True):
    """A result that may be shown in short."""

    result: Observation
    tokens: int
    chars: int
    long: bool
    """It is trimmed before it is cleared."""

    def left(self, chars: int) -> int:
        """Its tokens where so many characters are left, about: by what each of its own costs."""
        return self.tokens * min(chars, self.chars) // max(1, self.chars)


def _chars(one: Observation) -> int:
    return one.chars + (IMAGE_CHARS if one.pictured else 0)


def _is_long(one: Observation, rules: PruningRules) -> bool:
    return one.pictured or one.chars > max(rules.max_chars, rules.head_chars + rules.tail_chars)


def _at(view: View, cell: int, pause: Pause, reader: Reader) -> Pruned:
    """What is shown in short because of one message that came late."""
    rules, end = reader.rules, view.atom(pause.step).start
    begin = max((one.end for one in view.covered if one.created < pause.created), default=0)
    if reader.evicts:
        begin = max(begin, end - cell)
    tokens = end - begin
    behind = min(
        _protected_from(view, pause.step, rules.keep_last_assistants),
        pause.step + 1 - max(1, reader.tail_steps),
    )
    first = max(first_step(view), view.cut_from(begin, view.base))
    if tokens < rules.soft_trim_ratio * cell or behind <= first:
        return Pruned()
    cleared, results = (0, 0), view.observations.between(first, behind)
    if rules.clears:
        cleared = _cleared(list(prunable(view, results, rules)), tokens, cell, rules)
    return Pruned(behind, cleared)


def _cleared(results: Sequence[Prunable], tokens: int, cell: int, rules: PruningRules) -> Place:
    """The last of the results that are cleared, of a context of so many tokens."""
    most, note = rules.head_chars + rules.tail_chars + NOTE_CHARS, NOTE_CHARS
    left = [one.left(most) if one.long else one.tokens for one in results]
    chars = sum(min(one.chars, most) if one.long else one.chars for one in results)
    tokens -= sum(one.tokens for one in results) - sum(left)
    last = (0, 0)
    if chars < rules.min_prunable_chars:
        return last
    for one, now in zip(results, left, strict=True):
        if tokens < rules.hard_clear_ratio * cell:
            break
        tokens -= max(0, now - one.left(note))
        last = one.result.sequence, one.result.part
    return last


def _protected_from(view: View, step: int, count: int) -> int:
    """The step of the oldest of so many messages of the model's before a step and in it; 0: there
    are fewer."""
    for at in range(step, view.base - 1, -1):
        count -= sum(entry.traits.role == Role.ASSISTANT for entry in view.atom(at).entries)
        if count <= 0:
            return at
    return 0
