"""Random sessions that are summarized on their way, by an engine or by a host."""

from __future__ import annotations

from typing import Literal

import msgspec
from hypothesis import strategies as st

from contextengine_server.context.atom import Atom

from .random_sessions import RandomEvent, sessions
from .trial import Trial, trial_of


def unfinished(atom: Atom) -> bool:
    """True while messages may still join it: nothing may cover it then."""
    return not atom.closed and (atom.pending or atom.growing)


@st.composite
def compacted(draw: st.DrawFn) -> Trial:
    """A session that was summarized here and there, over pinned messages and the newest user's too,
    and went on."""
    one = trial_of(draw(sessions(max_events=30)).rows)
    step = one.view.leading
    for _ in range(draw(st.integers(1, 3))):
        first = step + draw(st.integers(0, 4))
        last = first + draw(st.integers(0, 8))
        if last >= one.view.steps or unfinished(one.view.atoms[last]):
            break
        one.compact(first, last, f"[{draw(st.sampled_from((5, 300, 1_500)))}] what was said")
        step = last + 1
    later = draw(sessions(max_events=20)).rows
    one.add([type(row)(row.sequence + 10_000, row.message, row.created + 20_000) for row in later])
    return one


class Happening(msgspec.Struct, frozen=True):
    """A few messages, then perhaps a summary: of the engine's, or of a host's over a range in
    tenths of what there is."""

    said: list[RandomEvent]
    made: Literal["", "engine", "host"]
    first: int
    last: int
    words: int


def _talk(most_tokens: int, answers: int) -> st.SearchStrategy[RandomEvent]:
    """Answers, and now and then a question; few are pinned."""
    return st.builds(
        RandomEvent,
        kind=st.sampled_from(("assistant",) * answers + ("user",)),
        choice=st.just(1),
        tokens=st.integers(1, most_tokens),
        pinned=st.sampled_from((False,) * 30 + (True,)),
    )


talk = st.lists(_talk(300, 12), min_size=30, max_size=90)

happenings = st.lists(
    st.builds(
        Happening,
        said=st.lists(_talk(200, 6), min_size=1, max_size=14),
        made=st.sampled_from(("", "", "engine", "host", "host")),
        first=st.integers(0, 9),
        last=st.integers(1, 10),
        words=st.integers(1, 150),
    ),
    min_size=3,
    max_size=12,
)


def summarize_as_host(one: Trial, made: Happening) -> None:
    """A host's summary over whole steps: summaries within it are below it now, and none is
    parted."""
    view = one.view
    first, last = view.steps * made.first // 10, view.steps * made.last // 10 - 1
    for summary in view.summaries:
        if summary.first_step < first <= summary.last_step:
            first = summary.last_step + 1
        if summary.first_step <= last < summary.last_step:
            last = summary.first_step - 1
    first = max(first, view.leading)
    below = [s for s in view.summaries if first <= s.first_step <= last]
    gain = sum(s.tokens for s in below) + sum(
        view.atom(step).tokens
        for step in range(first, last + 1)
        if view.covering(step) is None and step not in view.intent()
    )
    if first <= last and gain > made.words + 40:
        one.compact(first, last, f"[{made.words}] of the host", [s.id for s in below])
