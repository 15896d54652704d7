"""Who was turned away, who did what only operators may, and who deleted: lines of the log, with the
token's name, as `caller`, and never its value: what a log calls `token` is withheld."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic

from contextengine_server.api.pipeline.call import Call
from contextengine_server.errors import DomainError
from contextengine_server.telemetry.logs import get_logger

PAUSE_S = 1.0
"""Between two lines about refused credentials: whoever guesses tokens must not fill the disk."""

log = get_logger("contextengine.audit")


class Audit:
    """Writes the lines. Belongs to one event loop."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._told = -PAUSE_S
        self._untold = 0

    def refused(self, call: Call, error: DomainError) -> None:
        """A call whose credentials were not enough. Of many in a second one is told, and how many
        were not."""
        now = self._now()
        if now - self._told < PAUSE_S:
            self._untold += 1
            return
        log.warning(
            "credentials_refused",
            rpc=call.rpc.method,
            peer=call.peer,
            reason=error.reason,
            caller=call.caller.token,
            untold=self._untold,
        )
        self._told, self._untold = now, 0

    @staticmethod
    def operated(call: Call) -> None:
        """A call that only operators may make."""
        _did("operator_call", call)


def deleted(call: Call, session: str, sessions: int) -> None:
    """A session was erased, with so many in all."""
    _did("deleted", call, session=session, sessions=sessions)


def erased(call: Call, agent: str, sessions: int, rows: int, *, more: bool) -> None:
    """A part of an agent, or with no name of a tenant, was erased: so many sessions, so many rows
    beside them."""
    _did("erased", call, agent=agent, sessions=sessions, rows=rows, more=more)


def quota_set(call: Call, of: str, quota: Mapping[str, float]) -> None:
    """A tenant may hold something else from now on; with nothing, as the settings say."""
    _did("quota_set", call, of=of, quota=dict(quota))


def _did(what: str, call: Call, **more: object) -> None:
    caller = call.caller
    log.info(
        what,
        rpc=call.rpc.method,
        tenant=caller.tenant,
        caller=caller.token,
        peer=call.peer,
        **more,
    )
