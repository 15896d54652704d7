"""The reasoning-tag stripper: what a model wrote between tags of reasoning goes.

After Comis's (packages/agent/src/context-engine/reasoning-tag-stripper.ts); which tags, and what is
code, is in `wire.reasoning_tags`.
"""

from __future__ import annotations

from contextengine_server.context.message import Stripped

from .past import NOTHING, Leavings, Past, thinking_in, with_more


def strip(past: Past, decided: Leavings) -> Leavings:
    """Adds the texts with tags; but for those beside reasoning that must stay as it is."""
    found = Leavings()
    for one in past.said:
        thinking = thinking_in(one)
        left_out = decided.get(one.entry.sequence, NOTHING).reasoning
        sealed = {*thinking.signed, *thinking.redacted} - {*left_out}
        if thinking.tagged and (not sealed or left_out):
            found[one.entry.sequence] = Stripped(untagged=thinking.tagged)
    return with_more(decided, found)
