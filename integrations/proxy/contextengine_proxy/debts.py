"""What the service has not got of a client's conversation: the list of its newest request, and the
reply to it. It is stored as soon as the service is there, whether or not the client asks again."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import grpc

from contextengine import ContextEngineError, errors
from contextengine.errors import TooLarge
from contextengine.types import Message

log = logging.getLogger("contextengine_proxy")

AGAIN_S = 1.0
"""Seconds until the service is asked again."""
MOST_AGAIN_S = 60.0
"""The same at most for a session that alone is refused: twice as long each time."""
LAST_S = 5.0
"""Seconds that a proxy that stops takes to store what it owes."""
FOUND_S = 1.2
"""Seconds of them in which it is asked again and again: gRPC tries a connection each second."""
MOST_BYTES = 256 * 1024 * 1024
"""The longest that the lists of all debts may be together, as their clients sent them."""
FOR_GOOD = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.OUT_OF_RANGE,
}
"""What the service says of messages that it will never take."""


@dataclass(frozen=True, slots=True, eq=False)
class Debt:
    """A client's whole list, as far as it is known."""

    messages: Sequence[Message]
    ended: bool
    """Whether its turn is over."""
    size: int
    """Bytes of the request."""
    inherited: bool = False
    """Whether a proxy before left it: others may have gone on in the session since."""


class Book(Protocol):
    """Where debts outlive the process: `ledger.Ledger`. Each call may raise OSError."""

    def read(self) -> Iterator[tuple[str, Debt]]:
        """The debts that a proxy before left, by session."""

    def write(self, session: str, debt: Debt) -> None:
        """Keeps it, in place of the session's older one."""

    def strike(self, session: str) -> None:
        """It is no longer owed."""

    def close(self) -> None:
        """No more is written."""


class Debts:
    """One debt a session, the newest: a client's list holds what its older ones held."""

    def __init__(
        self, pay: Callable[[str, Debt], Awaitable[None]], book: Book | None = None
    ) -> None:
        """`pay`: stores a debt of a session. Raises ContextEngineError or TimeoutError. `book`:
        where debts outlive the process. None: nowhere."""
        self._pay, self._book = pay, book
        self._of: OrderedDict[str, Debt] = OrderedDict()
        self._size = 0
        self._rests = Rests()
        self._paying: asyncio.Task[None] | None = None

    def inherit(self) -> None:
        """Owes what a proxy before left."""
        for session, debt in self._book.read() if self._book is not None else ():
            self._owe(session, debt)

    def owe(self, session: str, debt: Debt) -> None:
        """Remembers it, in place of the session's older one."""
        self._owe(session, debt)
        self._noted(lambda book: book.write(session, debt))

    def _owe(self, session: str, debt: Debt) -> None:
        self._forget(session)
        self._of[session] = debt
        self._size += debt.size
        while self._size > MOST_BYTES and len(self._of) > 1:
            oldest = next(iter(self._of))
            self.settle(oldest)
            log.warning("session %s: what is new comes with the client's next request", oldest)
        if self._paying is None or self._paying.done():
            self._paying = asyncio.ensure_future(self._until_paid())

    def settle(self, session: str) -> None:
        """The session is where its client is: nothing is owed."""
        if self._forget(session):
            self._noted(lambda book: book.strike(session))

    def _forget(self, session: str) -> bool:
        """Whether there was one."""
        debt = self._of.pop(session, None)
        self._rests.end(session)
        self._size -= debt.size if debt is not None else 0
        return debt is not None

    def _noted(self, note: Callable[[Book], None]) -> None:
        """A disk that is full, say, stops nobody: the debt is owed as long as the process lives."""
        if self._book is None:
            return
        try:
            note(self._book)
        except OSError as error:
            log.warning("debts are in memory alone: %s", error)

    def stands(self, session: str, debt: Debt) -> bool:
        """Whether it is still the session's newest."""
        return self._of.get(session) is debt

    async def close(self) -> None:
        """Pays once more, for the last time. A service that is just back is not found at once."""
        if self._paying is not None:
            self._paying.cancel()
            await asyncio.gather(self._paying, return_exceptions=True)
        self._rests.end_all()
        try:
            async with asyncio.timeout(LAST_S):
                await self._pay_all()
                ends = time.monotonic() + FOUND_S
                while self._of and time.monotonic() < ends:
                    await asyncio.sleep(FOUND_S / 10)
                    await self._pay_all()
        except TimeoutError:
            pass
        for session in self._of:
            log.warning("session %s: what is new comes with %s", session, self._later)
        if self._book is not None:
            self._book.close()

    @property
    def _later(self) -> str:
        return "the client's next request" if self._book is None else "the next start"

    async def _until_paid(self) -> None:
        while self._of:
            await asyncio.sleep(AGAIN_S)
            await self._pay_all()

    async def _pay_all(self) -> None:
        """Pays until the service is away again. What is refused of one session holds up no
        other."""
        for session, debt in list(self._of.items()):
            if self._rests.is_resting(session):
                continue
            try:
                await self._pay(session, debt)
            except (ContextEngineError, TimeoutError) as error:
                if _is_unreachable(error):
                    return
                if not _for_good(error):
                    if self.stands(session, debt):  # a newer one is tried at once
                        self._rests.begin(session)
                    continue
                log.warning("session %s: it is not stored: %s", session, error)
            if self.stands(session, debt):
                self.settle(session)


class Rests:
    """When sessions whose debts were not taken are tried again."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[float, float]] = {}
        """By session: the seconds that it rests, and the moment at which that ends."""

    def is_resting(self, session: str) -> bool:
        """Whether it is too early for this one."""
        return session in self._of and time.monotonic() < self._of[session][1]

    def begin(self, session: str) -> None:
        """Its debt was not taken."""
        before, _ = self._of.get(session, (AGAIN_S / 2, 0.0))
        seconds = min(2 * before, MOST_AGAIN_S)
        self._of[session] = seconds, time.monotonic() + seconds

    def end(self, session: str) -> None:
        """That debt is no longer owed."""
        self._of.pop(session, None)

    def end_all(self) -> None:
        """Each is tried again now."""
        self._of.clear()


def is_away(error: Exception) -> bool:
    """Whether it says that the service is not there, and not what is wrong with one session."""
    return isinstance(error, TimeoutError) or (
        isinstance(error, ContextEngineError) and errors.is_away(error)
    )


def _is_unreachable(error: Exception) -> bool:
    return getattr(error, "code", None) == grpc.StatusCode.UNAVAILABLE


def _for_good(error: Exception) -> bool:
    if isinstance(error, TooLarge) or getattr(error, "code", None) in FOR_GOOD:
        return True
    # gRPC itself sends no more at once (`Sent message larger than max`), whoever asks.
    exhausted = getattr(error, "code", None) == grpc.StatusCode.RESOURCE_EXHAUSTED
    return exhausted and "larger than max" in str(error)
