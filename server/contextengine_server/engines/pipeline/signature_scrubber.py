"""The signature replay scrubber: nothing signed is sent again once its turn is over.

After Comis's (packages/agent/src/context-engine/signature-replay-scrubber.ts), which learned that
no telling of drift foresees when a provider refuses a signature: all of them go, and the reasoning
that one was over goes with it, since it cannot stand without.
"""

from __future__ import annotations

from contextengine_server.context.message import Stripped

from .past import Leavings, Past, thinking_in, with_more


def scrub(past: Past, decided: Leavings) -> Leavings:
    """Adds signed reasoning, and the signatures of what is none itself."""
    found = Leavings()
    for one in past.said:
        thinking = thinking_in(one)
        if thinking.signed or thinking.marked:
            found[one.entry.sequence] = Stripped(thinking.signed, thinking.marked)
    return with_more(decided, found)
