"""Which facts hold: of those of one kind and subject that differ, the newest. That is worked out
and not stored: where the newest goes with its session, the one before it holds again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b

import msgspec

from contextengine_server.context.scope import Scope
from contextengine_server.memory.extraction.fact import FactKind, FoundFact, normal
from contextengine_server.store.agent_facts import AgentFact


class SaidFact(msgspec.Struct, frozen=True):
    """A fact that was found, and where."""

    fact: FoundFact
    sequence: int
    said_ms: int


class RememberedFact(msgspec.Struct, frozen=True):
    """A fact of an agent, with all messages that say it."""

    fact: AgentFact
    """As it was said last."""
    sources: Sequence[AgentFact]
    """As it was said each time, oldest first."""
    superseded_by: str
    """The id of the fact that holds in its place; empty: it holds."""


def remembered(facts: Iterable[AgentFact]) -> list[RememberedFact]:
    """What an agent remembers, newest first; what holds no more points to what does."""
    subjects: dict[tuple[str, str], dict[str, list[AgentFact]]] = {}
    for fact in sorted(facts, key=lambda fact: fact.place):
        said = subjects.setdefault((fact.kind, fact.subject), {})
        said.setdefault(normal(fact.value), []).append(fact)
    found = []
    for said in subjects.values():
        newest = max((rows[-1] for rows in said.values()), key=lambda fact: fact.place)
        for rows in said.values():
            by = "" if rows[-1] is newest else newest.id
            found.append(RememberedFact(rows[-1], rows, by))
    return sorted(found, key=lambda one: one.fact.place, reverse=True)


def new_facts(
    known: Sequence[AgentFact], said: Iterable[SaidFact], scope: Scope, now_ms: int
) -> list[AgentFact]:
    """The rows of facts that were found in a session, beside what its agent knows. One that the
    session said already, and that holds, is none."""
    ids = {fact.id for fact in known}
    holds = [one.fact for one in remembered(known) if not one.superseded_by][::-1]
    new: list[AgentFact] = []
    for one in said:
        fact = one.fact
        row = AgentFact(
            scope,
            _id(scope, fact, one.sequence),
            fact.kind.value,
            _subject(fact, scope, holds),
            fact.value,
            fact.text,
            one.sequence,
            min(one.said_ms, now_ms),
            now_ms,
        )
        before = next((old for old in holds if _about(old) == _about(row)), None)
        again = before is not None and normal(before.value) == normal(row.value)
        if row.id in ids or (again and before is not None and before.scope == scope):
            continue
        ids.add(row.id)
        new.append(row)
        if before is None or before.place <= row.place:
            holds = [old for old in holds if old is not before]
            holds.append(row)
    return new


def forgotten(known: Sequence[AgentFact], new: Sequence[AgentFact], most: int) -> list[str]:
    """The ids of what makes room, where an agent would remember more rows than it may: those that
    hold no more go first, then the oldest."""
    over = len(known) + len(new) - most
    if over <= 0:
        return []
    old = {
        fact.id for one in remembered([*known, *new]) if one.superseded_by for fact in one.sources
    }
    leaving = sorted(known, key=lambda fact: (fact.id not in old, *fact.place))
    return [fact.id for fact in leaving[:over]]


def _about(fact: AgentFact) -> tuple[str, str]:
    return fact.kind, fact.subject


def _subject(fact: FoundFact, scope: Scope, holds: Sequence[AgentFact]) -> str:
    """What a fact is about: what it says itself, or what that is about which it replaces."""
    own = normal(fact.subject)
    alike = [old for old in holds if old.kind == fact.kind]
    if any(old.subject == own for old in alike):
        return own
    for old in reversed(alike):
        named = fact.replaces and fact.replaces in normal(f"{old.value} {old.text}")
        corrected = fact.corrects and not fact.replaces and old.scope == scope
        if named or (corrected and _verb(old.value) & _verb(fact.value)):
            return old.subject
        if _turned_down(old, fact, own):
            return old.subject
    return own


_PREFERS = re.compile(r"(?i)\b(?:prefer|favou?r)\b")
_REFUSES = re.compile(r"(?i)\b(?:not|don't|don’t|hate|dislike|can't stand|cannot stand)\b")


def _turned_down(old: AgentFact, fact: FoundFact, kind: str) -> bool:
    """Whether a fact says which of a kind is preferred, where one of that kind was refused before:
    `I don't want dark mode`, `I prefer light mode`. Or where another was preferred to it since,
    which says nothing of it."""
    if fact.kind is not FactKind.PREFERENCE or not _PREFERS.search(fact.value):
        return False
    of_a_kind = old.subject.endswith(f" {kind}") and len(old.subject.split()) == 2
    said = normal(old.value)
    return of_a_kind and (bool(_REFUSES.search(said)) or old.subject not in said)


_VERBS = frozenset(
    ("use", "using", "go", "adopt", "choose", "chose", "pick", "switch", "keep", "用")
)


def _verb(value: str) -> set[str]:
    """The verbs of choice in a decision: two that choose are about the same."""
    words = set(normal(value).split()) & _VERBS
    return {"use"} if words or "用" in value else set()


def _id(scope: Scope, fact: FoundFact, sequence: int) -> str:
    named = "\0".join((*scope, str(sequence), fact.kind, normal(fact.value)))
    return "fact_" + blake2b(named.encode("utf-8", "replace"), digest_size=10).hexdigest()
