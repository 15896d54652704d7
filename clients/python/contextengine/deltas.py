"""Delta replies: the whole list from the list that is held and what follows it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import ContextEngineError
from .fields import Known
from .types import AssembleResponse, Item, Message


class DeltaMismatch(Exception):
    """A delta does not fit the list that is held. The next call gets the whole list."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a caller holds of its last assembly."""

    items: tuple[Item, ...] = ()
    context_hash: bytes = b""
    epoch: str = ""


@dataclass(frozen=True, slots=True)
class Degraded:
    """Why the client made an assembly by itself."""

    reason: str
    """The error's reason, or the name of its gRPC code where it has none."""
    error: ContextEngineError
    unqueued: int = 0
    """How many messages of `ingest` the full queue did not take: nobody stores them but the
    caller."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """The context for one model call, whole.

    Items are shared with later assemblies of the same session handle: read them, do not change
    them.
    """

    items: tuple[Item, ...]
    """The whole list, in order."""
    response: AssembleResponse
    """The reply as it came; its `items` may be only what follows the reused ones."""
    degraded: Degraded | None = None
    """Why the client made it by itself. None: the service did."""

    @property
    def messages(self) -> list[Message]:
        """What to send to the model, in order."""
        return [item.message for item in self.items]

    @property
    def fits(self) -> bool:
        """Whether the list is within its budget and as asked."""
        return self.response.outcome == AssembleResponse.OUTCOME_FITS


class Holder:
    """What a session handle holds. Calls may overlap: each reply extends the list that its own
    request named."""

    def __init__(self) -> None:
        self._held = Held()

    def begin(self, delta: bool) -> tuple[Held, Known]:
        """What the reply will extend, and what the request says of it. Without `delta`: nothing."""
        held = self._held if delta else Held()
        if not held.context_hash:
            return held, {}
        return held, {"known_context_hash": held.context_hash, "known_epoch": held.epoch}

    def take(self, held: Held, response: AssembleResponse) -> Assembly:
        """The whole list. Raises DeltaMismatch, and then holds nothing."""
        self._held = Held()
        self._held = whole = extend(held, response)
        return Assembly(whole.items, response)


def extend(held: Held, response: AssembleResponse) -> Held:
    """What is held after `response`: the reused beginning of the held list, then the items that
    came.

    The new list may be shorter than the held one. Raises DeltaMismatch where the counts do not add
    up.
    """
    reused, total = response.cache.reused_count, response.cache.total_count
    if not 0 <= reused <= len(held.items):
        raise DeltaMismatch(f"the reply reuses {reused} entries of a list of {len(held.items)}")
    if reused + len(response.items) != total:
        raise DeltaMismatch(
            f"{reused} reused and {len(response.items)} new entries are not the {total} announced"
        )
    items = held.items[:reused] + tuple(response.items)
    return Held(items, response.context_hash, response.context_projection.epoch)
