"""What the layers of reasoning look at: what the model said in turns that are over, and from where
on its reasoning is kept.

Within the newest turn nothing is left out: while a model calls tools its provider wants its
reasoning back (law 3), and what was sent within a turn stays a prefix. Between two turns of a user
all of it moves at once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from contextengine_server.context.message import Stripped, Thinking
from contextengine_server.context.observations import Reply
from contextengine_server.context.view import View

from .options import PipelineOptions

BLOCKS = 3
"""What is kept for its age moves by this part (a third) of the replies that keep it, as the history
window does."""

Leavings = dict[int, Stripped]
"""What of each message is left out, by sequence."""
NOTHING = Stripped()


class Past(msgspec.Struct, frozen=True):
    """What the model said in turns that are over."""

    said: Sequence[Reply]
    """Of that what holds reasoning and may be shown without."""
    kept_from: int
    """The first step that is young enough to keep its reasoning."""
    drifted_before: int = 0
    """Reasoning before this step may not be worth anything any more; 0: none has drifted,"""
    drift: str = ""
    """and why: `idle`, `model_change`, `provider_change` or `api_change`."""


def past_of(view: View, first: int, options: PipelineOptions) -> Past:
    """The past of a view from this step on."""
    over = view.user_step
    stays = {*range(view.leading), *view.pinned}
    thoughts = view.replies.thoughts
    begins, ends = (bisect_left(thoughts, step, key=_step) for step in (first, over))
    may_go = view.reader.reasoning_may_go
    said = [
        one
        for one in (*view.older, *thoughts[begins:ends])
        if one.step >= first and one.step not in stays and (may_go or not one.entry.traits.sealed)
    ]
    drifted, why = drift(view, options)
    return Past(said, _kept_from(view, options.thinking_keep_turns), drifted, why)


def drift(view: View, options: PipelineOptions) -> tuple[int, str]:
    """The step before which reasoning has drifted, and why; 0: none has. In the order of Comis: too
    long a pause, another model, provider or API dialect. Of what happened more than once the newest
    counts."""
    replies, over = view.replies, view.user_step
    idle = options.replay_drift_idle_ms
    later = (one.step for one in reversed(view.pauses) if one.ms > idle and _asks(view, one.step))
    paused = next(later, 0)
    switched, change = replies.switched
    if view.reader.is_another(replies.made_by[1]):
        switched, change = over, "model_change"
    if paused >= switched:
        return (paused, "idle") if paused else (0, "")
    return min(switched, over), change


def _kept_from(view: View, keep: int) -> int:
    """The first step of those whose reasoning is kept for its age: that of the newest replies
    before the newest turn. It moves by several at a time."""
    steps = view.replies.steps
    over = bisect_left(steps, view.user_step)
    said = view.fold.replies - (len(steps) - over)
    block = max(1, keep // BLOCKS)
    gone = (said - keep) // block * block
    kept = said - gone
    return steps[over - kept] if gone > 0 and kept <= over else 0


def _asks(view: View, step: int) -> bool:
    """True where a user goes on with this step."""
    return view.base <= step < view.steps and view.atom(step).user


def thinking_in(one: Reply) -> Thinking:
    """The reasoning of a message that has some."""
    thinking = one.entry.traits.thinking
    assert thinking is not None
    return thinking


def with_more(decided: Leavings, found: Leavings) -> Leavings:
    """The decisions with more of them; the very same where there are none."""
    if not found:
        return decided
    return decided | {
        sequence: joined(decided.get(sequence, NOTHING), more) for sequence, more in found.items()
    }


def joined(some: Stripped, more: Stripped) -> Stripped:
    """What either leaves out."""
    return Stripped(
        tuple(sorted({*some.reasoning, *more.reasoning})),
        tuple(sorted({*some.unsigned, *more.unsigned})),
        tuple(sorted({*some.untagged, *more.untagged})),
    )


def _step(one: Reply) -> int:
    return one.step
