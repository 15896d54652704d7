"""That the service did not answer, remembered from one hook to the next: each is a process of its
own, and a host waits for it."""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

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

    def waited(self) -> None:
        """A hook has waited in vain."""
        with suppress(OSError):
            self._mark.parent.mkdir(parents=True, exist_ok=True)
            self._mark.touch()

    def answered(self) -> None:
        """The service has answered."""
        with suppress(OSError):
            self._mark.unlink(missing_ok=True)
