"""What each of several may have at once, and later where it has had too much of it."""

from __future__ import annotations

_KEPT = 4_096
"""So many keys are remembered; where all of them had something lately, they begin anew."""


class Cadence:
    """At once `rate` times a second, and `burst` times together (the generic cell rate algorithm,
    ITU-T I.371); whatever comes beyond that waits up to `longest_s`, each for another time, so that
    what came together is spread evenly."""

    def __init__(self, rate: float, burst: int, longest_s: float) -> None:
        self._step, self._longest_s = 1 / rate, longest_s
        self._ahead_s = (burst - 1) / rate
        self._due: dict[str, float] = {}
        self._count = 0

    def wait(self, key: str, now: float) -> float:
        """Seconds that a key is to wait, from a time in seconds that never goes back."""
        due = max(self._due.get(key, now), now)
        if due - now > self._ahead_s:
            self._count += 1
            return self._longest_s * (self._count * 0.618034 % 1)  # the golden ratio: evenly
        if key not in self._due and len(self._due) >= _KEPT:
            self._due = {one: time for one, time in self._due.items() if time > now}
            if len(self._due) >= _KEPT:
                self._due.clear()
        self._due[key] = due + self._step
        return 0.0
