"""What could not be sent while the service was away, in order, within bounds."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

import grpc

from .errors import ContextEngineError, QueueFull, TooLarge
from .spill import Spill
from .types import AfterTurnRequest, SessionRef

MAX_MESSAGES = 10_000
MAX_BYTES = 64 * 1024 * 1024
MAX_REJECTED = 1_000

_FOR_GOOD = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.OUT_OF_RANGE,
}
"""What a service says of a request that it will never take."""


def refused_for_good(error: ContextEngineError) -> bool:
    """Whether sending the same again would not help."""
    return error.code in _FOR_GOOD or isinstance(error, TooLarge)


@dataclass(frozen=True, slots=True)
class Rejected:
    """A queued request that the service refused for what it is."""

    request: AfterTurnRequest
    error: ContextEngineError


class Pending:
    """The queue of a client. Safe to share between threads."""

    def __init__(
        self,
        max_messages: int = MAX_MESSAGES,
        max_bytes: int = MAX_BYTES,
        spill: Spill | None = None,
    ) -> None:
        self._max_messages, self._max_bytes, self._spill = max_messages, max_bytes, spill
        self._lock = threading.Lock()
        self._entries: list[AfterTurnRequest] = [] if spill is None else spill.read()
        self._bytes = sum(entry.ByteSize() for entry in self._entries)
        self._count = sum(map(_count, self._entries))
        self.rejected: deque[Rejected] = deque(maxlen=MAX_REJECTED)
        """What the service refused, the newest last."""

    def add(self, entry: AfterTurnRequest) -> None:
        """Queues an entry. Raises QueueFull, and then changes nothing."""
        with self._lock:
            count, size = self._count + _count(entry), self._bytes + entry.ByteSize()
            if count > self._max_messages or size > self._max_bytes:
                raise QueueFull(
                    f"{self._count} messages of {self._bytes} bytes wait for the service; "
                    f"{self._max_messages} and {self._max_bytes} bytes are the limits",
                    code=grpc.StatusCode.RESOURCE_EXHAUSTED,
                )
            if self._spill is not None:
                try:
                    self._spill.append(entry)
                except OSError as error:
                    # The agent goes on without its disk, too.
                    raise QueueFull(
                        f"the spill file cannot be written: {error}",
                        code=grpc.StatusCode.RESOURCE_EXHAUSTED,
                    ) from error
            self._entries.append(entry)
            self._count, self._bytes = count, size

    def first(self, session: SessionRef) -> AfterTurnRequest | None:
        """The oldest entry of a session. None: there is none."""
        with self._lock:
            return next((entry for entry in self._entries if entry.session == session), None)

    def sessions(self) -> list[SessionRef]:
        """The sessions that have entries, the one with the oldest entry first."""
        with self._lock:
            named = {
                entry.session.SerializeToString(deterministic=True): entry.session
                for entry in self._entries
            }
        return list(named.values())

    def sent(self, entry: AfterTurnRequest) -> bool:
        """Takes out an entry that the service has answered. False: another call had sent it as
        well, and was quicker."""
        with self._lock:
            index = next(
                (index for index, found in enumerate(self._entries) if found is entry), None
            )
            if index is None:
                return False
            del self._entries[index]
            self._count -= _count(entry)
            self._bytes -= entry.ByteSize()
            if not self._entries and self._spill is not None:
                self._spill.clear()
        return True

    def failed(self, entry: AfterTurnRequest, error: ContextEngineError) -> None:
        """Takes out an entry that was refused for good. Raises the error where sending it again may
        help."""
        if not refused_for_good(error):
            raise error
        if self.sent(entry):
            self.rejected.append(Rejected(entry, error))

    def count(self, session: SessionRef | None = None) -> int:
        """How many messages wait, of a session or of all. An entry without messages counts as
        one."""
        with self._lock:
            return sum(_count(entry) for entry in self._entries if session in (None, entry.session))

    def close(self) -> None:
        """Closes the spill file, which keeps what it holds."""
        if self._spill is not None:
            self._spill.close()


def _count(entry: AfterTurnRequest) -> int:
    return max(1, len(entry.messages))
