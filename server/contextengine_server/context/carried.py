"""What the fold carries from message to message, besides the atoms themselves."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec.structs import replace


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


MOST_PEAKS = 64
"""So many are kept; where there are more, the oldest is taken to have lasted until the next."""


class Peak(msgspec.Struct, frozen=True, array_like=True):
    """What the newest step and the newest user's message before it took of every room.

    A summary that had no room once beside the newest step does not come back by itself. Whether one
    always had room follows from the largest of these since it was committed; so only those are kept
    that exceed the next one in something.
    """

    end: int
    """The running token sum behind the step."""
    step: int
    """The tokens of the step; 0 where it is the user's message itself."""
    asked: int
    """The tokens of the user's message."""
    user_step: int
    """The step of that message; -1: there was none."""
    at: int
    """The step itself; the first, where the next reply answers several."""

    def joined(self, later: Peaks) -> Peaks:
        """The later ones, of which the first stands for this one too: it is nowhere less."""
        step, asked = max(self.step, later[0].step), max(self.asked, later[0].asked)
        return (Peak(later[0].end, step + asked, 0, -1, -1), *later[1:])


Peaks = tuple[Peak, ...]


def most_of(peaks: Iterable[Peak], counted: Container[int], saved: Mapping[int, int]) -> int:
    """The most that was taken, less what other forms of the steps save. Users' messages that are
    `counted` elsewhere, by step, take nothing."""
    return max(
        (
            peak.step - saved.get(peak.at, 0) + (0 if peak.user_step in counted else peak.asked)
            for peak in peaks
        ),
        default=0,
    )


MOST_NOTICES = 4
"""So many messages may stand between what a tool answered, or a request, and the reply to it:
notices of a harness, a user who cuts in. Behind more of them nobody is about to answer."""


class Waiting(msgspec.Struct, frozen=True, array_like=True):
    """The steps before the newest that the next reply answers as well."""

    steps: int = 0
    """How many; -1: too many have come since the model spoke."""
    tokens: int = 0
    """Their tokens."""


ALONE = Waiting()
"""The newest step stands alone."""


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
    peaks: Peaks = ()
    """What the newest step has taken with the user's message before it, the oldest first. Of a
    session that was stored before they were carried, what came before is not among them."""
    turns: int = 0
    """How many messages of users there were."""
    observed: int = 0
    """The tokens of all that tools answered in time, before it is shown in any other form."""
    said_ms: int | None = None
    """The time of the newest message of the model's; None: none has said one."""
    replies: int = 0
    """How many messages of models there were."""
    waiting: Waiting = ALONE
    """What else the next reply answers."""


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


Sum = TypeVar("Sum", Reign, Peak)


def shifted(known: tuple[Sum, ...], behind: int, delta: int) -> tuple[Sum, ...]:
    """The same where running sums behind this one moved by delta."""
    return tuple(replace(one, end=one.end + delta) if one.end > behind else one for one in known)
