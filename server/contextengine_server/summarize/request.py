"""What a summarizer is asked, what it answers, and what it is. Plain values that travel to worker
processes."""

from __future__ import annotations

import struct
from typing import Literal, Protocol

import msgspec

from contextengine_server.summarize.guards.breaker import BreakerLimits
from contextengine_server.summarize.guards.spend import SpendLimits

Cause = Literal["breaker_open", "spend_cap", "failed"]
"""Why a summarizer did not make a summary that it was there to make."""

Failure = Literal[
    "auth",
    "connection",
    "timeout",
    "busy",
    "overload",
    "malformed",
    "blank",
    "truncated",
    "other",
]
"""How a model failed: it wants other credentials or money; nobody was reached, or the answer broke
off; it said nothing in time; it has no time now (408, 429, 502, 504); it is overloaded (529); its
answer is no answer, is empty, was cut off at its length; or else."""

LENGTH = struct.Struct(">Q")
"""The length before each pickle between the server and its workers."""


MAX_FOCUS = 800
"""Code points of a focus that are used: as many as OpenClaw uses of the text of its command
/compact."""
KEPT_CHARS = 50_000
"""What a row keeps of the head of a memory's context, and of its tail: many times what is used."""


class SourceCall(msgspec.Struct, frozen=True):
    """A tool call of a message."""

    id: str
    """Its result names it. Real sessions use an id twice: a result answers the oldest open call."""
    name: str
    arguments: str
    """As the model wrote them: JSON, as a rule."""


class SourceResult(msgspec.Struct, frozen=True):
    """A tool's answer in a message."""

    id: str
    """The call's."""
    name: str
    """The tool's; may be empty, then the call has it."""
    text: str
    failed: bool = False
    """True where the harness says so. A command that exits with an error may not be marked."""


class SourceMessage(msgspec.Struct, frozen=True):
    """A message, or a summary, that is to be summarized, as text."""

    role: str
    """`user`, `assistant`, `tool`, `system`, `developer`, `custom`; or `summary` for a summary of
    lesser depth."""
    text: str
    """What it says besides its calls and results."""
    sequence: int
    """Its sequence; of a summary, the first that it covers."""
    name: str = ""
    """The speaker's name, the tool's of a result, that of a custom role; else empty."""
    time_ms: int | None = None
    """Milliseconds since 1970 UTC."""
    calls: tuple[SourceCall, ...] = ()
    results: tuple[SourceResult, ...] = ()
    last: int = 0
    """Of a summary, the last sequence that it covers; of a message 0."""

    @property
    def whole(self) -> str:
        """All of it as one text: what it says, its calls, its results."""
        called = (f"{call.name}\n{call.arguments}" for call in self.calls)
        answered = (result.text for result in self.results)
        return "\n".join(filter(None, (self.text, *called, *answered)))


class SummaryPolicy(msgspec.Struct, frozen=True):
    """What an operator chose for a session's summaries: which models, and how much of them."""

    model: str = ""
    """The model asked first, as `endpoint:model`, or the name of an endpoint for its own model;
    empty: the first endpoint."""
    fallbacks: tuple[str, ...] = ()
    """The models asked after it, in order, in the same form; empty: the other endpoints, in their
    order."""
    spend: SpendLimits = msgspec.field(default_factory=SpendLimits)
    breaker: BreakerLimits = msgspec.field(default_factory=BreakerLimits)


class Handoff(msgspec.Struct, frozen=True):
    """What a summary is written with that hands the work over in sections."""

    today: str = ""
    """The date as 2026-01-31; empty: it is not told."""
    asked: tuple[str, ...] = ()
    """What the user said last in the session, oldest first: what it dwells on without a focus."""
    task: str = ""
    """The newest message of the user's that it covers; empty: there is none. It stands in the
    summary in these words."""


class Steering(msgspec.Struct, frozen=True):
    """What the caller of a compaction says to whoever writes its summaries."""

    focus: str = ""
    """See `SummaryRequest`."""
    memory_context: str = ""
    """See `SummaryRequest`."""

    @property
    def key(self) -> str:
        """Names it, for law 12."""
        return "\0".join(filter(None, (self.focus, self.memory_context)))

    @property
    def kept(self) -> Steering:
        """The same for a row: nothing that would not be used, as far as that is large."""
        memory = self.memory_context
        if len(memory) > 2 * KEPT_CHARS:
            memory = memory[:KEPT_CHARS] + memory[-KEPT_CHARS:]
        return Steering(self.focus[:MAX_FOCUS], memory)


