"""Which summaries a view shows, whatever was folded, made again and taken back."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from contextengine_server.context.layout import standing, top_level
from contextengine_server.context.message import Slot
from contextengine_server.context.view import Summary


def no_slot() -> Slot:
    raise AssertionError("nothing is shown here")


def made(id: str, first: int, last: int, generation: int, **more: object) -> Summary:
    given = {"depth": 0, "children": (), "remakes": "", **more}
    return Summary(
        id=id,
        first_sequence=first,
        last_sequence=last,
        first_step=first,
        last_step=last,
        span_start=0,
        span_end=0,
        message_count=1,
        created=generation,
        generation=generation,
        tokens=1,
        show=no_slot,
        **given,  # type: ignore[arg-type]
    )


class Session:
    """The live summaries of a session, and what the view showed at each generation without what
    was made again."""

    def __init__(self) -> None:
        self.live: list[Summary] = []
        self.generation = 0
        self.leaves = 0
        self.shown: dict[int, list[tuple[int, int, int]]] = {0: []}

    def add(self, **fields: object) -> None:
        self.generation += 1
        first, last = fields.pop("first"), fields.pop("last")
        assert isinstance(first, int)
        assert isinstance(last, int)
        self.live.append(made(f"s{self.generation}", first, last, self.generation, **fields))

    def leaf(self) -> None:
        self.add(first=self.leaves, last=self.leaves)
        self.leaves += 1

    def fold(self, at: int) -> None:
        top = top_level(self.live)
        some = top[at % len(top) :][:3]
        self.add(
            first=some[0].first_step,
            last=some[-1].last_step,
            depth=max(one.depth for one in some) + 1,
            children=tuple(one.id for one in some),
        )

    def remake(self, at: int) -> None:
        ours = list({one.id: one for one in standing(self.live).values()}.values())
        old = ours[at % len(ours)]
        self.generation += 1
        again = replace(old, id=f"s{self.generation}", generation=self.generation, remakes=old.id)
        self.live.append(again)

    def undo(self, generation: int) -> None:
        self.generation = generation
        self.live = [one for one in self.live if one.generation <= generation]
        self.shown = {at: seen for at, seen in self.shown.items() if at <= generation}

    def places(self) -> list[tuple[int, int, int]]:
        return [(one.depth, one.first_step, one.last_step) for one in top_level(self.live)]


@given(
    st.lists(
        st.tuples(st.sampled_from(["leaf", "fold", "remake", "undo"]), st.integers(0, 50)),
        max_size=40,
    ),
    st.integers(0, 10**6),
)
def test_what_is_shown_is_what_would_be_had_nothing_been_made_again(
    steps: list[tuple[str, int]], seed: int
) -> None:
    session = Session()
    for what, at in steps:
        before = session.places()
        if what == "leaf" or not session.live:
            session.leaf()
        elif what == "fold":
            session.fold(at)
        elif what == "remake":
            session.remake(at)
            # In place: no other place is shown, and no place is gone.
            assert session.places() == before
        elif at < session.generation:
            session.undo(at)
            assert session.places() == session.shown.get(at, session.places())
        places = session.places()
        session.shown[session.generation] = places
        # Nothing is shown twice, in order.
        assert all(left[2] < right[1] for left, right in pairwise(places))
        mixed = list(session.live)
        random.Random(seed).shuffle(mixed)
        assert top_level(mixed) == top_level(session.live)
        # What is shown is the newest in its place, and what stands for another is itself not made
        # again.
        stands = standing(session.live)
        assert all(stands[one.id] is one for one in top_level(session.live))
        assert all(stands[one.id] is one for one in stands.values())
