"""What comes back behind the summaries, as items: sections of files and what was read last, the
words to go on with, and what a subagent is to keep in sight
(docs/semantics.md#after-a-compaction).

After Comis's (packages/agent/src/context-engine/rehydration.ts and objective-reinforcement.ts).
What files, tools and hosts say is data: it is fenced, and cannot close its fence.
"""

from __future__ import annotations

import json
from itertools import groupby

import msgspec
from msgspec.structs import replace

from contextengine_server.context.message import Slot
from contextengine_server.context.summary_text import fenced, sealed
from contextengine_server.session.session import Session

from .reads import shown

MAX_CHARS = 50_000
"""Of sections and files together, as in Comis."""
MAX_OBJECTIVE = 4_000
"""Characters of an objective that are repeated."""
MAX_NAME = 128
"""Characters of a channel's or an agent's name that are repeated."""
SHARE = 0.25
"""What comes back may take this share of a budget's cell."""

REHYDRATED = "rehydrated after a compaction"
RESUME = "resume after a compaction"
OBJECTIVE = "objective reinforcement"
OBJECTIVE_MARKER = "[Objective Reinforcement]"
STRIP_FILES = "strip_files"
REMOVE_FIRST = "remove_position1"
REMOVE_ALL = "remove_rehydration"
"""What had no room, in the words of Comis."""

_GO_ON = (
    "[Resume]\nThe conversation was compacted here: a summary above stands for what is not shown."
    " Go on with the work where it stands; do not begin anew, do not recap, and do not ask again"
    " what was answered."
)
_FOCUS = "Stay with this objective: what does not serve it is not your task."


class BroughtBack(msgspec.Struct, frozen=True, eq=False):
    """What of it is shown in a budget."""

    behind: tuple[Slot, ...] = ()
    """Behind the last summary."""
    ending: Slot | None = None
    """Where the conversation stood when it was compacted:"""
    step: int = -1
    """before this step."""
    tokens: int = 0
    """Those of its items."""
    reserve: int = 0
    """The tokens that are kept free for it."""
    sections: int = 0
    files: int = 0
    stripped: str = ""
    """What had no room; empty: all has."""
    wanted: int = 0
    """The tokens of all of it."""
    limit: int = 0
    """How many it may take."""

    def without_ending(self) -> BroughtBack:
        """The same where what the ending stands behind is not shown."""
        if self.ending is None:
            return self
        return replace(self, ending=None, tokens=self.tokens - self.ending.tokens)

    @property
    def gone(self) -> BroughtBack:
        """The same where nothing of it has room after all."""
        if self is NOTHING or self.stripped == REMOVE_ALL:
            return self
        return BroughtBack(stripped=REMOVE_ALL, wanted=self.wanted, limit=self.limit)

    @property
    def name(self) -> str:
        """Names it, for the epoch."""
        slots = [*self.behind, *([self.ending] if self.ending is not None else ())]
        return f"{self.step}:" + ",".join(slot.hash.hex()[:12] for slot in slots)


NOTHING = BroughtBack()


class Reminders(msgspec.Struct, frozen=True, eq=False):
    """All that there is to show."""

    objective: Slot | None = None
    resume: Slot | None = None
    step: int = -1
    whole: Slot | None = None
    """Sections and files."""
    sections_only: Slot | None = None
    sections: int = 0
    files: int = 0
    peak: int = 0
    """As much room is kept in any case, where there is so much."""

    def within(self, cell: int) -> BroughtBack:
        """What of it a budget of this cell has room for: the objective, and of the rest files go
        first, then sections, then the words to go on with."""
        limit, behind, kept = int(SHARE * cell), tuple[Slot, ...](), 0
        if self.objective is not None and self.objective.tokens <= limit:
            behind, kept = (self.objective,), self.objective.tokens
        limit -= kept
        rungs = [(self.whole, self.sections, self.files, "")]
        if self.files and self.sections_only is not None:
            rungs.append((self.sections_only, self.sections, 0, STRIP_FILES))
        if self.whole is not None:
            rungs.append((None, 0, 0, REMOVE_FIRST if self.sections else STRIP_FILES))
        ends = self.resume.tokens if self.resume is not None else 0
        wanted = ends + (self.whole.tokens if self.whole is not None else 0)
        reserve = kept + min(limit, max(self.peak, wanted))
        for slot, sections, files, stripped in rungs:
            cost = ends + (slot.tokens if slot is not None else 0)
            if cost <= limit:
                return BroughtBack(
                    behind=behind + ((slot,) if slot is not None else ()),
                    ending=self.resume,
                    step=self.step,
                    tokens=kept + cost,
                    reserve=reserve,
                    sections=sections,
                    files=files,
                    stripped=stripped,
                    wanted=wanted,
                    limit=limit,
                )
        return BroughtBack(
            behind, tokens=kept, reserve=reserve, stripped=REMOVE_ALL, wanted=wanted, limit=limit
        )


def reminders_of(session: Session, objective: str) -> Reminders:
    """All that there is to show in a session, which holds what was read. Made once for as long as
    nothing of it changes."""
    state = session.state
    key = state.rehydration, state.workspace, objective
    known = session.reminders
    if known is not None and known[0] == key:
        still: Reminders = known[1]
        return still
    decided = state.rehydration
    sections = state.workspace if decided.sections is None else decided.sections
    files = []
    for one in decided.reads:
        text = session.readings.get((one.sequence, one.part), "")
        if text:
            files.append(shown(one.path, text, one.sequence))
    ours = session.encoding.shaper.ours
    said = [
        _critical(path, "\n\n".join(text for _, text in of_one))
        for path, of_one in groupby(sections, key=_path)
    ]
    while files and len("\n\n".join([*said, *files])) > MAX_CHARS:
        files.pop()
    whole = only = resume = None
    if said or files:
        whole = ours(REHYDRATED, sealed("\n\n".join([*said, *files])))
    if said:
        only = ours(REHYDRATED, sealed("\n\n".join(said))) if files else whole
    if decided.step >= 0:
        resume = ours(RESUME, sealed(f"{_GO_ON}\n{_active(session)}"))
    made = Reminders(
        objective=ours(OBJECTIVE, sealed(_objective(objective))) if objective.strip() else None,
        resume=resume,
        step=decided.step,
        whole=whole,
        sections_only=only,
        sections=len(sections),
        files=len(files),
        peak=decided.peak,
    )
    session.reminders = key, made
    return made


def _path(section: tuple[str, str]) -> str:
    return section[0]


def _critical(path: str, text: str) -> str:
    name = _line(path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path)
    return f"[Critical instructions from {name}]\n{fenced(text)}\n[End critical instructions]"


def _active(session: Session) -> str:
    """What is known of where the session is held."""
    channel = session.state.rehydration.channel
    named = {"channel": channel, "agent": session.scope.agent}
    said = ", ".join(f"{key} {json.dumps(_line(text))}" for key, text in named.items() if text)
    return f"[Active state: {said}]"


def _objective(objective: str) -> str:
    text = objective.strip()
    if len(text) > MAX_OBJECTIVE:
        text = f"{text[:MAX_OBJECTIVE]}\n[{len(text) - MAX_OBJECTIVE} more characters]"
    return f"{OBJECTIVE_MARKER}\n{fenced(text)}\n{_FOCUS}"


def _line(text: str) -> str:
    return " ".join(text.split())[:MAX_NAME]
