"""What a tool call reads, whatever its harness calls the tool: a file, the outcome of a command, an
address, what a search finds.

Names of tools are compared without case and signs, and without what a harness puts before them (the
server of MCP, a namespace). Arguments that change what is read are part of the key, others are not.
"""

from __future__ import annotations

import json
import posixpath
import re
from hashlib import blake2b
from typing import Any

import orjson

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import ReadKey

_BYTES = 8

FILES = frozenset(
    ("read", "readfile", "fileread", "readtextfile", "fsread", "view", "viewfile", "openfile",
     "getfilecontents", "getfile", "cat", "strreplaceeditor", "strreplacebasededittool",
     "texteditor")
)  # fmt: skip
"""Tools that read a file, by the names that Comis, OpenClaw, Hermes, Codex, Claude Code, Cursor,
Gemini CLI and the file server of MCP have for them."""
COMMANDS = frozenset(
    ("bash", "exec", "execute", "shell", "execcommand", "executecommand", "runcommand",
     "runshellcommand", "shellcommand", "localshell", "terminal", "runinterminal",
     "runterminalcmd", "powershell")
)  # fmt: skip
"""Tools that run a command."""
ADDRESSES = frozenset(
    ("webfetch", "fetch", "fetchurl", "urlfetch", "linkreader", "readurl", "geturl", "openurl")
)
"""Tools that fetch an address."""
FINDERS = frozenset(
    ("websearch", "bravesearch", "grep", "glob", "find", "ls", "list", "listdir", "listdirectory",
     "listfiles", "searchfiles", "codebasesearch", "filesearch", "tree")
)  # fmt: skip
"""Tools whose answer follows from all of their arguments."""
_OF = {name: kind for kind, names in
       (("file", FILES), ("exec", COMMANDS), ("fetch", ADDRESSES), ("find", FINDERS))
       for name in names}  # fmt: skip
_TARGETS = {
    "file": ("path", "filepath", "file", "filename", "targetfile", "absolutepath", "uri"),
    "exec": ("command", "cmd", "script", "commandline"),
    "fetch": ("url", "uri", "address", "link"),
}
_ASIDE = frozenset(
    ("description", "explanation", "reason", "justification", "timeout", "timeoutms", "timeoutsec",
     "yieldtimems", "maxoutputtokens")
)  # fmt: skip
"""Arguments that do not change what is read."""
_EDITORS = frozenset(("strreplaceeditor", "strreplacebasededittool", "texteditor"))
"""Tools that read a file by their command `view`, and change it by others."""
MAX_ERROR_CHARS = 500
"""A longer text may begin as an error does and say more; this and the beginnings are those of Comis
(packages/agent/src/context-engine/dead-content-evictor.ts)."""
_ERROR = re.compile(
    r"\[?error:|enoent:|eacces:|command failed|exit code [1-9]|permission denied|no such file",
    re.IGNORECASE,
)
MAX_ARGUMENT_BYTES = 65_536
"""No read needs longer arguments."""


def read_key(tool: str, arguments_json: bytes) -> ReadKey | None:
    """What a call reads; None where it is not known to read anything."""
    name = _plain(tool.rsplit("__", 1)[-1].rsplit(".", 1)[-1])
    kind = _OF.get(name)
    if kind is None or len(arguments_json) > MAX_ARGUMENT_BYTES:
        return None
    try:
        given = json.loads(arguments_json or b"{}")
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict):
        return None
    arguments = {
        key: value
        for named, value in given.items()
        if value is not None and (key := _plain(named)) not in _ASIDE
    }
    if name in _EDITORS and arguments.pop("command", None) != "view":
        return None
    if kind == "find":
        return ReadKey(_digest(name, arguments))
    target = next((key for key in _TARGETS[kind] if arguments.get(key)), None)
    if target is None:
        return None
    what = _normal(kind, arguments.pop(target))
    if kind == "exec":  # where it runs, and how, is all of what it reads
        return ReadKey(_digest(kind, what, arguments))
    return ReadKey(_digest(kind, what), _digest(arguments) if arguments else b"")


def call_key(tool: str, arguments_json: bytes) -> bytes:
    """Names a call: the tool and its arguments, whatever the order of their keys."""
    try:
        given = orjson.loads(arguments_json or b"{}")
        text = orjson.dumps(dict(sorted(given.items())) if isinstance(given, dict) else given)
    except ValueError:
        text = arguments_json
    return blake2b(tool.encode() + b"::" + text, digest_size=_BYTES).digest()


def read_path(tool: str, arguments_json: bytes) -> str:
    """The path of the file that a call reads, as the call has it; empty where it reads none."""
    name = _plain(tool.rsplit("__", 1)[-1].rsplit(".", 1)[-1])
    if _OF.get(name) != "file" or read_key(tool, arguments_json) is None:
        return ""
    given = {_plain(key): value for key, value in json.loads(arguments_json).items()}
    target = next(given[key] for key in _TARGETS["file"] if given.get(key))
    return target.strip() if isinstance(target, str) else ""


def is_failed(result: pb.ToolResultPart) -> bool:
    """True for a result that is an error, or says that it is one in few words."""
    if result.is_error:
        return True
    texts = [part.text.text for part in result.parts]
    return 0 < sum(map(len, texts)) <= MAX_ERROR_CHARS and bool(_ERROR.match(texts[0].lstrip()))


def is_silent(result: pb.ToolResultPart) -> bool:
    """True for a result that is no error and says nothing: no part, or blank texts alone."""
    return not result.is_error and all(
        part.WhichOneof("kind") == "text" and not part.text.text.strip() for part in result.parts
    )


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _normal(kind: str, target: Any) -> Any:
    if not isinstance(target, str):
        return target  # Codex runs lists of words
    if kind == "file":
        return posixpath.normpath(target.strip())
    return target.strip().rstrip("/") if kind == "fetch" else target.strip()


def _digest(*values: Any) -> bytes:
    text = json.dumps(values, sort_keys=True)
    return blake2b(text.encode(), digest_size=_BYTES).digest()
