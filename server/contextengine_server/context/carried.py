"""What the fold carries from message to message, besides the atoms themselves."""

from __future__ import annotations

import msgspec


class FoldState(msgspec.Struct, frozen=True):
    """What must be known of all messages before, to fold the next one: of a view, of an extension
    of it, and of a session that is stored. Lists in it are never changed in place."""

    leading: int = 0
    """How many atoms lead the view: steps 0 to `leading` - 1."""
    leading_open: bool = True
    """True until something other than a system or developer message came."""
    user_step: int = -1
    """The step of the newest atom that holds a user's message; -1: there is none."""
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
