"""The task list that Hermes writes down behind a compaction, as a message of a user's: anew each
time, from a store of its own, so it is nothing that was said. Hermes joins it with a user's words.
"""

from __future__ import annotations

import re

_ITEM = r"\n- \[[ >]\] (?s:.+?) \((?:pending|in_progress)\)(?=\n- \[|\n\n|\Z)"
_TASKS = re.compile(
    r"(?:\A|\n\n)\[Your active task list was preserved across context compression\]"
    rf"(?:{_ITEM})+(?:\n\n)?"
)


def without_tasks(text: str) -> str:
    """A text without the task list that stands before or behind it."""
    found = _TASKS.search(text)
    if found is None:
        return text
    before, behind = text[: found.start()], text[found.end() :]
    return text if before and behind else before + behind
