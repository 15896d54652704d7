"""The facts of a text, and of messages.

Rules for English and Chinese, in the form that people say such things of themselves. In doubt
nothing is found: a fact that is none misleads every later session, one that is missed can be found
in its message. So questions, suppositions, what others are said to have said, quotations, code and
output are passed over, and what a user alone can know is taken from users alone.
"""

from __future__ import annotations

from datetime import date

from contextengine_server.notices import parted

from .fact import FactKind, FoundFact

ROLES = ("user", "assistant")
"""Whose words are looked at. What tools answer, and what a system prompt says, is nobody's word."""
MAX_CHARS = 20_000
"""Of a text so many characters are looked at. Longer ones are pasted: documents, logs."""


def facts_in(
    role: str, text: str, max_chars: int = MAX_CHARS, said_on: date | None = None
) -> list[FoundFact]:
    """The facts that a message of this role says, in order, each once. `said_on`: the day of which
    it speaks as today; None: it is not known, and a day named from there is none."""
    # Its expressions take a twelfth of a start to compile, and are looked for later.
    from .stated import stated_in

    if role not in ROLES:
        return []
    found: dict[tuple[FactKind, str], FoundFact] = {}
    words = _beginning(words_of(role, text), max_chars)
    for fact in stated_in(words, said_on, user=role == "user"):
        found.setdefault((fact.kind, fact.value), fact)
    return list(found.values())


def words_of(role: str, text: str) -> str:
    """What of a message's text is its speaker's own: not what a harness writes beside a user."""
    return parted(text)[0] if role == "user" else text


def _beginning(text: str, max_chars: int) -> str:
    """Whole sentences of at most so many characters."""
    if len(text) <= max_chars:
        return text
    return text[: max(text.rfind(end, 0, max_chars) + 1 for end in ("\n", ". ", "。"))]
