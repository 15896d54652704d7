"""How a request names a session, and which session that is (docs/semantics.md#naming-a-session)."""

from __future__ import annotations

import msgspec

from contextengine_server.context.scope import Scope
from contextengine_server.errors import InvalidField, SessionNotFound
from contextengine_server.store.debts import Debt
from contextengine_server.store.protocols import Store
from contextengine_server.telemetry.tracing import CURRENT

from .spans import name_scope
from .state import ALL_OF_IT, FLUSH


class Ref(msgspec.Struct, frozen=True):
    """How a request names a session."""

    agent: str
    session: str = ""
    key: str = ""
    field: str = "session"
    """Where in the request it stands, for errors."""


class Address(msgspec.Struct, frozen=True):
    """A session, and how its key stands to it."""

    scope: Scope
    key: str = ""
    bind: bool = False
    """True where the next write ties the key to this session."""
    rotated: bool = False
    """True where the session is new under a known key."""
    left: str = ""
    """The session that its key leaves with the next write; empty: none."""


async def leave(store: Store, address: Address, now_ms: int) -> None:
    """Has memory told of the session that a key leaves, before it does: nobody may ever end it.
    Each session has its own place in a store, so this is no part of the other's commit."""
    left = address.scope._replace(session=address.left)
    await store.add_debt(Debt(left, FLUSH, now_ms, payload=ALL_OF_IT))


class Addresses(msgspec.Struct, frozen=True):
    """Finds the sessions that requests name."""

    store: Store
    max_id_bytes: int = 256

    async def find(self, tenant: str, ref: Ref) -> Address:
        """The session that a request names. Raises InvalidField."""
        self._check(ref)
        address = (
            await self._found(tenant, ref)
            if ref.key
            else Address(Scope(tenant, ref.agent, ref.session))
        )
        trace = CURRENT.get()
        if trace.sampled:
            name_scope(trace, address.scope)
        return address

    async def _found(self, tenant: str, ref: Ref) -> Address:
        """The session behind a key, or a session with the key that it may be tied to."""
        current = await self.store.current_session(tenant, ref.agent, ref.key)
        if not ref.session:
            scope = Scope(tenant, ref.agent, current or ref.key)
            return Address(scope, ref.key, bind=current is None)
        scope = scope_of(tenant, ref)
        if current == ref.session:
            return Address(scope, ref.key)
        head = await self.store.head(scope)
        if head is not None and head.session_key == ref.key:
            # Rotated out: it stays readable and does not become current again.
            return Address(scope, ref.key)
        rotated = current is not None and head is None
        return Address(scope, ref.key, bind=True, rotated=rotated, left=current or "")

    def _check(self, ref: Ref) -> None:
        if not ref.agent:
            raise InvalidField(
                f"{ref.field}.agent_id", "is required: it names the agent whose session this is"
            )
        if not ref.session and not ref.key:
            raise InvalidField(
                f"{ref.field}.session_id",
                "is required, or session_key: one of the two names the session",
            )
        for name, given in (
            ("agent_id", ref.agent),
            ("session_id", ref.session),
            ("session_key", ref.key),
        ):
            if len(given.encode()) > self.max_id_bytes:
                raise InvalidField(
                    f"{ref.field}.{name}",
                    f"is longer than {self.max_id_bytes} bytes: shorten it",
                )
            if given and not given.strip():
                raise InvalidField(
                    f"{ref.field}.{name}", "is blank: nobody could tell it from none"
                )
            if "\x00" in given:
                raise InvalidField(f"{ref.field}.{name}", "holds a NUL character: remove it")


def scope_of(tenant: str, ref: Ref) -> Scope:
    """The scope that a request names by the session's own id."""
    return Scope(tenant, ref.agent, ref.session)


def not_found(scope: Scope) -> SessionNotFound:
    """The error for a session that does not exist."""
    return SessionNotFound(
        f"there is no session {scope.session!r} of agent {scope.agent!r}: write to it first"
        " (Bootstrap or Ingest)",
        metadata={"agent_id": scope.agent, "session_id": scope.session},
    )
