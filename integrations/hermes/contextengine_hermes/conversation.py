"""A conversation of Hermes beside the session that keeps it.

Hermes has one list of messages without ids. What of it the session holds is remembered by what each
message says: as long as the list only grows, what is new is sent, else the whole list, which the
service aligns with what it has. A list that ends sooner was taken back. Nothing is written into
Hermes' messages: by their being equal it knows that a compaction changed nothing.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from grpc import StatusCode

from contextengine import Client, ContextEngineError, SessionRef, batches, fields
from contextengine.errors import Unavailable, is_borne
from contextengine.times import timed
from contextengine.types import (
    BootstrapRequest,
    Budget,
    CompactResponse,
    HostInfo,
    LiveCompaction,
    ShouldCompactResponse,
)

from .block import part
from .rows import (
    NOTE,
    Listed,
    Row,
    listed,
    messages_of,
    names_of,
    pieces_of,
    placed,
    steered,
    unjoined,
)

HOST = HostInfo(
    host_id="hermes",
    capabilities=["bootstrap", "after-turn", "compact"],
)
MOST_FOCUS = 800
"""Code points of a focus that the service takes."""
TELL_S = 2.0
"""Seconds that a turn waits for what is only told."""
COMPACT_S = 120.0
"""Seconds that Hermes waits for a compaction, as long as for a summarizer of its own."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction made."""

    rows: list[Row]
    """The list that Hermes is to go on with."""
    changed: bool
    """False: it is the list that was given."""


