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

from contextengine import ContextEngineError
from contextengine.errors import TooLarge
from contextengine.types import Message

log = logging.getLogger("contextengine_proxy")

AGAIN_S = 1.0
"""Seconds until the service is asked again."""
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
        """Pays until the service is away again."""
        for session, debt in list(self._of.items()):
            try:
                await self._pay(session, debt)
            except (ContextEngineError, TimeoutError) as error:
                if not _for_good(error):
                    return
                log.warning("session %s: it is not stored: %s", session, error)
            if self.stands(session, debt):
                self.settle(session)


def _for_good(error: Exception) -> bool:
    return isinstance(error, TooLarge) or getattr(error, "code", None) in FOR_GOOD
