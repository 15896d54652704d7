r"""Takes secrets out of a tool's arguments or result without breaking them.

What is JSON stays JSON of the same structure. Its strings are looked at as what they say and not as
they are escaped: in `"\nsk-…"` the `n` of an escape would hide the beginning of a key. A value that
is a secret by the name it stands under becomes a string that is the mark; nothing else of the text
changes, white space and the order of names included. All else is redacted as plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import msgspec

from .redaction import MARK, redact

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_ESCAPE = re.compile(r"\\[bfnrt]")
_WORDS = frozenset({"true", "false", "null"})
_DEPTH = 3
"""How often JSON may stand within a string of JSON, to be looked at as JSON."""


class Scalar(msgspec.Struct, frozen=True):
    """A string or number of a JSON text, or a name in it, and where it stands."""

    start: int
    end: int
    text: str
    """What it says: decoded, and for a number as it is written."""
    name: str
    """The name that it stands under, its list's name within a list. Empty: none."""
    line: str
    """Both, as people write them."""
    quoted: bool


def redact_payload(text: str) -> str:
    """`text` without its secrets. As it is, byte for byte, where there are none."""
    return _redact(text, _DEPTH)


def _redact(text: str, depth: int) -> str:
    if depth and text.lstrip()[:1] in ("{", "["):
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            return _json(text, depth)
    clean = redact(text)
    # Redaction also strips control characters and terminal colours. Where nothing else was found,
    # the text stays as it was.
    return clean if clean.count(MARK) > text.count(MARK) else text


def _json(text: str, depth: int) -> str:
    if not _suspect(text) and ("\\" not in text or not _suspect(_unescaped(text))):
        return text
    pieces, at = [], 0
    for scalar in _suspects(_scalars(text)):
        shown = _shown(scalar, depth)
        if shown != scalar.text:
            pieces += [text[at : scalar.start], json.dumps(shown, ensure_ascii=False)]
            at = scalar.end
    return "".join([*pieces, text[at:]]) if pieces else text


def _unescaped(text: str) -> str:
    """The text with its escapes undone, to look for secrets in: no JSON any more."""
    plain = json.dumps(json.loads(text), ensure_ascii=False) if "\\u" in text else text
    return _ESCAPE.sub("\n", plain)


def _scalars(text: str) -> list[Scalar]:
    """The strings, numbers and names of a text that is JSON."""
    found: list[Scalar] = []
    names = [""]
    name = ""
    for token in _TOKEN.finditer(text):
        said = token[0]
        if said in "{[":
            # The values of a list belong to the list's name; those of an object have names.
            name = name if said == "[" else ""
            names.append(name)
        elif said in "}]":
            names.pop()
            name = names[-1]
        elif said == ",":
            name = names[-1]
        elif said == ":":
            name = found[-1].text
        elif said not in _WORDS:
            quoted = said[0] == '"'
            decoded = said
            if quoted:
                decoded = json.loads(said) if "\\" in said else said[1:-1]
            line = f"{json.dumps(name, ensure_ascii=False)}: {said}" if name else said
            found.append(Scalar(*token.span(), decoded, name, line, quoted))
    return found


def _suspects(scalars: Sequence[Scalar]) -> list[Scalar]:
    """Those of the scalars that may be secrets: halves that hold none are left at once, so that a
    long text with one secret is looked at a few times only."""
    said = [scalar.line for scalar in scalars]
    said += [scalar.text for scalar in scalars if "\\" in scalar.line]
    if not _suspect("\n".join(said)):
        return []
    if len(scalars) == 1:
        return list(scalars)
    middle = len(scalars) // 2
    return _suspects(scalars[:middle]) + _suspects(scalars[middle:])


def _suspect(text: str) -> bool:
    return redact(text).count(MARK) > text.count(MARK)


def _shown(scalar: Scalar, depth: int) -> str:
    """What is shown of it: less what it says of secrets; the mark alone where its name says that
    it is one."""
    shown = _redact(scalar.text, depth - 1) if scalar.quoted else scalar.text
    if not scalar.name or shown == MARK:
        return shown
    # The name itself is redacted first: a secret used as a name must not decide what becomes of
    # its value.
    name = json.dumps(redact(scalar.name), ensure_ascii=False)
    said = json.dumps(shown, ensure_ascii=False) if scalar.quoted else shown
    return MARK if _suspect(f"{name}: {said}") else shown
