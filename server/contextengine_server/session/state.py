"""A session's own facts, kept as JSON in its head: what the view cannot be rebuilt from rows of the
window alone, and what the host, the provider and the operator said."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import asdict, replace

from contextengine_server.context.carried import FoldState
from contextengine_server.context.view import View
from contextengine_server.errors import CorruptRow
from contextengine_server.store.charges import Charge
from contextengine_server.summarize.guards.attempts import Attempts
from contextengine_server.tokens import Bill
from contextengine_server.usage.retention import CacheHistory

FLUSH = "memory"
"""The debt of ranges that the agent's memory is to have."""

ALL_OF_IT = b'{"imported":true}'
"""The payload of that debt where memory lacks all of the session (it was imported, or its key goes
on with another), which is not noted in it."""

MAX_REFUSED = 16
"""Inputs of compactions that are remembered as not worth another try."""


class ViewFacts(FoldState, frozen=True):
    """What a window needs to know of the history before it: what the fold carries, and where the
    atoms stand that every assembly needs."""

    steps: int = 0
    first_sequence: int = 0
    """The first live message's sequence; 0: none."""
    leading_last: int = 0
    """The last sequence of the leading messages; 0: none."""
    user_first: int = 0
    """The first sequence of the atom that holds the newest user message; 0: none."""
    rewind_mark: int = 0
    reset_mark: int = 0
    reopened: int = 0
    """The newest revision that changed facts of older rows (a late result, a rewind, a reset); 0:
    none."""
    last_id: str = ""
    """The host id of the newest message that has one; empty: none has, as far as is known."""


class ModelFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The model that the session runs on, and what its provider taught. Windows are in the model's
    tokens."""

    window: int = 0
    """0: unknown."""
    max_output: int = 0
    """0: unknown."""
    factor: float = 1.0
    """In force: the model's tokens per token of the reference encoding."""
    learned: float = 1.0
    """What reported usage taught; a compaction's commit or UpdateModel brings it into force."""
    first_bill: Bill | None = None
    """The first bill with what stands outside the messages now."""
    newest_bill: Bill | None = None
    served_window: int = 0
    """The smallest limit that the provider was seen to enforce; 0: none seen."""

    def taught(self) -> ModelFacts:
        """With what usage taught in force."""
        return replace(self, factor=self.learned)


class Spending(msgspec.Struct, frozen=True, omit_defaults=True):
    """What some calls took and cost."""

    calls: int = 0
    unpriced: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_micro_usd: int = 0
    saved_micro_usd: int = 0

    def plus(self, charge: Charge, most: int) -> Spending:
        """With another call; no sum is more than `most`."""
        return Spending(
            min(self.calls + 1, most),
            min(self.unpriced + charge.unpriced, most),
            min(self.input_tokens + charge.input_tokens, most),
            min(self.output_tokens + charge.output_tokens, most),
            min(self.cache_read_tokens + charge.cache_read_tokens, most),
            min(self.cache_write_tokens + charge.cache_write_tokens, most),
            min(self.cost_micro_usd + charge.cost_micro_usd, most),
            max(-most, min(self.saved_micro_usd + charge.saved_micro_usd, most)),
        )


class UsageFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was billed. Sums over all reports, and the last report."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_micro_usd: int = 0
    reports: int = 0
    last_prompt: int = 0
    last_completion: int = 0
    last_total: int = 0
    priced_micro_usd: int = 0
    """What it cost: as the reports say, else by the catalogue of rates."""
    saved_micro_usd: int = 0
    """What the prompt cache saved; negative where it cost more."""
    unpriced: int = 0
    """Reports of which nobody knew the cost."""
    turn: int = 0
    """The first sequence of the atom with the newest user message at the last report,"""
    turn_tokens: int = 0
    """and all tokens that were billed since it came."""
    execution: Spending = Spending()
    """What the calls since then cost."""
    channels: dict[str, Spending] = {}
    """What all calls cost, by the kind of channel that the session was held on."""
    length_stop: bool = False
    """True where the last report was of an answer that stopped for length."""
    compactions: int = 0
    """How many compactions there had been at the last report."""
    escalated: int = -1
    """The turn that had its longer answer, named as `turn` names one; -1: none had."""


