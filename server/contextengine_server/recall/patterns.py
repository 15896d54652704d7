"""Regular expressions: RE2, whose time is linear in the text whatever the pattern is."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from contextengine_server.errors import InvalidField

_MAX_MEMORY = 8 << 20
"""Bytes that a compiled pattern may take, RE2's own default; a pattern that needs more is
refused."""

_MAX_LITERAL = 64
"""Characters of a literal that are looked up: well within what neighbouring passages share."""

_REPEATED = "?*{"
_META = set(r"\.+*?()|[]{}^$")
_HARD = re.compile(r"\\[QEpPx0-9]|\[\[|\[:")
"""What this does not read: then every text is looked at, which takes longer and finds the same."""


class Pattern(msgspec.Struct, frozen=True):
    """A compiled pattern."""

    compiled: Any
    literal: str
    """A text that every match contains, in some case; empty: none is known."""

    def first(self, text: str) -> tuple[int, int] | None:
        """Where the first match begins and ends."""
        match = self.compiled.search(text)
        return None if match is None else match.span()


def compile_pattern(pattern: str, field: str = "query") -> Pattern:
    """Compiles a pattern. Raises InvalidField, which says what is wrong with it."""
    import re2  # takes longer to import than a start may wait for what it may never need

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise InvalidField(
            field,
            f"is not a valid RE2 expression ({reason}): correct it, or search by words (FULL_TEXT)",
        ) from error
    return Pattern(compiled, literal_of(pattern))


def literal_of(pattern: str) -> str:
    """The longest text that any match must contain, as far as it is plain to see; empty where none
    is of three characters."""
    if _HARD.search(pattern):
        return ""
    runs, run, at = [""], "", 0
    while at < len(pattern):
        character = pattern[at]
        if character == "|":
            return ""  # outside of groups: there is another way to match
        if character == "[":
            at, plain = _behind_class(pattern, at), ""
        elif character == "(":
            at, plain = _behind_group(pattern, at), ""
        elif character == "{":
            at, plain = max(pattern.find("}", at), at) + 1, ""
        elif character == "\\":
            escaped = pattern[at + 1 : at + 2]
            plain = "" if escaped.isalnum() or not escaped else escaped
            at += 2
        else:
            plain = "" if character in _META else character
            at += 1
        following = pattern[at : at + 1]
        if not plain or (following and following in _REPEATED):
            runs.append(run)
            run = ""
        else:
            run += plain
    longest = max([*runs, run], key=len)[:_MAX_LITERAL]
    return longest if len(longest) >= 3 else ""


def _behind_class(pattern: str, at: int) -> int:
    """Behind a class in brackets; a closing bracket that comes first in it is one of its
    characters."""
    at += 1
    at += pattern[at : at + 1] == "^"
    at += pattern[at : at + 1] == "]"
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


def _behind_group(pattern: str, at: int) -> int:
    depth = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "[":
            at = _behind_class(pattern, at)
            continue
        depth += (character == "(") - (character == ")")
        at += 2 if character == "\\" else 1
        if depth == 0:
            break
    return at
