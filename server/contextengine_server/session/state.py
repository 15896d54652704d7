"""A session's own facts, kept as JSON in its head: what the view cannot be rebuilt from rows of the
window alone, and what the host, the provider and the operator said."""

from __future__ import annotations

import msgspec
from msgspec.structs import asdict, replace

from contextengine_server.context.carried import FoldState
from contextengine_server.context.view import View
from contextengine_server.errors import CorruptRow
from contextengine_server.tokens import Bill

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


class ModelFacts(msgspec.Struct, frozen=True):
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


class UsageFacts(msgspec.Struct, frozen=True):
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


class SessionState(msgspec.Struct, frozen=True):
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
    """Summaries of depth 0 that were taken back after a late result had come for what they cover,
    as in View.leaves: that result stays the note that it was stored as."""
    refused: tuple[str, ...] = ()
    """Inputs of compactions that would not have shrunk the view (law 12), newest last."""
    native_compactions: int = 0
    detached: int = 0
    """The revision of the first reset: from it on nothing is inherited from the session that this
    one continues; 0: none."""
    depth: int = 0
    """How deep the session is below one that nobody spawned; 0: it is no child."""

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

    def refusing(self, key: str) -> SessionState:
        """With an input that is not to be tried again."""
        kept = (*(known for known in self.refused if known != key), key)[-MAX_REFUSED:]
        return replace(self, refused=kept)


encode_state = msgspec.json.Encoder().encode
"""A session's state as JSON."""
_DECODER = msgspec.json.Decoder(SessionState)


def facts_of(view: View, known: ViewFacts) -> ViewFacts:
    """The facts of a view that was folded as a whole."""
    carried = view.fold
    return ViewFacts(
        **asdict(carried),
        steps=view.steps,
        first_sequence=view.atoms[0].first if view.atoms else 0,
        leading_last=view.atom(carried.leading - 1).first if carried.leading else 0,
        user_first=view.atom(carried.user_step).first if carried.user_step >= 0 else 0,
        rewind_mark=view.rewind_mark,
        reset_mark=view.reset_mark,
        reopened=known.reopened,
    )
