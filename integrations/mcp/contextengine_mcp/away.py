"""That the service did not answer, remembered from one hook to the next: each is a process of its
own, and a host waits for it."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import grpc

from contextengine import ContextEngineError

AGAIN_S = 30.0
"""Seconds after which a hook waits for the service once more as if it had always answered."""
GLANCE_S = 0.04
"""Seconds that a hook before that waits for any answer at all."""


class Away:
    """What is remembered of a service. Where nothing can be written, nothing is remembered."""

    def __init__(self, address: str) -> None:
        kept = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        name = hashlib.sha256(address.encode()).hexdigest()[:16]
        self._mark = Path(kept) / "contextengine" / f"away-{name}"

    @property
    def lately(self) -> bool:
        """Whether a hook has waited in vain a short while ago."""
        try:
            age = time.time() - self._mark.stat().st_mtime
        except OSError:
            return False
        return 0 <= age < AGAIN_S

    def ask(self, ask: Callable[[float], object], seconds: float) -> None:
        """Finds out whether the service answers at all, by a call of its own: one that answers
        slowly, since much is stored, is not away. Raises ContextEngineError where it does not.

        ask: any call, which waits so many seconds at most. seconds: that a hook has.
        """
        lately = self.lately
        try:
            ask(GLANCE_S if lately else seconds)
        except ContextEngineError as error:
            # A hook that only glanced does not put off when the next one waits.
            if error.code is grpc.StatusCode.DEADLINE_EXCEEDED and not lately:
                self._waited()
            raise
        with suppress(OSError):
            self._mark.unlink(missing_ok=True)

    def _waited(self) -> None:
        with suppress(OSError):
            self._mark.parent.mkdir(parents=True, exist_ok=True)
            self._mark.touch()