class SummaryRequest(msgspec.Struct, frozen=True):
    """One summary to be made."""

    messages: tuple[SourceMessage, ...]
    """What to summarize, in order of sequence."""
    source_tokens: int
    """What the messages cost in the view now. A summary that is not smaller is refused."""
    target_tokens: int
    """What the summary may cost."""
    focus: str = ""
    """What it should dwell on. Steers, and is never itself part of a summary."""
    memory_context: str = ""
    """What a memory of the host's holds of the messages. Data; models alone read it."""
    previous_summary: str = ""
    """The text of the summary before it, for continuity."""
    depth: int = 0
    """0: over messages; n + 1: over summaries of depth n."""
    language: str = ""
    """The session's language as a BCP 47 tag, where it is known. An extractive summary quotes, and
    so needs no hint."""
    aggressive: bool = False
    """Asks a model for the bare facts from a shortened source. An extractive summary is exact about
    its size without."""
    tenant: str = ""
    """Whose breaker and spend it counts for. Empty: that of all requests that name no tenant."""
    agent: str = ""
    """The agent whose session it is for. A harness may lend its model for one agent only."""
    session: str = ""
    """The session that it is for."""
    policy: SummaryPolicy | None = None
    """What was chosen for this session; None: what the summarizers were made with."""
    handoff: Handoff | None = None
    """Set where it is to hand the work over in sections; a model alone can do that. None: the form
    follows from the depth."""
    resting: bool = False
    """True while models are not asked, since one failed for this session a short while ago."""
    named: tuple[str, ...] = ()
    """The files that the user's newest message names, which need not be among `messages`."""
    quoted_tokens: int = 0
    """What the summary may cost besides for the text of files that users named. An extractive
    summary quotes them; a model's says what they hold."""
    passed_over: frozenset[int] = frozenset()
    """The sequences of messages, below summaries among `messages`, that the summary does not tell
    of."""
    better_than: str = ""
    """The name of who wrote the summary that this one is to take the place of: only those before
    it in the chain are asked. Empty: all, and the note that counts at the end."""


class SummaryResult(msgspec.Struct, frozen=True):
    """A summary."""

    text: str
    tokens: int
    summarizer: str
    """The name of the one that made it."""
    fallback: bool = False
    """True for the note that counts: every summarizer failed."""
    refused: tuple[tuple[str, str], ...] = ()
    """(summarizer, reason) of each that was tried before, in order. Reasons carry no text of
    messages."""
    spent: int = 0
    """Tokens that models were given and gave for it, failed tries included. 0 where no model was
    asked."""
    causes: tuple[Cause, ...] = ()
    """Why it is by a later one than the first, each cause once. Empty: it is by the first that was
    there."""
    failure: Failure | None = None
    """How the last of the links before it failed; None: none did."""

    @property
    def wanted(self) -> str:
        """Who was to write it where somebody later in the chain had to; else empty."""
        return self.refused[0][0] if self.refused and (self.causes or self.fallback) else ""


class Summarizer(Protocol):
    """Makes summaries. One that cannot raises; the chain goes on to the next."""

    name: str

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """The summary. Raises SummarizerFailed, or whatever went wrong."""


class SummarizerFailed(Exception):
    """A summarizer could not, and would not if it were asked again. The text says why, without text
    of messages."""

    def __init__(
        self,
        reason: str,
        *,
        asked: bool = True,
        spent: int = 0,
        refused: tuple[tuple[str, str], ...] = (),
        causes: tuple[Cause, ...] = ("failed",),
        kind: Failure = "other",
    ) -> None:
        super().__init__(reason)
        self.asked = asked
        """False where nobody was asked, so that the failure is nobody's: no key, no room, a cap, an
        open breaker."""
        self.spent = spent
        """As in SummaryResult."""
        self.refused = refused
        """As in SummaryResult, where several were tried."""
        self.causes = causes
        """As in SummaryResult."""
        self.kind: Failure = kind


class NobodyThere(SummarizerFailed):
    """There is nobody to ask: no model is configured, no harness lends one. Nothing failed, and the
    chain goes on."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, asked=False, causes=())


class Unacceptable(SummarizerFailed):
    """It answered, but no summary. Another answer may be one."""


class TooLong(SummarizerFailed):
    """What was asked, or what was answered, does not fit the model. A shorter form may."""
