"""What the fold carries from message to message, besides the atoms themselves."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec


class Reign(msgspec.Struct, frozen=True):
    """A user's message that was the newest one until another came: law 4 kept it until then, and
    what it took of a budget was not there for what stood before."""

    step: int
    tokens: int
    end: int
    """The running token sum before the user's message that followed."""


class Covered(msgspec.Struct, frozen=True):
    """How far a live summary reaches, one that stands below another included."""

    last: int
    """The last sequence."""
    end: int
    """The running token sum behind it."""
    created: int

    def shifted(self, delta: int) -> Covered:
        """The same after running sums before it moved by delta."""
        return Covered(self.last, self.end + delta, self.created)


class Fault(msgspec.Struct, frozen=True):
    """How often a part of an engine failed in a row. It is carried in memory alone."""

    count: int
    at: int
    """The newest sequence when it last did."""


LEAST_PAUSE_MS = 60_000
"""No shorter time without a call of the model is taken note of: no provider's cache ends sooner."""


class Pause(msgspec.Struct, frozen=True):
    """A message that came so long after the model had last spoken that a provider's cache may have
    ended meanwhile."""

    step: int
    ms: int
    created: int
    """The revision that stored the message."""


class FoldState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What must be known of all messages before, to fold the next one: of a view, of an extension
    of it, and of a session that is stored. Lists in it are never changed in place."""

    leading: int = 0
    """How many atoms lead the view: steps 0 to `leading` - 1."""
    leading_open: bool = True
    """True until something other than a system or developer message came."""
    user_step: int = -1
    """The step of the newest atom that holds a user's message; -1: there is none."""
    user_tokens: int = 0
    """The tokens of that atom."""
    reigns: tuple[Reign, ...] = ()
    """The users' messages before it that took more than all that has come since they were the
    newest, in order."""
    user_peak: int = 0
    """The tokens of the largest atom that holds a user's message; only rises, so that what is kept
    free for the newest one never gives room back."""
    abandoned: dict[str, list[int]] = {}
    """First sequences of atoms with calls that were given a synthetic result, by call id,
    rising."""
    late_mark: int = 0
    """The sequence of the newest late result that took its place behind its call; 0: none."""
    scattered: int = 0
    """The sequence of the newest message with late results that stands in more than one place, or
    beside what it shows itself; 0: none. The facts of a row tell one place."""
    step_peak: int = 0
    """The tokens of the largest atom that no law keeps whatever follows; only rises, so that what
    is kept free for the newest step never gives room back."""
    peak_end: int = 0
    """The running token sum behind that atom."""
    turns: int = 0
    """How many messages of users there were."""
    observed: int = 0
    """The tokens of all that tools answered in time, before it is shown in any other form."""
    said_ms: int | None = None
    """The time of the newest message of the model's; None: none has said one."""
    replies: int = 0
    """How many messages of models there were."""


@dataclass(slots=True)
class Abandoned:
    """Calls that were given a synthetic result, as one run of the fold changes them: the first
    sequences of their atoms by call id, rising."""

    before: dict[str, list[int]]
    """Those that there were, which stay as they are."""
    changed: dict[str, list[int]] | None = None
    """The new table, where it changed."""

    def newest(self, call_id: str) -> int | None:
        """The first sequence of the newest atom with an abandoned call of this id."""
        table = self.before if self.changed is None else self.changed
        return firsts[-1] if (firsts := table.get(call_id)) else None

    def add(self, call_id: str, first: int) -> None:
        """Another call."""
        self._own().setdefault(call_id, []).append(first)

    def answer(self, call_id: str) -> None:
        """The newest call of this id has its result."""
        table = self._own()
        table[call_id].pop()
        if not table[call_id]:
            del table[call_id]

    def _own(self) -> dict[str, list[int]]:
        if self.changed is None:
            self.changed = {key: list(firsts) for key, firsts in self.before.items()}
        return self.changed


def shifted(reigns: tuple[Reign, ...], behind: int, delta: int) -> tuple[Reign, ...]:
    """The reigns that ended behind this running sum, after sums there moved by delta."""
    return tuple(
        Reign(reign.step, reign.tokens, reign.end + delta) if reign.end > behind else reign
        for reign in reigns
    )
