"""What spans say of sessions: names, ids and counts, never text."""

from __future__ import annotations

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import Commit
from contextengine_server.telemetry.tracing import Trace


def name_scope(span: Trace, scope: Scope) -> None:
    """Whose session the span works on."""
    span.set("contextengine.tenant", scope.tenant)
    span.set("gen_ai.agent.id", scope.agent)
    span.set("gen_ai.conversation.id", scope.session)


def loaded(span: Trace, *, from_memory: bool) -> None:
    """Where a session was loaded from."""
    span.set("contextengine.load.source", "memory" if from_memory else "store")


def commit_span(trace: Trace, commit: Commit) -> Trace:
    """The span of writing a change, which says how large that is."""
    span = trace.span("commit")
    span.set("contextengine.commit.revision", commit.head.revision)
    span.set("contextengine.commit.messages", len(commit.messages))
    span.set("contextengine.commit.summaries", len(commit.summaries))
    return span
