"""What a tool call reads, whatever its harness calls the tool: a file, the outcome of a command, an
address, what a search finds.

Tools are known by what they do (`context.tools.names`). Arguments that change what is read are part
of the key, others are not.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable
from hashlib import blake2b
from operator import methodcaller
from typing import Any, NamedTuple

import orjson

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import ReadKey
from contextengine_server.context.tools.names import (
    ADDRESSES,
    COMMANDS,
    EDITORS,
    FILES,
    FINDERS,
    SEARCHES,
    plain,
    plain_name,
)

from .bounded import texts_in

_BYTES = 8

_OF = {name: kind for kind, names in
       (("file", FILES), ("exec", COMMANDS), ("fetch", ADDRESSES), ("search", SEARCHES),
        ("find", FINDERS))
       for name in names}  # fmt: skip
_TARGETS = {
    "file": ("path", "filepath", "file", "filename", "targetfile", "absolutepath", "uri"),
    "exec": ("command", "cmd", "script", "commandline"),
    "fetch": ("url", "uri", "address", "link"),
    "search": ("query", "q", "searchquery", "searchterm"),
}
_ASIDE = frozenset(
    ("description", "explanation", "reason", "justification", "timeout", "timeoutms", "timeoutsec",
     "yieldtimems", "maxoutputtokens")
)  # fmt: skip
"""Arguments that do not change what is read."""
_KIND, _TEXT = methodcaller("WhichOneof", "kind"), frozenset({"text"})
MAX_ERROR_CHARS = 500
"""A longer text may begin as an error does and say more; this and the beginnings are those of Comis
(packages/agent/src/context-engine/dead-content-evictor.ts)."""
_ERROR = re.compile(
    r"\[?error:|enoent:|eacces:|command failed|exit code [1-9]|permission denied|no such file",
    re.IGNORECASE,
)
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
"""An integer that has perhaps more than 64 bits."""
MIN_SAME_CHARS = 200
"""From so many characters on equal results are told by one of them, as in Hermes."""
MAX_ARGUMENT_BYTES = 65_536
"""No read needs longer arguments."""


def read_key(tool: str, arguments_json: bytes) -> ReadKey | None:
    """What a call reads; None where it is not known to read anything."""
    name = plain_name(tool)
    kind = _OF.get(name)
    if kind is None or len(arguments_json) > MAX_ARGUMENT_BYTES:
        return None
    try:
        return _key_of(name, kind, arguments_json)
    except RecursionError:  # they are nested deeper than they can be written
        return None


def _key_of(name: str, kind: str, arguments_json: bytes) -> ReadKey | None:
    given = _parsed(arguments_json)
    if not isinstance(given, dict):
        return None
    arguments = {
        key: value
        for named, value in given.items()
        if value is not None and (key := plain(named)) not in _ASIDE
    }
    if name in EDITORS and arguments.pop("command", None) != "view":
        return None
    if kind == "find":
        return ReadKey(_digest(name, arguments))
    target = next((key for key in _TARGETS[kind] if arguments.get(key)), None)
    if target is None:
        return None
    what = _normal(kind, arguments.pop(target))
    if kind in ("exec", "search"):  # where it runs, and how, is all of what it reads
        return ReadKey(_digest(kind, what, arguments))
    return ReadKey(_digest(kind, what), _digest(arguments) if arguments else b"")


def _parsed(arguments_json: bytes) -> Any:
    """A call's arguments; None where they are no JSON."""
    try:
        if _LONG_NUMBER.search(arguments_json) is None:
            return orjson.loads(arguments_json or b"{}")
    except ValueError:
        pass
    try:  # it takes NaN and halves of surrogate pairs as well, and rounds no integer
        return json.loads(arguments_json)
    except (ValueError, RecursionError):
        return None


def call_key(tool: str, arguments_json: bytes) -> bytes:
    """Names a call: the tool and its arguments, whatever the order of their keys."""
    try:
        given = orjson.loads(arguments_json or b"{}")
        text = orjson.dumps(dict(sorted(given.items())) if isinstance(given, dict) else given)
    except (ValueError, TypeError):  # it is no JSON, or nested deeper than it can be written
        text = arguments_json
    return blake2b(tool.encode() + b"::" + text, digest_size=_BYTES).digest()


def read_path(tool: str, arguments_json: bytes) -> str:
    """The path of the file that a call reads, as the call has it; empty where it reads none, or one
    whose name is no text."""
    name = plain_name(tool)
    if _OF.get(name) != "file" or read_key(tool, arguments_json) is None:
        return ""
    given = {plain(key): value for key, value in _parsed(arguments_json).items()}
    target = next(given[key] for key in _TARGETS["file"] if given.get(key))
    # Half a surrogate pair is in no file's name that can be asked for again, and in no state.
    return target.strip() if isinstance(target, str) and _utf8(target) else ""


def _utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class ResultFacts(NamedTuple):
    """What must be known of a result."""

    failed: bool
    """It is an error, or says that it is one in few words."""
    silent: bool
    """It is no error and says nothing: no part, or blank texts alone."""
    pictured: bool
    """It holds a picture."""
    chars: int
    """The characters of its texts, those of results within it included."""
    text: bytes
    """Names its text, whatever tool said it; empty where it is short, or there is more to it than
    text."""


def facts_of_result(result: pb.ToolResultPart) -> ResultFacts:
    """Looks a result through, once."""
    parts, pictured, error, named = result.parts[:], False, result.is_error, b""
    texts = [part.text.text for part in parts]
    said = chars = sum(map(len, texts))
    if not _TEXT.issuperset(map(_KIND, parts)):
        pictured = any(part.HasField("image") for part in parts)
        chars = sum(len(text.text) for text in texts_in(parts))
        silent = False
    else:
        silent = not error and not any(text.strip() for text in texts)
        named = _text_key(texts) if said >= MIN_SAME_CHARS else b""
    failed = error or (0 < said <= MAX_ERROR_CHARS and _ERROR.match(texts[0].lstrip()) is not None)
    return ResultFacts(failed, silent, pictured, chars, named)


def _text_key(texts: Iterable[str]) -> bytes:
    digest = blake2b(digest_size=_BYTES)
    for text in texts:
        digest.update(text.encode(errors="surrogatepass"))
        digest.update(b"\0")
    return digest.digest()


def _normal(kind: str, target: Any) -> Any:
    if not isinstance(target, str):
        return target  # Codex runs lists of words
    if kind == "file":
        return posixpath.normpath(target.strip())
    if kind == "search":
        return " ".join(target.lower().split())
    return target.strip().rstrip("/") if kind == "fetch" else target.strip()


_ENCODED = json.JSONEncoder(sort_keys=True).encode  # dumps() makes one anew at each call


def _digest(*values: Any) -> bytes:
    return blake2b(_ENCODED(values).encode(), digest_size=_BYTES).digest()
