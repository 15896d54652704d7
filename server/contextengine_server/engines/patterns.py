"""Which sessions an operator means who names them by pattern: by agent, id, key, model or window
(docs/semantics.md#choosing-an-engine)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

ROW = "match:"
"""How the rows of assignments by pattern begin: they stand where a session's id does, without an
agent, which no session is without."""


class SessionFacts(msgspec.Struct, frozen=True):
    """What a session may be named by. Empty and None: not known."""

    agent: str
    session: str = ""
    key: str = ""
    model: str = ""
    window: int | None = None


class SessionPattern(msgspec.Struct, frozen=True, omit_defaults=True):
    """Sessions by globs; what is empty or None is not asked for.

    `*` stands for any characters but a colon, `**` for any, `?` for one that is no colon; a
    backslash takes the next character as it is.
    """

    agent: str = ""
    session: str = ""
    key: str = ""
    model: str = ""
    min_window: int | None = None
    max_window: int | None = None

    @property
    def empty(self) -> bool:
        """True where it names nothing, and so everybody."""
        return self == SessionPattern()

    @property
    def of_sessions(self) -> bool:
        """True where it tells one session of an agent from another."""
        return self != SessionPattern(agent=self.agent)

    @property
    def rank(self) -> tuple[int, int, str]:
        """What orders patterns, the nearest last: how much is asked, how much of it is literal."""
        globs = [glob for glob in (self.agent, self.session, self.key, self.model) if glob]
        asked = len(globs) + (self.min_window is not None) + (self.max_window is not None)
        return asked, sum(len(re.sub(r"[*?]", "", glob)) for glob in globs), self.row

    @property
    def row(self) -> str:
        """As a row names it."""
        return ROW + msgspec.json.encode(self, order="sorted").decode()

    def matches(self, facts: SessionFacts) -> bool:
        """True for a session that is meant. What is not known of it is not matched."""
        asked = (
            (self.agent, facts.agent),
            (self.session, facts.session),
            (self.key, facts.key),
            (self.model, facts.model),
        )
        if not all(value and _matcher(glob)(value) for glob, value in asked if glob):
            return False
        if self.min_window is None and self.max_window is None:
            return True
        if facts.window is None:
            return False
        lowest, highest = self.min_window or 0, self.max_window
        return lowest <= facts.window and (highest is None or facts.window <= highest)


def pattern_of(row: str) -> SessionPattern:
    """The pattern that a row names."""
    return msgspec.json.decode(row.removeprefix(ROW), type=SessionPattern)


def literal(text: str) -> str:
    """The glob of one text."""
    return re.sub(r"([*?\\])", r"\\\1", text)


def glob_matches(glob: str, text: str) -> bool:
    """True where the glob means this text."""
    return _matcher(glob)(text)


_PIECE = re.compile(r"\\(.)|(\*\*+)|(\*)|(\?)|(.)", re.DOTALL)


@lru_cache(maxsize=1024)
def _matcher(glob: str) -> Callable[[str], bool]:
    import re2  # late: few processes that import this room match anything

    made = []
    for escaped, everything, some, one, plain in _PIECE.findall(glob):
        if everything:
            made.append(".*")
        elif some:
            made.append("[^:]*")
        elif one:
            made.append("[^:]")
        else:
            made.append(re2.escape(escaped or plain))
    compiled = re2.compile("(?s)" + "".join(made))
    return lambda text: compiled.fullmatch(text) is not None
