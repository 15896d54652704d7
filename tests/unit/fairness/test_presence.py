"""Who was there lately."""

from __future__ import annotations

from contextengine_server.fairness.presence import Presence


def test_several_are_there_as_long_as_each_was_seen_lately() -> None:
    present = Presence(2.0)
    present.saw("one", 0.0)
    assert not present.several(0.0)
    present.saw("two", 1.0)
    assert present.several(2.0)
    assert not present.several(2.1), "one was not seen for more than two seconds"
    present.saw("one", 2.5)
    assert present.several(3.0)


def test_whoever_is_seen_again_and_again_stays_and_is_one() -> None:
    present = Presence(2.0)
    present.saw("quiet", 0.5)
    for tenth in range(100):
        present.saw("noisy", tenth / 10)
    assert not present.several(9.9)
    assert len(present._seen) == 1, "who is gone is forgotten"
