"""Runs: steps that one summary may stand for, from one kept step to the next."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from contextengine_server.context.view import Summary, View


class StepRun(msgspec.Struct, frozen=True):
    """Neighbouring steps of which none is kept, with the summaries over some of them."""

    first: int
    last: int
    raw: int
    """The tokens of those that no summary covers."""
    below: tuple[Summary, ...]

    @property
    def told(self) -> int:
        """The tokens of its summaries."""
        return sum(summary.tokens for summary in self.below)

    @property
    def gain(self) -> int:
        """The tokens that leave the view with a summary of it."""
        return self.raw + self.told

    @property
    def source(self) -> int:
        """The tokens of messages that a summary of it stands for."""
        return self.raw + sum(summary.covered_tokens for summary in self.below)


class _Growing:
    """A run as it is gathered."""

    def __init__(self, most: int) -> None:
        self._most, self.done = most, list[StepRun]()
        self._empty()

    def _empty(self) -> None:
        self._first, self._last, self._raw = -1, -1, 0
        self._below: list[Summary] = []

    @property
    def source(self) -> int:
        """As of the run."""
        return self._raw + sum(summary.covered_tokens for summary in self._below)

    def end(self) -> None:
        """What follows is another run."""
        if self._raw or self._below:
            self.done.append(StepRun(self._first, self._last, self._raw, tuple(self._below)))
        self._empty()

    def take(self, step: int, tokens: int) -> None:
        """One more step."""
        if self._raw and self._raw + tokens > self._most:
            self.end()
        self._reach(step, step)
        self._raw += tokens

    def take_summary(self, summary: Summary) -> None:
        """A summary over the next steps."""
        self._reach(summary.first_step, summary.last_step)
        self._below.append(summary)

    def stays(self, step: int) -> None:
        """A step that is shown whatever covers it."""
        if self._raw or self._below:
            self._last = step

    def _reach(self, first: int, last: int) -> None:
        self._first = first if self._first < 0 else self._first
        self._last = last


def runs_of(
    view: View, tail: int, kept: Callable[[int], bool], most: int, least: int
) -> list[StepRun]:
    """The runs before a tail, in order, with no more than so many tokens of raw steps each.

    What leads and what is pinned is shown beside whatever covers it, so it parts no run. The newest
    request does where it is kept. A notice of the harness's parts none that stands for less than
    `least` tokens: where one follows each step, each step would have a summary of its own.
    """
    growing, stays = _Growing(most), set(view.must_stay())
    pieces = sorted(
        [*((first, last, None) for first, last, _ in view.uncovered())]
        + [(summary.first_step, summary.last_step, summary) for summary in view.summaries],
        key=lambda piece: piece[0],
    )
    for first, last, summary in pieces:
        if summary is not None:
            if summary.last_step < tail:
                growing.take_summary(summary)
            continue
        for step in range(max(first, view.leading), min(last, tail - 1) + 1):
            may_part = step not in stays or step == view.user_step
            held = view.holds(step)
            slight = held and 0 < growing.source < least and _notice(view, step)
            if not held or (may_part and not slight and kept(step)):
                growing.end()
            elif step in stays:
                growing.stays(step)
            else:
                growing.take(step, view.atom(step).tokens)
    growing.end()
    return growing.done


def _notice(view: View, step: int) -> bool:
    """True where nobody but the harness speaks."""
    return all(entry.traits.instructs for entry in view.atom(step).entries)