Sections = tuple[tuple[str, str], ...]
"""Sections of files: (path of the file, text), those of one file together."""


class Reading(msgspec.Struct, frozen=True):
    """The newest result of reading a file that a summary covers."""

    path: str
    target: str
    """Names the file, as `context.message.ReadKey` does, in hexadecimal digits."""
    sequence: int
    part: int
    tokens: int
    """What showing it again costs, about."""


class Rehydration(msgspec.Struct, frozen=True, omit_defaults=True):
    """What comes back behind the summaries, as the newest compaction's commit decided it."""

    step: int = -1
    """The first step that had not begun, or was not over; -1: no commit decided anything."""
    sections: Sections | None = None
    """Those that held then, where the host gave others since; None: those of the state."""
    reads: tuple[Reading, ...] = ()
    """The newest first."""
    channel: str = ""
    peak: int = 0
    """The most tokens that any commit decided: as much room is kept from then on, since what was
    evicted for it must not come back."""

    def left(self, last_sequence: int, steps: int) -> Rehydration:
        """What is left of it where nothing behind this message is covered, and the view has so many
        steps."""
        reads = tuple(one for one in self.reads if one.sequence <= last_sequence)
        return replace(self, reads=reads, step=min(self.step, steps))


class StoredCheckpoint(msgspec.Struct, frozen=True):
    """What is known of a view just before a message that begins an atom. A rewind goes back to the
    newest one before what is kept, so that it reads no more than that and what it takes back."""

    sequence: int
    """That message's."""
    total: int
    """The running token sum before it."""
    count: int
    """How many messages of the view stand before it."""
    facts: msgspec.Raw
    """The `ViewFacts` there, which every commit writes and only a rewind reads."""


