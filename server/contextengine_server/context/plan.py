"""A plan: what an engine answers. A short list of segments in the order in which they are sent,
each with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from .atom import Atom
from .message import Form, Slot
from .view import Summary, View


class Keep(msgspec.Struct, frozen=True):
    """The steps first to last, verbatim."""

    first: int
    last: int
    reason: str = ""
    """Why, in words, for Explain; empty: there is room for them."""


class Summarized(msgspec.Struct, frozen=True):
    """A summary in place of what it covers."""

    summary: Summary
    reason: str = "covered"
    """Why what it covers is not shown itself, in words, for Explain."""


class Reshaped(msgspec.Struct, frozen=True, eq=False):
    """The steps first to last with some messages in another form: the slots to show instead, by
    sequence."""

    first: int
    last: int
    reason: str
    """Why, in words, for Explain."""
    slots: dict[int, Slot] = {}


Segment = Keep | Summarized | Reshaped


class Beside(msgspec.Struct, frozen=True, eq=False):
    """An item of ours that stands for no message. It is no engine's affair: it is laid between the
    segments of a plan that the laws have seen."""

    slot: Slot
    step: int
    """All that stands before it begins before this step or with it."""


Listed = Segment | Beside
"""What a list is made of."""


class Plan(msgspec.Struct, frozen=True):
    """What to send. `segments` is in the order of the session; the parts that law 4 keeps stand at
    their own place."""

    segments: tuple[Segment, ...]
    cut: int = 0
    """The first step of the raw history that is shown; 0 where nothing is evicted."""
    rule: str = ""
    """Why what is missing is missing, for the decisions."""
    forms: str = ""
    """Names the forms given, for the epoch; empty: all verbatim."""
    over: bool = False
    """True where the engine knows that this is the smallest lawful list and still exceeds the
    budget."""

    @property
    def summaries(self) -> list[Summary]:
        """The summaries that are shown, in order."""
        return [each.summary for each in self.segments if isinstance(each, Summarized)]


class Declared(msgspec.Struct, frozen=True):
    """What an engine declares, and the laws hold it to."""

    tail_steps: Annotated[int, msgspec.Meta(ge=0)]
    """How many of the newest steps it keeps verbatim."""
    forms: frozenset[Form] = frozenset()
    """The forms it may give to older messages."""
    rehydrates: tuple[str, ...] | None = None
    """The names of sections of the workspace's files that come back behind summaries, with the
    files that were read last and what a subagent is to keep in sight; None: nothing comes back."""
    handoff: bool = False
    """True where its summary hands the work over in sections, and each compaction brings it up to
    date."""
    failing: Literal["stand_in", "cool_down", "abort"] = "stand_in"
    """What a model that fails means for its compactions. `stand_in`: the next summarizer of the
    chain writes; `cool_down`: where the failure says nothing of the messages, nothing is compacted,
    and after any nothing is by itself for a while; `abort`: after any nothing is compacted."""
    evicts: bool = True
    """False for an engine that never evicts by itself (legacy)."""
    host_capabilities: frozenset[str] = frozenset()
    """What a host must be able to do, by the names of HostInfo: a host that says what it can, and
    lacks one, is refused at Bootstrap."""


def plan_tokens(plan: Plan, view: View) -> int:
    """The tokens of a plan's items, in the reference encoding: of what is verbatim and in the
    window by running sums. Raises LookupError where it names steps that are not there."""
    tokens = 0
    for segment in plan.segments:
        if isinstance(segment, Summarized):
            tokens += segment.summary.tokens
        elif isinstance(segment, Keep) and segment.first >= view.base:
            tokens += view.span(segment.first, segment.last)
        else:
            steps = range(segment.first, segment.last + 1)
            tokens += sum(slot.tokens for at in steps for slot in shown_at(segment, view.atom(at)))
    return tokens


def shown_at(segment: Keep | Reshaped, atom: Atom) -> list[Slot]:
    """What a segment shows of one of its steps."""
    if isinstance(segment, Reshaped):
        return [segment.slots.get(slot.sequence, slot) for slot in atom.slots]
    return atom.slots


def spared_by(segment: Reshaped, view: View) -> Iterator[tuple[Form, int]]:
    """What a segment's forms take away: tokens, form by form."""
    for step in range(segment.first, segment.last + 1):
        for slot in view.atom(step).slots:
            shown = segment.slots.get(slot.sequence)
            if shown is not None:
                yield shown.form, slot.tokens - shown.tokens


def segment_slots(segment: Listed, view: View) -> list[Slot]:
    """What a segment shows."""
    if isinstance(segment, Beside):
        return [segment.slot]
    if isinstance(segment, Summarized):
        return [segment.summary.slot]
    steps = range(segment.first, segment.last + 1)
    return [slot for step in steps for slot in shown_at(segment, view.atom(step))]
