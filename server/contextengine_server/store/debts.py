"""What sessions owe, as stores keep it."""

from __future__ import annotations

import msgspec

from contextengine_server.context.scope import Scope

LONGEST_WAIT_MS = 24 * 3_600_000
"""No debt is put off or leased for longer. Where one says so, a clock was set back since, and
nobody waits for as long as that was."""


class Debt(msgspec.Struct, frozen=True):
    """Background work that a session owes. The only record of it; a queue merely wakes workers."""

    scope: Scope
    kind: str
    queued_ms: int
    not_before_ms: int = 0
    attempts: int = 0
    lease_owner: str = ""
    lease_until_ms: int = 0
    held: bool = False
    """True: not to be claimed until the hold is lifted (a compaction that was undone)."""
    cause: str = ""
    """The traceparent of the call that caused it."""
    last_error: str = ""
    payload: bytes = b"{}"

    def leased(self, now_ms: int) -> bool:
        """Whether it is under a live lease."""
        return 0 < self.lease_until_ms - now_ms <= LONGEST_WAIT_MS

    def put_off(self, now_ms: int) -> bool:
        """Whether it is for later."""
        return 0 < self.not_before_ms - now_ms <= LONGEST_WAIT_MS
