"""A summary that hands the work over, in sections, as the compressor wants it: what a model is told
of it, and what is done to its answer (docs/compressor.md#summaries).

The sections are those of Hermes's later template. It took out every section that reads like a list
of what is to be done, since models went and did it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from contextengine_server.summarize.redaction import redact
from contextengine_server.summarize.request import Handoff, SummaryRequest

TASK = "Historical Task Snapshot"
"""The section with what the user had asked for; its text is ours and not the model's."""

SECTIONS: tuple[tuple[str, str], ...] = (
    (
        TASK,
        "the newest thing that the user asked for, in the user's words; whether it was withdrawn",
    ),
    ("Goal", "what all of it is for"),
    (
        "Constraints & Preferences",
        "limits, style, what must not be done; orders of safety exactly",
    ),
    ("Completed Actions", "numbered: what was done to what, its outcome, the tool"),
    ("Active State", "directory, branch, changed files, tests, running processes, environment"),
    ("Blocked", "errors that stand, with their exact text"),
    ("Key Decisions", "each with its reason"),
    ("Errors & Fixes", "the error's text and what mended it; the user's corrections quoted"),
    ("Resolved Questions", "each with its answer"),
    ("Relevant Files", "path and a note"),
    ("Critical Context", "values, settings and data that will be needed exactly; no secrets"),
)

NOBODY_ASKED = "None: nobody asked for anything here."
"""The snapshot of a stretch without a user: a model would make one up."""

TASK_CHARS = 1_400
"""The longest snapshot of a task, as in Hermes's compressor."""
FOCUS_TURNS, FOCUS_CHARS, FOCUS_TURN_CHARS = 3, 700, 260
"""The automatic focus: from so many of the user's newest messages, so long at most, so much of
each; as in Hermes's compressor."""

_SECTION = re.compile(rf"(?ms)^##+[ \t]*{TASK}[ \t]*$.*?(?=^##|\Z)")


def task_of(request: SummaryRequest, handoff: Handoff) -> str:
    """What the system's part says of a handoff."""
    updates = any(message.role == "summary" for message in request.messages)
    headings = "\n".join(f"## {name}: {intent}" for name, intent in SECTIONS)
    parts = [
        (
            "This time it is a handoff to an agent that takes the work over. It is for reference:"
            " write what was, never as something to be done, and no list of next steps. Write"
            " these sections under these headings, in this order; leave out one that has nothing to"
            f" say:\n{headings}"
        )
    ]
    if updates:
        parts.append(
            "The data begins with the handoff so far (role summary); what follows is new. Bring it"
            " up to date: keep what still holds, go on with the numbers, move what is done by now,"
            " renew the state, drop what was replaced."
        )
    if handoff.today:
        parts.append(
            f"Today is {handoff.today}. Tell what is done as past, with its date where the data has"
            " it."
        )
    if not updates and not any(message.role == "user" for message in request.messages):
        parts.append(
            f"No user speaks in the data: make none up. The first section is: {NOBODY_ASKED}"
        )
    if request.focus:
        parts.append(
            "Give what belongs to the focus below in full, up to two thirds of the length, and the"
            " rest in brief."
        )
    return "\n\n".join(parts)


def automatic_focus(asked: Sequence[str]) -> str:
    """What a handoff dwells on where nobody says: what the user said last."""
    said = [" ".join(text.split())[:FOCUS_TURN_CHARS] for text in asked]
    return "\n".join(filter(None, said[-FOCUS_TURNS:]))[-FOCUS_CHARS:]


def finished(text: str, handoff: Handoff, target: int) -> str:
    """A model's handoff as it is stored: without secrets, and with the newest message of the user's
    that it covers in its first section, whatever the model wrote there. `target`: the tokens of the
    whole."""
    text = redact(text)
    if not handoff.task:
        return text
    # A quarter of the target, at four characters a token.
    most = min(TASK_CHARS, target)
    task = " ".join(redact(handoff.task[: 4 * TASK_CHARS]).split())
    said = task if len(task) <= most else f"{task[: max(0, most - 1)]}…"
    section = f"## {TASK}\n{said}\n\n"
    if _SECTION.search(text):
        return _SECTION.sub(lambda _: section, text, count=1).strip()
    return f"{section}{text}".strip()
