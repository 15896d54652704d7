"""That the service did not answer, remembered from one process to the next: each hook is one of its
own, the tools are another, and a host waits for all of them."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import grpc

from contextengine import ContextEngineError

GLANCE_S = 0.04
"""Seconds that a hook waits for any answer at all from a service that is known to be away."""
PROBE_S = 5.0
"""Seconds that a question takes at most whether it is back, and between two of them. It goes on in
a process of its own, since a service that is far away answers no glance."""

Ask = Callable[[float], object]
"""Any call, which waits so many seconds at most. Raises ContextEngineError."""


class Away:
    """What is remembered of a service. Where nothing can be written, nothing is remembered."""

    def __init__(
        self, address: str, begin: Callable[[], object], cache: Path | None = None
    ) -> None:
        """begin: begins a question, `probe` in another process, and does not wait for it. cache:
        the folder of what may be lost. None: that of the user."""
        kept = cache or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        name = hashlib.sha256(address.encode()).hexdigest()[:16]
        self.mark = Path(kept) / "contextengine" / f"away-{name}"
        """There while the service is known to be away; as old as the newest question."""
        self._begin = begin

    @property
    def known(self) -> bool:
        """Whether somebody has waited in vain, and nobody was answered since."""
        return self.mark.exists()

    def ask(self, ask: Ask, seconds: float) -> None:
        """Finds out whether the service answers at all, by a call of its own: one that answers
        slowly, since much is stored, is not away. Raises ContextEngineError where it does not.

        seconds: that a hook has.
        """
        began = time.monotonic()
        try:
            ask(GLANCE_S if self.known else seconds)
        except ContextEngineError as error:
            self.failed(error, time.monotonic() - began)
            raise
        self.answered()

    def probe(self, ask: Ask) -> None:
        """Asks once whether the service is back. Whoever refuses to answer is there too."""
        try:
            ask(PROBE_S)
        except ContextEngineError as error:
            if nobody(error):
                return
        self.answered()

    def failed(self, error: ContextEngineError, seconds: float) -> None:
        """A call has failed, after so many seconds. A refusal at once costs nobody anything."""
        if self.known:
            self._question()
        elif nobody(error) and seconds > GLANCE_S:
            self._wrote()

    def answered(self) -> None:
        """The service is there."""
        with suppress(OSError):
            self.mark.unlink(missing_ok=True)

    def _question(self) -> None:
        with suppress(OSError):
            if not 0 <= time.time() - self.mark.stat().st_mtime < PROBE_S:
                self._wrote()
                self._begin()

    def _wrote(self) -> None:
        with suppress(OSError):
            self.mark.parent.mkdir(parents=True, exist_ok=True)
            self.mark.touch()


def nobody(error: ContextEngineError) -> bool:
    """Whether it says that nobody answered in time."""
    return error.code in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE)
