"""In whose role the summary is told, after Hermes's compressor (`_compress_context`): roles take
turns around it, as providers want them.

It is decided when the summary is made and kept with it: the list may go on behind it, and what it
began with stays as it was.
"""

from __future__ import annotations

from contextengine_server.context.message import Role
from contextengine_server.context.view import View

from ..contract import TellingRole


def role_between(view: View, first: int, last: int) -> TellingRole:
    """The role for a summary of these steps: the model's behind a user's message or the results of
    tools, unless the model speaks next; the user's everywhere else. Providers want the user to
    begin, so the leading messages call for none."""
    stays = [step for step in view.must_stay() if first <= step <= last]
    before = _role(view, first - 1, -1)
    behind = _role(view, min(stays, default=last + 1), 0)
    # Between a user's message and an answer either repeats a role. Hermes merges it into the answer
    # there; here a message stays as it came.
    if before == Role.USER and behind != Role.ASSISTANT:
        return "assistant"
    return "assistant" if before == Role.TOOL and behind == Role.USER else "user"


def _role(view: View, step: int, which: int) -> int:
    """The role of a step's message; unspecified where there is none, or it is not in memory."""
    if not 0 <= step < view.steps or not view.holds(step):
        return Role.UNSPECIFIED
    entries = view.atom(step).entries
    return entries[which].traits.role if entries else Role.UNSPECIFIED
