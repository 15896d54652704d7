"""What an engine is: pure decisions over a view. It stores nothing, sends nothing and remembers
nothing.

An engine answers a plan; the laws check it; the session does the rest. Third parties implement
`Engine` and register it under the entry-point group `contextengine.engines`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Annotated, Literal, Protocol, cast

import msgspec
from pydantic import BaseModel

from contextengine_server.context.budget import ReferenceTokens, cell
from contextengine_server.context.message import Entry, Role
from contextengine_server.context.plan import Declared, Plan
from contextengine_server.context.view import Summary, View


class Said(msgspec.Struct, frozen=True):
    """A message as an engine that looks at words reads it: without private reasoning."""

    role: str
    """`user`, `assistant`, `tool`, `system`, `developer` or `custom`."""
    text: str = ""
    """What it says besides its calls and results."""
    calls: int = 0
    """How many tools it calls."""
    results: int = 0
    """How many results it brings."""
    silent: int = 0
    """How many of them say nothing and are no errors."""
    other: bool = False
    """It holds something that is no text: a picture, a file."""
    said_on: date | None = None
    """The day on which it was said; None: it is not known."""


_ROLES: dict[int, str] = {
    Role.USER: "user",
    Role.ASSISTANT: "assistant",
    Role.TOOL: "tool",
    Role.SYSTEM: "system",
    Role.DEVELOPER: "developer",
}


def unread(entry: Entry) -> Said:
    """A message of which no words are known."""
    traits = entry.traits
    parts = traits.part_count - len(traits.calls) - len(traits.results)
    return Said(
        _ROLES.get(traits.role, "custom"),
        calls=len(traits.calls),
        results=len(traits.results),
        silent=len(traits.silent),
        other=parts > 0,
    )


class CompactionGoal(msgspec.Struct, frozen=True):
    """What a compaction is asked for. Tokens in the reference encoding."""

    available: int
    """What the budget leaves for items."""
    force: bool = False
    """Compact below the threshold as well."""
    measured: int | None = None
    """The view's tokens as the harness would measure them, without what stands outside the
    messages. None: they are as we count them."""
    floor: int = 0
    """What the smallest possible summary costs: nothing smaller is worth compacting."""
    capacity: int | None = None
    """The most tokens of messages that a summary can be made of at once; None: any number."""
    reached: bool = False
    """What was asked for is reached: only what keeps the view in shape is left to do, such as
    folding summaries into a deeper one."""
    said: Callable[[Entry], Said] = unread
    """Reads a message's words."""

    @property
    def room(self) -> ReferenceTokens:
        """The budget's cell: never more than a plan has to work with, which is all that is
        available, and steady where a budget changes a little."""
        return cell(self.available)


TellingRole = Literal["user", "assistant"]
"""In whose role a summary is told."""


class CompactionStep(msgspec.Struct, frozen=True):
    """One summary to be made: the steps it will cover and what it may cost."""

    first: int
    last: int
    target_tokens: int
    replaces: tuple[str, ...] = ()
    """Top-level summaries that it stands in for from then on: its children."""
    previous: str = ""
    """The text of the summary before it, for continuity."""
    origin: str = "engine"
    depth: Annotated[int, msgspec.Meta(ge=0)] = 0
    """0: over the messages of its steps; n + 1: over the texts of its children, the deepest of
    which has depth n."""
    update: bool = False
    """At depth 0: it is written from the summaries that it replaces and the messages that none of
    them covers, and brings these summaries up to date. False: from all its messages."""
    role: TellingRole = "user"
    """In whose role it is told, for good: it is part of how a list begins."""
    text: str = ""
    """The summary itself, where the engine wrote it; empty: the summarizers do."""
    rewrites: bool = False
    """True: what may be taken at most. What becomes of it the engine says of a list of messages
    (`engines.rewrite`), outside every lock."""
    quoted_tokens: int = 0
    """What it may cost besides for the text of files that users named (`SummaryRequest`)."""

    @property
    def most_tokens(self) -> int:
        """What it may cost at most."""
        return self.target_tokens + self.quoted_tokens


class NothingToDo(msgspec.Struct, frozen=True):
    """Why there is no compaction, in the words that hosts know as benign."""

    reason: str


Facts = Callable[[View, ReferenceTokens], dict[str, object]]
"""What an engine says of itself besides, as a JSON object, for a view and what its budget leaves
for items."""


def facts_of(engine: Engine) -> Facts | None:
    """What answers that; None: the engine says nothing more. Engines need no such method."""
    return cast("Facts | None", getattr(engine, "facts", None))


ToolName = Literal["ctx_search", "ctx_inspect", "ctx_expand", "session_search"]
"""The tools of recall that there are."""
SESSION_SEARCH: ToolName = "session_search"
"""The one that both finds and reads what is not shown."""


class Tools(msgspec.Struct, frozen=True):
    """What an engine offers to the model."""

    names: tuple[ToolName, ...] = ()
    """Tools of recall, by name."""
    page_tokens: Annotated[int, msgspec.Meta(gt=0)] | None = None
    """The most tokens of one page that is brought back, where a request does not say; None: the
    server's default."""


def event_name(engine_id: str, what: str) -> str:
    """The name of an event of an engine: `compacted`, `degraded` or `expanded`."""
    return f"context:{engine_id}_{what}"


class Engine(Protocol):
    """Pure decisions over a view. All tokens are in the reference encoding."""

    id: str
    name: str
    version: str
    owns_compaction: bool
    threshold: float
    """The utilization at which it wants to compact by itself; 0: never."""
    declared: Declared
    defers: bool
    """True where compaction after a turn runs in the background."""
    notices: bool
    """True where ingesting means something to it; legacy's own ingest is a no-op."""
    chunk: int | None
    """How many tokens of the oldest uncovered history a compaction may take at a time; None: it
    needs the whole view."""
    summary_tokens: int
    """The size that its summaries aim at: a model that writes one needs this much room for its
    answer."""
    tools: Tools
    fingerprint: str
    """Names its options, for the epoch."""

    @property
    def options(self) -> BaseModel:
        """The options it was made with."""

    def reach(self, cell: ReferenceTokens) -> int | None:
        """How many uncovered tokens before the newest message a plan may need; None: all."""

    def addition(self, summaries: Sequence[Summary]) -> str:
        """What it adds to the system prompt where these summaries are shown; constant within an
        epoch. Never longer for fewer of them: room is kept for what is said of all the view's
        summaries. That something is neither shown nor summarized is said beside it, for every
        engine, with the tool of `tools` that finds it."""

    def plan(self, view: View, budget: ReferenceTokens, reserved: int = 0) -> Plan:
        """What to show within `budget` tokens, of which `reserved` (this turn's prompt, and what is
        said of what is left out) are not for items. Forms and the like should follow the budget's
        cell (`context.budget.cell`), which is steady when a budget changes a little."""

    def saved(self, view: View, available: ReferenceTokens) -> Mapping[int, int]:
        """The tokens that other forms of messages than the ones they came in save of a view at a
        budget, by step, as far as the window holds it; those that its plans show."""

    def due(self, view: View, available: ReferenceTokens, measured: ReferenceTokens | None) -> bool:
        """True where a compaction should be queued."""

    def limit(self, view: View, available: ReferenceTokens) -> int:
        """How many tokens of messages make a compaction due, or would if it owned compaction."""

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        """The next summary to make. The view holds the oldest uncovered history, `chunk` tokens of
        it or all."""

    async def dispose(self) -> None:
        """Releases what it holds. Called once, when the server drains or reloads."""
