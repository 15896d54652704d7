"""What a host says that it can do, and what follows from it
(docs/semantics.md#what-a-host-can-do)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.errors import HostCapabilityMissing

from .contract import Engine

ASSEMBLES = "assemble-before-prompt"
ASKS_TO_COMPACT = "compact"
BOOTSTRAPS_THREADS = "thread-bootstrap-projection"
COMPACTS = "compacts-transcript"
"""The host's capability to compact its own transcript when an engine delegates."""


LENDS_IN_MAINTAIN = "lends-in-maintain"
"""The host's capability to lend its model in Maintain, and only then."""


class HostLimit(msgspec.Struct, frozen=True):
    """A capability that a host lacks, and what follows."""

    capability: str
    consequence: str


def can(capabilities: Sequence[str], name: str) -> bool:
    """True where the host can, or said nothing of what it can do."""
    return not capabilities or name in capabilities


def host_compacts(engine: Engine, capabilities: Sequence[str]) -> bool:
    """True where the host keeps its own automatic compaction: the engine makes none, or what the
    engine assembles never reaches this host's model."""
    return not engine.owns_compaction or not can(capabilities, ASSEMBLES)


def host_limits(engine: Engine, capabilities: Sequence[str]) -> list[HostLimit]:
    """What this host does without under this engine."""
    assembles = can(capabilities, ASSEMBLES)
    compaction = (
        "the engine compacts in the background alone, and evicts where that comes too late"
        if engine.owns_compaction
        else "nothing is compacted, because this engine does so when it is asked to"
    )
    known = (
        (
            ASSEMBLES,
            "what is assembled never reaches the model: the host keeps its own context and its own"
            " compaction; its messages are stored and can be recalled",
        ),
        (ASKS_TO_COMPACT, compaction if assembles else "the host compacts its own context"),
        (BOOTSTRAPS_THREADS, "a context is projected with every turn, never once for a thread"),
    )
    return [HostLimit(name, what) for name, what in known if not can(capabilities, name)]


def require(engine: Engine, host: str, capabilities: Sequence[str]) -> None:
    """Raises HostCapabilityMissing where the host says what it can do and that is less than the
    engine needs."""
    required = sorted(engine.declared.host_capabilities)
    missing = [name for name in required if not can(capabilities, name)]
    if not missing:
        return
    named = {
        "missing": ", ".join(missing),
        "required": ", ".join(required),
        "declared": ", ".join(capabilities),
    }
    raise HostCapabilityMissing(
        f"engine {engine.id!r} cannot serve the host {host or 'without an id'!r}, which lacks"
        f" {named['missing']}. The engine needs {named['required']}; the host says that it can"
        f" {named['declared']}. Let an operator assign another engine, or update the host",
        metadata={"engine": engine.id, "host": host, **named},
    )
