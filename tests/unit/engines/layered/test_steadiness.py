"""Sessions that a random search found: what had no room once does not come back."""

from __future__ import annotations

from contextengine_server.engines.layered import LayeredEngine, LayeredOptions
from contextengine_server.testing.engine.random_sessions import RandomEvent, messages_of
from contextengine_server.testing.engine.steadiness import ROOMS, Evictions
from contextengine_server.testing.engine.trial import outline, trial_of


def said(tokens: int, *, pinned: bool = False, kind: str = "assistant") -> RandomEvent:
    return RandomEvent(kind, 1, tokens, pinned)


def test_a_summary_does_not_come_back_behind_a_smaller_step() -> None:
    """A pinned message since its commit takes the room that it had; the step behind that is larger
    than the next."""
    before = [175, 186, 112, 147, 27, 153, 199, 128, 196]
    behind = [145, 151, 100, 117, 153, 200, *[1] * 7]
    events = [*map(said, before), said(200, pinned=True), *map(said, behind)]
    events += [said(170, pinned=True), said(1), said(78, pinned=True), said(119, pinned=True)]
    events += [*map(said, [1, 1, 1]), said(167, kind="user")]
    later = [said(152, pinned=True), said(153), said(1)]

    engine, one = LayeredEngine(LayeredOptions()), trial_of([])
    rows = messages_of([*events, *later])
    evictions, room, shown = Evictions(ROOMS), ROOMS[0], list[bool]()
    for number, row in enumerate(rows, 1):
        one.add([row])
        evictions.look(one, engine)
        if number == len(events):
            assert one.compaction(engine, ROOMS[1], force=True)
        if number >= len(events):
            shown.append("S0" in outline(engine.plan(one.view, room)))
    assert shown == [True, True, False, False]
