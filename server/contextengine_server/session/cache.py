"""The sessions that are in memory."""

from __future__ import annotations

from collections import OrderedDict

from contextengine_server.context.scope import Scope

from .encoding import Encoding
from .session import Session


class SessionCache:
    """The sessions in memory, bounded by their bytes; the least recently used leaves first, but
    none that is in use. cachetools has no way to keep an entry that is in use."""

    def __init__(self, capacity: int, encoding: Encoding) -> None:
        self.capacity = capacity
        self.bytes = 0
        self._encoding = encoding
        """What a session that is not read yet counts in."""
        self._sessions: OrderedDict[Scope, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def enter(self, scope: Scope) -> Session:
        """The session's place in memory, in use until `leave`."""
        session = self._sessions.get(scope)
        if session is None:
            session = self._sessions[scope] = Session(scope, self._encoding)
        else:
            self._sessions.move_to_end(scope)
        session.users += 1
        return session

    def leave(self, session: Session) -> None:
        """Ends a use."""
        session.users -= 1
        if session.head is None:
            self.drop(
                session.scope
            )  # nothing is kept for sessions that do not exist, however many are asked for
        if self.bytes > self.capacity:
            self.shrink()

    def grown(self, session: Session, size: int) -> None:
        """Notes that a session takes another number of bytes now."""
        self.bytes += size - session.size
        session.size = size

    def shrink(self) -> None:
        """Lets sessions go until the rest fits."""
        for scope, session in list(self._sessions.items()):
            if self.bytes <= self.capacity:
                break
            if not session.users:
                self.drop(scope)

    def drop(self, scope: Scope) -> bool:
        """Lets a session go, unless it is in use; True where something was held."""
        session = self._sessions.get(scope)
        if session is None or session.users:
            return False
        del self._sessions[scope]
        self.bytes -= session.size
        return True

    def find(self, scope: Scope) -> Session | None:
        """The session, where it is warm."""
        return self._sessions.get(scope)

    def all(self) -> list[Session]:
        """Every warm session."""
        return list(self._sessions.values())