class Conversation:
    """One session of Hermes, under its own id."""

    def __init__(self, client: Client, agent: str, session_id: str, session_key: str = "") -> None:
        self._client = client
        self.ref = SessionRef(agent_id=agent, session_id=session_id, session_key=session_key)
        self._busy = threading.RLock()
        self._held: list[bytes] = []
        """The names of the pieces of Hermes' list that are stored, from the first. Empty: the whole
        list is sent."""
        self._listed: list[bytes] = []
        """Those of the list that was seen last."""
        self._proposal = ""
        self._proposed = ""
        """The block of the list that was proposed."""
        self._introduction: BootstrapRequest | None = BootstrapRequest(host=HOST)
        """What the service was not told yet."""
        self._before: Conversation | None = None
        """What goes on in this one, which the service was not told yet."""

    def begin(self, *, model: str, window: int, continues: Conversation | None = None) -> None:
        """Says which model is called, and which session goes on in this one. Where the service is
        away it is told later."""
        told = BootstrapRequest(host=HOST, model=model)
        if window > 0:
            told.window = window
        if continues is not None:
            self._before, self._listed = continues, continues._listed
        self._introduction = told
        try:
            with self._alone():
                self._introduce()
        except ContextEngineError as error:
            _log.warning("contextengine: the session is introduced later: %s", error)

    def record(self, rows: Sequence[Row], *, ended: bool = False) -> None:
        """Stores what of Hermes' list is not stored yet. ended: the turn is over, so that the
        service may compact. Raises ContextEngineError, FormatError."""
        found = unjoined(listed(rows), self._listed)
        with self._alone():
            self._settle(found)
            self._introduce()
            if self._grew(found):
                self._append(found, ended=ended)
            elif found:
                self._take(found)
                if ended:
                    self._client.after_turn(self.ref, [], timeout=TELL_S)

    def _take(self, found: Sequence[Listed]) -> None:
        """Stores what of a list is not stored yet, wherever it stands there."""
        self._reopen(found)
        if self._adrift(found):
            self._held = [NOTE.encode()]
            self._append(found, ended=False)
            return
        self._held = []
        self._client.should_compact(self.ref, live=_live(found), timeout=COMPACT_S)
        self._hold(found)

    def _adrift(self, found: Sequence[Listed]) -> bool:
        """Whether a list says nothing that is stored, behind a block that shows no item: all else
        that it showed was undone. The service would take it for another conversation, in place of
        what the block says is left out."""
        names = names_of(pieces_of(found))
        return (
            len(self._listed) > 1
            and names[:1] == self._listed[:1] == [NOTE.encode()]
            and not set(names[1:]).intersection(self._listed)
        )

    def _reopen(self, found: Sequence[Listed]) -> None:
        """Takes back a result, and what follows it, where a user's words have come to stand behind
        it that are not known to be stored: a result is known by its call, whatever it says. What
        stands before an item of the service stays, which would be taken back with it."""
        pieces = pieces_of(found)
        known = set(self._listed)
        begin = max((at for at, one in enumerate(pieces, 1) if isinstance(one, str)), default=0)
        for at, name in enumerate(names_of(pieces[begin:]), begin):
            if name not in known and steered(pieces[at]):
                live = LiveCompaction(
                    messages=messages_of(pieces[:at]), store_new=True, takes_back=True
                )
                self._held = []
                self._client.should_compact(self.ref, live=live, timeout=COMPACT_S)
                return

    def due(self, prompt_tokens: int | None, *, preflight: bool = False) -> ShouldCompactResponse:
        """Whether a compaction is due, by the prompt's tokens as Hermes knows them. Raises
        ContextEngineError."""
        with self._alone():
            self._introduce()
        asked: fields.ShouldCompact = {"preflight": preflight, "timeout": TELL_S}
        if prompt_tokens is not None:
            asked["prompt_tokens"] = prompt_tokens
        return self._client.should_compact(self.ref, **asked)

    def judge(self, rows: Sequence[Row]) -> ShouldCompactResponse:
        """Whether there is anything to compact in a list, which is not stored. Raises
        ContextEngineError, FormatError."""
        found = unjoined(listed(rows), self._listed)
        live = LiveCompaction(messages=messages_of(pieces_of(found)))
        return self._client.should_compact(self.ref, live=live, preflight=True, timeout=TELL_S)

    def compact(
        self,
        rows: Sequence[Row],
        *,
        tokens: int | None,
        room: int,
        focus: str,
        force: bool,
        memory_context: str = "",
    ) -> Compacted:
        """The list after a compaction, which is kept once Hermes goes on with it. Stores what is
        not stored yet. room: tokens that the list may have; 0: what the window leaves. Raises
        ContextEngineError, FormatError."""
        found = unjoined(listed(rows), self._listed)
        asked: fields.Compact = {
            "live": _live(found),
            "propose_only": True,
            "return_list": True,
            "focus": focus[:MOST_FOCUS],
            "memory_context": memory_context,
            "force": force,
            "timeout": COMPACT_S,
        }
        if tokens and tokens > 0:
            asked["current_token_count"] = tokens
        if room > 0:
            asked["budget"] = Budget(message_tokens=room)
        with self._alone():
            return self._compacted(rows, found, asked)

    def _compacted(
        self, rows: Sequence[Row], found: Sequence[Listed], asked: fields.Compact
    ) -> Compacted:
        self._settle(found)
        self._introduce()
        self._reopen(found)
        behind, self._held = self._behind(found), []
        reply: CompactResponse = self._client.compact(self.ref, **asked)
        self._proposal, self._proposed = reply.proposal_id, ""
        made = placed(reply.items, found, reply.system_prompt_addition) if reply.changed else []
        held = listed(made) if made else found
        if made and _twice(names_of(pieces_of(held)), names_of(pieces_of(found)), behind):
            # What could not be taken back is shown all the same: Hermes would have it twice.
            made, held = [], found
        if not made:
            self._settle([])
        self._hold(held, sent=not behind)
        self._proposed = next((one for one in _blocks(made) if one not in _blocks(rows)), "")
        return Compacted(made or list(rows), changed=bool(made))

    @property
    def proposing(self) -> bool:
        """True from a compaction until it is known whether Hermes goes on with its list."""
        return bool(self._proposal or self._proposed)

    def taken(self) -> None:
        """Hermes goes on with the list of the last compaction. Raises ContextEngineError."""
        with self._alone():
            self._answer(accept=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time: Hermes ends a session beside the turn that runs in it. What would
        wait for a compaction is done later."""
        if not self._busy.acquire(timeout=TELL_S):
            raise Unavailable("another thread compacts", code=StatusCode.UNAVAILABLE)
        try:
            yield
        finally:
            self._busy.release()

    def _settle(self, found: Sequence[Listed]) -> None:
        """Keeps what was proposed where the list shows it, and gives it up where it does not."""
        if self._proposal:
            shown = self._proposed and any(
                self._proposed in str(one.row.get("content")) for one in found
            )
            self._answer(accept=bool(shown))
        self._proposed = ""

    def _answer(self, *, accept: bool) -> None:
        if self._proposal:
            proposal, why = self._proposal, "" if accept else "the host went on without it"
            self._tell(
                lambda: self._client.commit_compaction(
                    self.ref, proposal, accept, refuse_reason=why, timeout=TELL_S
                )
            )
            self._proposal = ""
        self._proposed = ""

    def _introduce(self) -> None:
        told, before = self._introduction, self._before
        if told is None:
            return
        if before is not None:
            before.taken()
            told.continues.CopyFrom(before.ref)
        named = {field.name: value for field, value in told.ListFields()}
        self._tell(lambda: self._client.bootstrap(self.ref, timeout=TELL_S, **named))
        self._introduction = self._before = None

    def _tell(self, call: Callable[[], object]) -> None:
        """What the service refuses for what it is would be refused each time, and keep all that
        follows from being stored: it is told once. Raises ContextEngineError where the service is
        away."""
        try:
            call()
        except ContextEngineError as error:
            if is_borne(error):
                raise
            _log.warning("contextengine: refused: %s", error)

    def _grew(self, found: Sequence[Listed]) -> bool:
        """Whether the list is what is stored and more behind it, which others said."""
        pieces, known = pieces_of(found), len(self._held)
        new = pieces[known:]
        return (
            0 < known <= len(pieces)
            and not any(isinstance(piece, str) for piece in new)
            and self._held == names_of(pieces[:known])
        )

    def _behind(self, found: Sequence[Listed]) -> list[bytes]:
        """The names of what is stored behind a list, which Hermes took back, or keeps beside it
        where only the beginning is compacted (`/compress here`)."""
        names = names_of(pieces_of(found))
        same = names == self._listed[: len(names)]
        return self._listed[len(names) :] if same else []

    def _append(self, found: Sequence[Listed], *, ended: bool) -> None:
        known, self._held = len(self._held), []
        for some in batches(timed(messages_of(pieces_of(found)[known:]), known)):
            self._client.ingest_batch(self.ref, some, timeout=TELL_S)
        if ended:
            self._client.after_turn(self.ref, [], timeout=TELL_S)
        self._hold(found)

    def _hold(self, found: Sequence[Listed], *, sent: bool = True) -> None:
        self._listed = names_of(pieces_of(found))
        self._held = self._listed if sent else []


def _twice(made: Sequence[bytes], found: Sequence[bytes], behind: Sequence[bytes]) -> bool:
    """Whether a list shows what stands behind the one that it was made of. A user may say the same
    here and there: there is more of it than was given, or it is by its place in the list."""
    if not (Counter(made) - Counter(found)).keys().isdisjoint(behind):
        return True
    alike = [_alike(made, [*found, *behind[:more]]) for more in range(len(behind) + 1)]
    return alike.index(max(alike)) > 0


def _alike(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """How many names two lists have in common at their ends."""
    both = enumerate(zip(reversed(one), reversed(other), strict=False))
    return next((at for at, (name, same) in both if name != same), min(len(one), len(other)))


def _blocks(rows: Sequence[Row]) -> list[str]:
    """The blocks of a list that show items of the service."""
    texts = [str(row.get("content")) for row in rows if row.get("role") == "user"]
    return [text for text in texts if part(text).items]


def _live(found: Sequence[Listed]) -> LiveCompaction:
    return LiveCompaction(messages=messages_of(pieces_of(found)), store_new=True, takes_back=True)
