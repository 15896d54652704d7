"""Which sessions are not kept as others are: operators name them by pattern
(docs/semantics.md#sessions-kept-apart)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.context.scope import Scope
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.patterns import SessionFacts, SessionPattern
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.treatment import Treatment
from contextengine_server.session.selection import Selection
from contextengine_server.store.protocols import Store


class TreatmentRules(msgspec.Struct, frozen=True):
    """The patterns of sessions that are not kept as others are. Ignoring wins."""

    ignored: Sequence[SessionPattern] = ()
    stateless: Sequence[SessionPattern] = ()

    @property
    def empty(self) -> bool:
        """True where every session is kept."""
        return not self.ignored and not self.stateless

    @property
    def ask_keys(self) -> bool:
        """True where the key of a session matters."""
        return any(pattern.key for pattern in (*self.ignored, *self.stateless))


class FindTreatment(msgspec.Struct, frozen=True):
    """Tells how a session is treated that a request names."""

    store: Store
    selection: Selection
    rules: TreatmentRules

    async def run(self, tenant: str, ref: Ref) -> Treatment:
        """One that is named by its id alone has the key that it is stored with; one that is named
        by its key alone the id of the key's current session, and where there is none the key."""
        facts = await self._facts(tenant, ref)
        if any(pattern.matches(facts) for pattern in self.rules.ignored):
            return Treatment.IGNORED
        if any(pattern.matches(facts) for pattern in self.rules.stateless):
            return Treatment.STATELESS
        return Treatment.KEPT

    async def engine(self, tenant: str, ref: Ref) -> Engine:
        """The engine that assembles what is sent of it."""
        facts = await self._facts(tenant, ref)
        scope = Scope(tenant, facts.agent, facts.session)
        return (await self.selection.engine_for(scope, facts.key)).engine

    async def _facts(self, tenant: str, ref: Ref) -> SessionFacts:
        session, key = ref.session, ref.key
        if key and not session:
            session = await self.store.current_session(tenant, ref.agent, key) or key
        elif session and not key and self.rules.ask_keys:
            head = await self.store.head(Scope(tenant, ref.agent, session))
            key = head.session_key if head is not None else ""
        return SessionFacts(ref.agent, session, key)
