"""A session's own facts, kept as JSON in its head: what the view cannot be rebuilt from rows of the
window alone, and what the host, the provider and the operator said."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, TypeVar

import orjson

from contextengine_server.context.fold import Extension
from contextengine_server.context.view import View

MAX_REFUSED = 16

F = TypeVar("F")


@dataclass(slots=True)
class ViewFacts:
    """What a window needs to know of the history before it."""

    steps: int = 0
    first_sequence: int = 0
    """The first live message's sequence; 0: none."""
    leading: int = 0
    leading_last: int = 0
    """The last sequence of the leading messages; 0: none."""
    leading_open: bool = True
    user_step: int = -1
    user_first: int = 0
    """The first sequence of the atom that holds the newest user message; 0: none."""
    user_peak: int = 0
    abandoned: dict[str, list[int]] = field(default_factory=dict)
    late_mark: int = 0
    scattered: int = 0
    rewind_mark: int = 0
    reset_mark: int = 0
    reopened: int = 0
    """The newest revision that changed facts of older rows (a late result, a rewind, a reset); 0:
    none."""


@dataclass(slots=True)
class ModelFacts:
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
    served_window: int = 0
    """The smallest limit that the provider was seen to enforce; 0: none seen."""


@dataclass(slots=True)
class UsageFacts:
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


@dataclass(slots=True)
class SessionState:
    """Everything of a session's head that only the session core reads."""

    encoding: str = "o200k_base"
    view: ViewFacts = field(default_factory=ViewFacts)
    model: ModelFacts = field(default_factory=ModelFacts)
    usage: UsageFacts = field(default_factory=UsageFacts)
    host: str = ""
    """The host as it introduced itself: an encoded HostInfo, as hexadecimal digits."""
    capabilities: list[str] = field(default_factory=list)
    compactions: int = 0
    held: bool = False
    """True after an undo: compaction waits until one is forced."""
    undo_mark: int = 0
    """The revision of the newest undo; 0: none."""
    undone: list[list[int]] = field(default_factory=list)
    """Summaries of depth 0 that were taken back after a late result had come for what they cover,
    as in View.leaves: that result stays the note that it was stored as."""
    refused: list[str] = field(default_factory=list)
    """Inputs of compactions that would not have shrunk the view (law 12), newest last."""
    native_compactions: int = 0
    detached: int = 0
    """The revision of the first reset: from it on nothing is inherited from the session that this
    one continues; 0: none."""

    depth: int = 0
    """How deep the session is below one that nobody spawned; 0: it is no child."""

    _rest: bytes = b""
    """All but `view`, encoded: a step changes the view's facts alone. Empty where it must be
    encoded again."""

    def encode(self) -> bytes:
        """As JSON."""
        if not self._rest:
            parts = {
                part.name: getattr(self, part.name) for part in fields(self) if part.name in _RARE
            }
            self._rest = orjson.dumps(parts)
        return b'{"view":%b,%b' % (orjson.dumps(self.view), self._rest[1:])

    @classmethod
    def decode(cls, data: bytes) -> SessionState:
        """From JSON; fields that are not there take their defaults, those that are unknown are left
        alone."""
        raw: dict[str, Any] = orjson.loads(data) if data else {}
        state = cls()
        for part in fields(cls):
            if part.name not in raw or part.name == "_rest":
                continue
            value = raw[part.name]
            known = getattr(state, part.name)
            if isinstance(value, dict) and isinstance(known, ViewFacts | ModelFacts | UsageFacts):
                names = {f.name for f in fields(known)}
                value = replace(
                    known, **{name: item for name, item in value.items() if name in names}
                )
            setattr(state, part.name, value)
        return state

    def copy(self) -> SessionState:
        """A copy to change, so that memory changes only after the commit."""
        copy = _copy(self)
        copy._rest = b""
        copy.view, copy.model, copy.usage = _copy(self.view), _copy(self.model), _copy(self.usage)
        copy.capabilities, copy.refused = list(self.capabilities), list(self.refused)
        copy.undone = list(self.undone)
        return copy

    def sharing(self) -> SessionState:
        """A copy whose parts are this state's: for a change that puts other parts in place of
        them."""
        return _copy(self)

    def refuse(self, key: str) -> None:
        """Remembers an input that is not to be tried again."""
        self.refused = [*(known for known in self.refused if known != key), key][-MAX_REFUSED:]


def _copy(facts: F) -> F:
    """A shallow copy of a dataclass; `replace` would take five times as long, at every commit."""
    kind: type[Any] = type(facts)
    copy: F = kind(*_VALUES[kind](facts))
    return copy


_RARE = frozenset(part.name for part in fields(SessionState)) - {"view", "_rest"}

_VALUES = {
    kind: attrgetter(*(field.name for field in fields(kind)))
    for kind in (SessionState, ViewFacts, ModelFacts, UsageFacts)
}


def facts_after(view: View, change: Extension, known: ViewFacts) -> ViewFacts:
    """The facts of a view once an extension is applied, for the head that is committed with it."""
    atoms = {atom.step: atom for atom in (*change.replaced.values(), *change.added)}

    def first_of(step: int, before: int) -> int:
        if step in atoms:
            return atoms[step].first
        return view.atom(step).first if view.holds(step) else before

    first = known.first_sequence
    if not view.steps and change.added:
        first = change.added[0].first
    facts = _copy(known)
    facts.steps = view.steps + len(change.added)
    facts.first_sequence = first
    facts.leading = change.leading
    facts.leading_last = first_of(change.leading - 1, known.leading_last) if change.leading else 0
    facts.leading_open = change.leading_open
    facts.user_step = change.user_step
    facts.user_first = first_of(change.user_step, known.user_first) if change.user_step >= 0 else 0
    facts.user_peak = change.user_peak
    facts.abandoned = known.abandoned if change.abandoned is None else change.abandoned
    facts.late_mark, facts.scattered = change.late_mark, change.scattered
    return facts


def facts_of(view: View, known: ViewFacts) -> ViewFacts:
    """The facts of a view that was folded as a whole."""
    return replace(
        known,
        steps=view.steps,
        first_sequence=view.atoms[0].first if view.atoms else 0,
        leading=view.leading,
        leading_last=view.atom(view.leading - 1).first if view.leading else 0,
        leading_open=view.leading_open,
        user_step=view.user_step,
        user_first=view.atom(view.user_step).first if view.user_step >= 0 else 0,
        user_peak=view.user_peak,
        abandoned=view.abandoned,
        late_mark=view.late_mark,
        scattered=view.scattered,
        rewind_mark=view.rewind_mark,
        reset_mark=view.reset_mark,
    )