class SessionState(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything of a session's head that only the session's own rooms read."""

    encoding: str = "o200k_base"
    """What its messages are counted in, for good."""
    view: ViewFacts = ViewFacts()
    model: ModelFacts = ModelFacts()
    usage: UsageFacts = UsageFacts()
    host: str = ""
    """The host as it introduced itself: an encoded HostInfo, as hexadecimal digits."""
    capabilities: tuple[str, ...] = ()
    compactions: int = 0
    held: bool = False
    """True after an undo: compaction waits until one is forced."""
    undo_mark: int = 0
    """The revision of the newest undo; 0: none."""
    undone: tuple[tuple[int, int, int, int], ...] = ()
    """Summaries that were taken back after a late result had come for what they cover,
    as in View.stretches: that result stays the note that it was stored as."""
    refused: tuple[str, ...] = ()
    """Inputs of compactions that would not have shrunk the view (law 12), newest last."""
    native_compactions: int = 0
    detached: int = 0
    """The revision of the first reset: from it on nothing is inherited from the session that this
    one continues; 0: none."""
    cache: CacheHistory = CacheHistory()
    discovered: tuple[str, ...] = ()
    """Names of deferred tools that the model found, the first one first."""
    found_in: dict[str, int] = {}
    """In which turn of the session each of them was found, where that is known."""
    depth: int = 0
    """How deep the session is below one that nobody spawned; 0: it is no child."""
    flushed: tuple[tuple[int, int], ...] = ()
    """Ranges of sequences whose facts the agent's memory was given, in order."""
    unflushed: tuple[tuple[int, int], ...] = ()
    """Those that it could not take before they were summarized."""
    owed: tuple[tuple[int, int, int], ...] = ()
    """(first, last, revision): those that it is to have because the session ended or was emptied
    with this revision."""
    remembered_ms: int = 0
    """Memory is shown in the addition to the system prompt as it was at this moment; 0: as it was
    when the session was made."""
    channel: str = ""
    """The kind of channel that the session is held on, as the host last said; empty: unknown."""
    workspace: Sections = ()
    """Sections of the workspace's files, as the host last gave them."""
    rehydration: Rehydration = Rehydration()
    attempts: Attempts = Attempts()
    """How its compactions went lately, under an engine that goes by that."""
    checkpoints: tuple[StoredCheckpoint, ...] = ()
    """From where on the view can be folded again, the oldest first."""

    def encode(self) -> bytes:
        """As JSON."""
        return encode_state(self)

    @classmethod
    def decode(cls, data: bytes) -> SessionState:
        """From JSON; fields that are not there take their defaults, those that are unknown are left
        alone. Raises CorruptRow."""
        try:
            return _DECODER.decode(data) if data else cls()
        except msgspec.MsgspecError as error:
            raise CorruptRow(
                f"the state of a session cannot be read ({error}): restore the database from a"
                " backup"
            ) from error

    def given(self, workspace: Sections) -> SessionState:
        """With other sections of the workspace's files. What came back behind a summary stays what
        it was until the next compaction."""
        decided = self.rehydration
        if decided.step >= 0 and decided.sections is None and self.workspace:
            decided = replace(decided, sections=self.workspace)
        return replace(self, workspace=workspace, rehydration=decided)

    def told(self, first: int, last: int) -> SessionState:
        """With a range that memory was given, which may be a part of what it missed."""
        missed = _without(self.unflushed, (first, last))
        return replace(self, unflushed=missed, flushed=_with(self.flushed, (first, last)))

    def lacking(self, first: int, last: int) -> Sequence[tuple[int, int]]:
        """What memory was not given of a range, and is not owed."""
        known: Sequence[tuple[int, int]] = self.flushed
        for span in (*self.unflushed, *(owed[:2] for owed in self.owed)):
            known = _with(known, span)
        found = []
        for begins, ends in known:
            if first < begins <= last:
                found.append((first, begins - 1))
            first = max(first, ends + 1)
        return [*found, (first, last)] if first <= last else found

    def refusing(self, key: str) -> SessionState:
        """With an input that is not to be tried again."""
        kept = (*(known for known in self.refused if known != key), key)[-MAX_REFUSED:]
        return replace(self, refused=kept)


def _with(ranges: Sequence[tuple[int, int]], new: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Ranges in order, those that touch as one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted((*ranges, new)):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)


def _without(
    ranges: Sequence[tuple[int, int]], gone: tuple[int, int]
) -> tuple[tuple[int, int], ...]:
    """What is left of ranges."""
    first, last = gone
    return tuple(
        (begins, ends)
        for one in ranges
        for begins, ends in ((one[0], min(one[1], first - 1)), (max(one[0], last + 1), one[1]))
        if begins <= ends
    )


encode_state = msgspec.json.Encoder().encode
"""A session's state as JSON."""
_DECODER = msgspec.json.Decoder(SessionState)


def facts_of(view: View, known: ViewFacts, before: ViewFacts | None = None) -> ViewFacts:
    """The facts of a view that was folded as a whole, or from a moment on of which these are the
    facts `before` it."""
    carried = view.fold
    before = before or ViewFacts()

    def first(step: int, earlier: int) -> int:
        return (view.atom(step).first if view.holds(step) else earlier) if step >= 0 else 0

    return ViewFacts(
        **asdict(carried),
        steps=view.steps,
        first_sequence=view.atoms[0].first
        if view.atoms and not view.base
        else before.first_sequence,
        leading_last=first(carried.leading - 1, before.leading_last),
        user_first=first(carried.user_step, before.user_first),
        rewind_mark=view.rewind_mark,
        reset_mark=view.reset_mark,
        reopened=known.reopened,
        last_id=_newest_id(view) or before.last_id,
    )


def _newest_id(view: View) -> str:
    """The host id of the newest message in the window that has one; empty: none has. A late result
    may stand in an older atom."""
    newest, found = 0, ""
    for atom in view.atoms:
        for entry in (*atom.entries, *(dropped for dropped, _ in atom.dropped)):
            if entry.id and entry.sequence > newest:
                newest, found = entry.sequence, entry.id
    return found
