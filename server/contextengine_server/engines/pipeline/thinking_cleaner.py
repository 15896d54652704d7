"""The thinking-block cleaner: only the newest replies keep their reasoning.

After Comis's (packages/agent/src/context-engine/thinking-block-cleaner.ts). Reasoning that only the
provider can read is kept whatever its age. Where replay has drifted, nothing before that is young.
"""

from __future__ import annotations

from contextengine_server.context.message import Stripped

from .past import Leavings, Past, thinking_in, with_more


def clean(past: Past, decided: Leavings) -> Leavings:
    """Adds the reasoning that is too old."""
    young = max(past.kept_from, past.drifted_before)
    found = Leavings()
    for one in past.said:
        thinking = thinking_in(one)
        if one.step < young and (thinking.plain or thinking.signed):
            found[one.entry.sequence] = Stripped((*thinking.plain, *thinking.signed))
    return with_more(decided, found)
