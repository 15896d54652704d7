"""Names of tools, by what they do, whatever their harness calls them.

They are compared without case and signs, and without what a harness puts before them (the server of
MCP, a namespace), so that all who ask know the same names.
"""

from __future__ import annotations

from functools import lru_cache

EDITORS = frozenset(("strreplaceeditor", "strreplacebasededittool", "texteditor"))
"""Tools that read a file by their command `view`, and change it by others."""
FILES = EDITORS | frozenset(
    ("read", "readfile", "fileread", "readtextfile", "fsread", "view", "viewfile", "openfile",
     "getfilecontents", "getfile", "cat")
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
SEARCHES = frozenset(("websearch", "bravesearch", "googlewebsearch", "searchweb"))
"""Tools that search the web."""
FINDERS = frozenset(
    ("grep", "glob", "find", "ls", "list", "listdir", "listdirectory", "listfiles", "searchfiles",
     "codebasesearch", "filesearch", "tree")
)  # fmt: skip
"""Tools whose answer follows from all of their arguments."""


@lru_cache(maxsize=1024)
def plain_name(tool: str) -> str:
    """A tool's name as it is compared."""
    return plain(tool.rsplit("__", 1)[-1].rsplit(".", 1)[-1])


def plain(word: str) -> str:
    """A word as it is compared."""
    return word.lower().replace("_", "").replace("-", "")
