"""How a session's compactions went lately, as far as that decides whether another is tried: after
Hermes's compressor (docs/compressor.md#when-it-does-not-go-well).

A pure state machine. The state is a value that the session keeps, time is an argument, in
milliseconds since 1970 UTC: so a restart or another replica changes nothing.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from contextengine_server.summarize.request import Failure

ABORTS: frozenset[Failure] = frozenset(
    ("auth", "connection", "timeout", "overload", "blank", "truncated")
)
"""Failures that leave the history as it is: they say nothing of it, and pass or are mended."""
COOLDOWN_S: dict[Failure, int] = {
    "auth": 60,
    "connection": 30,
    "overload": 60,
    "malformed": 30,
    "blank": 30,
    "other": 60,
}
LADDER_S = (60, 300, 900)
"""The cooldowns of the first, the second and every later time-out in a row, and of answers that
were cut off."""
MOST = 2
"""So many compactions in a row without effect, or by a summarizer that stood in, are enough."""
PROBE_MS = 300_000
"""So long after that one more is tried."""
TOLERANCE, TOLERANCE_SHARE = 4_096, 0.05
"""By so many tokens, or this share of the threshold, a session may have grown since a prompt that
fitted, until an estimate alone says that it no longer does."""


class Attempts(msgspec.Struct, frozen=True, omit_defaults=True):
    """How it went. Tokens are those of messages in the reference encoding."""

    cooldown_ms: int = 0
    """Until then no model is asked; 0: none failed."""
    failure: Failure | None = None
    """How the model failed that the cooldown is for."""
    aborts: bool = False
    """True where that left the history as it was."""
    timeouts: int = 0
    """In a row, `busy` ones included."""
    truncations: int = 0
    strikes: int = 0
    """Compactions in a row after which a prompt still reached the threshold."""
    fallbacks: int = 0
    """Compactions in a row whose summary another than a model wrote, since models failed."""
    probe_ms: int = 0
    """From then on one more is tried although there were so many; 0: there were not."""
    limit: int = 0
    """The threshold that the next bill is held against, as it was at the newest compaction; 0:
    nothing waits for a bill."""
    fitted: int = 0
    """The tokens of all messages when a bill was below that threshold; 0: none was since."""
    dropped: int = 0
    """The messages of the newest compaction whose summary another than a model wrote; 0: a model
    did, or nobody was there."""

    def failed(self, kind: Failure, now_ms: int, *, aborts: bool) -> Attempts:
        """After a model failed; `aborts`: and the history was left as it was."""
        late, cut = kind in ("timeout", "busy"), kind == "truncated"
        timeouts = self.timeouts + 1 if late else self.timeouts
        truncations = self.truncations + 1 if cut else self.truncations
        rung = timeouts if late else truncations
        seconds = COOLDOWN_S.get(kind) or LADDER_S[min(rung, len(LADDER_S)) - 1]
        return replace(
            self,
            cooldown_ms=now_ms + seconds * 1_000,
            failure=kind,
            aborts=aborts,
            timeouts=timeouts,
            truncations=truncations,
        )

    def compacted(self, limit: int, now_ms: int, dropped: int) -> Attempts:
        """After a compaction was committed, at this threshold. `dropped`: its messages, where
        somebody stood in for the models; else 0. The next bill judges it."""
        fallbacks = self.fallbacks + 1 if dropped else 0
        made = replace(self, fallbacks=fallbacks, limit=limit, fitted=0, dropped=dropped)
        if not dropped:
            made = replace(
                made, cooldown_ms=0, failure=None, aborts=False, timeouts=0, truncations=0
            )
        return made._watched(self, now_ms)

    def billed(self, tokens: int, stored: int, now_ms: int) -> Attempts:
        """After a bill for so many tokens of messages, where `stored` of them are there in all. 0:
        a reply came without a bill, so that the compaction is not judged."""
        if not self.limit or not tokens:
            return replace(self, limit=0)
        if tokens < self.limit:
            return replace(self, strikes=0, limit=0, fitted=max(1, stored))._watched(self, now_ms)
        struck = replace(self, strikes=self.strikes + 1, limit=0, fitted=0)
        return struck._watched(self, now_ms)

    def _watched(self, before: Attempts, now_ms: int) -> Attempts:
        """With the time of the next probe: a failed one moves it."""
        if max(self.strikes, self.fallbacks) < MOST:
            return replace(self, probe_ms=0)
        more = self.strikes > before.strikes or self.fallbacks > before.fallbacks
        return replace(self, probe_ms=now_ms + PROBE_MS) if more or not self.probe_ms else self

    def switched(self, *, route: bool) -> Attempts:
        """On another model; `route`: reached in another way, so that what failed may not fail."""
        if route:
            return Attempts()
        return replace(self, strikes=0, limit=0, fitted=0)._watched(self, 0)

    def cooling(self, now_ms: int) -> int:
        """The seconds for which no model is asked; 0: one may be. More than the longest cooldown
        are a clock's that was set back: nobody waits for those."""
        seconds = max(0, -(-(self.cooldown_ms - now_ms) // 1_000))
        return seconds if seconds <= max(LADDER_S) else 0

    def blocked(self, now_ms: int) -> str:
        """Why no compaction begins by itself, in Hermes's words; empty: one may."""
        seconds = self.cooling(now_ms)
        if seconds:
            return f"cooldown:{seconds}"
        many = max(self.strikes, self.fallbacks) >= MOST
        return "ineffective" if many and 0 < self.probe_ms - now_ms <= PROBE_MS else ""

    def defers(self, stored: int, limit: int) -> bool:
        """True where an estimate above the threshold waits for a bill: the last prompt fitted, and
        hardly anything came since. `stored`: the tokens of all messages."""
        most = max(TOLERANCE, int(limit * TOLERANCE_SHARE))
        return bool(self.fitted) and stored - self.fitted <= most
