"""The signature surrogate guard: signed reasoning that was no valid Unicode is not sent again.

After Comis's (packages/agent/src/context-engine/signature-surrogate-guard.ts), which empties the
signature. Half a pair of UTF-16 has no form in UTF-8: what is sent is not what was signed. A
signature is never altered here (law 3), so the reasoning goes with it. The scrubber takes all that
is signed already; where that is off, this is what is left of it.
"""

from __future__ import annotations

from contextengine_server.context.message import Stripped

from .past import Leavings, Past, thinking_in, with_more


def guard(past: Past, decided: Leavings) -> Leavings:
    """Adds signed reasoning whose text cannot be what was signed."""
    found = Leavings()
    for one in past.said:
        damaged = thinking_in(one).damaged
        if damaged and not {*damaged} <= {*decided.get(one.entry.sequence, Stripped()).reasoning}:
            found[one.entry.sequence] = Stripped(damaged)
    return with_more(decided, found)
