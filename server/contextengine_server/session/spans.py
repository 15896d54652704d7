"""What spans say of sessions: names, ids and counts, never text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import SessionHead
from contextengine_server.telemetry.tracing import Trace

if TYPE_CHECKING:
    from contextengine_server.session.cache import Session


def name_scope(span: Trace, scope: Scope) -> None:
    """Whose session the span works on."""
    span.set("contextengine.tenant", scope.tenant)
    span.set("gen_ai.agent.id", scope.agent)
    span.set("gen_ai.conversation.id", scope.session)


def loaded(span: Trace, session: Session, known: SessionHead | None) -> None:
    """Where a session was loaded from. `known`: its head in memory before."""
    span.set("contextengine.load.source", "memory" if session.head is known else "store")
