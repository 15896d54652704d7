"""What could not be stored, done once more beside the host, for threads. `aio_later` is the same
for asyncio; both are written by hand, since tasks and threads are begun in other ways."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from .aio_later import AGAIN, log
from .errors import ContextEngineError
from .pending import refused_for_good
from .types import Message


class Later:
    """The newest end of a turn that the service has not got: a host's list holds the older ones."""

    def __init__(self, store: Callable[[Sequence[Message]], None]) -> None:
        """`store`: what failed. Raises ContextEngineError where it fails again."""
        self._store = store
        self._owed: Sequence[Message] | None = None
        self._thread: threading.Thread | None = None
        self.lock = threading.Lock()
        """Whoever holds it is alone with the session."""

    def owe(self, messages: Sequence[Message]) -> None:
        """Stores these as soon as the service is there, unless they are settled before. The lock is
        held."""
        self._owed = messages
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._until_stored, name="contextengine-later", daemon=True
            )
            self._thread.start()

    def settle(self) -> None:
        """The session is where its host is."""
        self._owed = None

    def _until_stored(self) -> None:
        while True:
            time.sleep(AGAIN)
            with self.lock:
                if self._owed is not None and self._stored(self._owed):
                    self._owed = None
                if self._owed is None:
                    self._thread = None
                    return

    def _stored(self, messages: Sequence[Message]) -> bool:
        """Whether nothing is left to do."""
        try:
            self._store(messages)
        except ContextEngineError as error:
            if not refused_for_good(error):
                return False
            log.warning("contextengine: the end of a turn is not stored: %s", error)
        except ValueError:  # the client was closed
            log.warning("contextengine: the end of a turn comes with the next call")
        return True
