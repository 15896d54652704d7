"""How many characters a context for Codex may have, and what to say where the least of it has
more."""

from __future__ import annotations

import msgspec

from ..model import ProjectionImpossible
from ..task import Task
from ..thread import ThreadEvent
from . import jsonl
from .decision import OVERFLOW_SHARE
from .limits import CHARS_PER_TOKEN, COMPACTION_SHARE, DEVELOPER_CHARS, context_chars


def total_chars(task: Task) -> int:
    """The context's characters; less after an overflow, and never so many that Codex would compact
    before the first turn."""
    budget = task.budget
    if budget and ThreadEvent.OVERFLOW in task.happened and task.renderer == "jsonl":
        budget = max(1, budget // OVERFLOW_SHARE)
    chars = context_chars(budget, task.reserve)
    if (
        budget and task.reserve != 0 and task.renderer == "jsonl"
    ):  # a budget without a reserve is no window
        chars = min(chars, int(budget * COMPACTION_SHARE) * CHARS_PER_TOKEN)
    return (
        chars
        if task.max_chars is None
        else min(chars if task.budget else task.max_chars, task.max_chars)
    )


class RecordRoom(msgspec.Struct, frozen=True):
    """The characters that are left for records: of the budget, and of a turn's text."""

    budget: int
    turn: int

    @property
    def least(self) -> int:
        """What binds."""
        return min(self.budget, self.turn)


def record_room(task: Task, total: int, instructions: int, prompt: int, framed: int) -> RecordRoom:
    """What is left for records. Instructions and prompt are never cut. `framed` is what a turn's
    texts have without records: prompt, frame, and what stands for attachments."""
    wrapper = jsonl.WRAPPER_CHARS + len(task.preamble)
    budget = total - instructions - prompt - wrapper
    return RecordRoom(budget, budget if task.inject else task.turn_chars - framed)


def turn_fits(task: Task, taken: int) -> None:
    """Raises ProjectionImpossible where a turn's texts have more than Codex takes, which counts
    code points over all of them."""
    if taken > task.turn_chars:
        raise ProjectionImpossible(
            "prompt",
            f"the turn's texts have {taken} characters; a turn takes {task.turn_chars}: shorten"
            " the prompt",
            limit=True,
        )


def too_large(task: Task, total: int, room: RecordRoom, chars: int) -> ProjectionImpossible:
    """What to say where what may not be cut of the context takes `chars` characters, and less is
    left of `total` or of a turn."""
    said = f"what may not be cut of the context takes {chars} characters and"
    if room.turn < 0 and not task.inject:
        return ProjectionImpossible(
            "prompt",
            f"{said} the prompt leaves none of a turn's {task.turn_chars}: shorten it, or ask for"
            " inject_items",
            limit=True,
        )
    said = f"{said} {max(0, room.least)} are left"
    if not task.inject and chars <= room.budget:
        return ProjectionImpossible(
            "messages",
            f"{said} of a turn's {task.turn_chars}: ask for inject_items, or unpin messages",
            limit=True,
        )
    least = max(
        total - room.budget + chars, CHARS_PER_TOKEN * len(joined(task.base, task.addition))
    )
    if total == task.max_chars:
        return ProjectionImpossible(
            "max_chars", f"{said} of {total}: give at least {least}, or unpin messages", limit=True
        )
    return ProjectionImpossible(
        "budget",
        f"{said} of {total}: give a budget for {least} characters, or unpin messages",
        limit=True,
    )


def developer_fits(task: Task, total: int) -> None:
    """The harness's own instructions and the engine's are never cut."""
    taken = len(joined(task.base, task.addition))
    limit = min(DEVELOPER_CHARS, max(1, total // CHARS_PER_TOKEN))
    if taken <= limit:
        return
    if taken <= DEVELOPER_CHARS and total == task.max_chars:
        raise ProjectionImpossible(
            "max_chars",
            f"the developer instructions take {taken} characters, a quarter of {total} may: give at"
            f" least {taken * CHARS_PER_TOKEN}",
            limit=True,
        )
    if not task.base.strip():
        raise ProjectionImpossible(
            "budget",
            f"the words that the engine adds take {taken} characters, of {total} at most {limit}"
            f" may: give a budget for {taken * CHARS_PER_TOKEN} characters",
            limit=True,
        )
    raise ProjectionImpossible(
        "options.base_instructions",
        f"the developer instructions take {taken} characters, of {total} at most {limit} may:"
        " shorten them or give a larger budget",
        limit=True,
    )


def joined(*sections: str) -> str:
    """Sections apart by a blank line; those that are blank are left out, since Codex would send
    them as they are."""
    return "\n\n".join(section.strip() for section in sections if section.strip())
