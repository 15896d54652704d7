"""Who goes before others, and for how long."""

from __future__ import annotations

from contextengine_server.fairness.ahead import Ahead


def test_a_holder_goes_before_those_of_other_keys_until_it_is_done() -> None:
    ahead: Ahead[str] = Ahead(1.0)
    ahead.add("quiet", "a", 10.0)
    assert [ahead.of_another(key, 10.5) for key in ("quiet", "noisy")] == [False, True]
    ahead.add("noisy", "b", 10.5)
    assert [ahead.of_another(key, 10.5) for key in ("quiet", "noisy", "third")] == [True] * 3
    ahead.discard("a")
    ahead.discard("a")
    assert [ahead.of_another(key, 10.5) for key in ("quiet", "noisy")] == [True, False]


def test_what_takes_too_long_goes_before_nobody() -> None:
    ahead: Ahead[str] = Ahead(1.0)
    ahead.add("quiet", "a", 10.0)
    ahead.add("quiet", "b", 10.9)
    assert ahead.of_another("noisy", 11.5)
    assert not ahead.of_another("noisy", 12.0)


def test_a_key_that_is_forgotten_goes_before_nobody() -> None:
    ahead: Ahead[str] = Ahead(1.0)
    for holder in ("a", "b"):
        ahead.add("noisy", holder, 10.0)
    ahead.add("quiet", "c", 10.0)
    ahead.forget("noisy")
    assert [ahead.of_another(key, 10.5) for key in ("quiet", "noisy")] == [False, True]
    ahead.discard("a")
    ahead.add("noisy", "a", 10.5)
    assert ahead.of_another("quiet", 10.5)
