"""What was done, kept as accounts are: by rule, one line a thing, the newest state of each.

Files changed with what was written in them, commits, the last outcome of each command, errors that
no later try mended, what other tools were asked for with the values and their names, files read.
Every line says by itself what it tells, so that it can be quoted again. Pure; linear.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from contextengine_server.summarize.extractive.tools import Place, ToolUse, paths_changed

_NAMES_EACH = 12
"""Names of a file's text that are told at most."""
_LINES = 0.7
"""The share of the ledger's room that its lines may take; the rest is for the names behind them."""
_FILES = 60
"""Files, commands or calls that are told at most; more are only counted."""
_CHARS = 160
"""Of a command, an error or a commit's subject."""

_DEFINED = re.compile(
    r"\b(?:def|class|function|func|fn|interface|type|struct|enum|trait|module|const|let|var|table)"
    r"[ \t]{1,4}([A-Za-z_$][\w$]{2,48})"
)
_SHAPED = re.compile(
    r"(?<![\w$])(?:[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)+|(?:[A-Z][a-z0-9]+){2,6}"
    r"|[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+)(?![\w$])"
)
_MAX_TEXT = 64 * 1024
"""Of a text that is searched for names."""
_COMMITTED = re.compile(r"^\[[^\s\]]{1,80}(?: \([^)]{1,40}\))? ([0-9a-f]{7,40})\] (.{1,200})", re.M)
_MESSAGE = re.compile(
    r"\bgit\b[^\n]{0,200}?\bcommit\b[^\n\"']{0,80}-a?m ?([\"'])(\$\(cat <<\S{1,20} )?"
)
_LOOKS = frozenset(
    [
        "ls",
        "cat",
        "grep",
        "rg",
        "find",
        "head",
        "tail",
        "sed",
        "awk",
        "wc",
        "echo",
        "pwd",
        "which",
        "git",
        "tree",
        "cd",
        "sleep",
        "date",
        "jq",
        "sort",
        "diff",
        "mkdir",
        "cp",
        "mv",
        "rm",
        "touch",
        "chmod",
        "true",
        "export",
        "source",
        "du",
        "df",
        "ps",
        "kill",
        "env",
        "printenv",
    ]
)
"""Commands whose success says nothing that matters later."""
_WRONG = re.compile(
    r"\b\w*(?:error|exception)\b|\b(?:fail(?:ed|ure|s|ing)?|panic|fatal|denied|refused|not found"
    r"|timed? ?out|invalid|cannot|unable)\b|错误|失败|异常|超时|拒绝|无法",
    re.IGNORECASE,
)
_EXITED = re.compile(r"\W*(?:command |process )?exit(?:ed)?\b", re.IGNORECASE)
_SHORTENED = re.compile(r"\s\|\s?(?:tail|head|grep|wc|less|cat|sort|uniq)\b")
_REDIRECTIONS = ("2>&1", "2>/dev/null", ">/dev/null", "&>/dev/null")


class Ledger(msgspec.Struct, frozen=True):
    """The lines of the ledger, the most important first, and what is told of failures."""

    lines: tuple[LedgerLine, ...]
    mended: frozenset[Place]
    """The uses that failed and were mended later, or failed again in the same way."""


class LedgerLine(msgspec.Struct, frozen=True):
    """A line, and names that may be told behind it."""

    group: int
    """Its place among the groups: the lines are shown by group, then in order of time."""
    sequence: int
    text: str
    names: tuple[str, ...] = ()


def ledger_of(done: Mapping[Place, ToolUse]) -> Ledger:
    """The ledger of what was done, in order; see `tools.uses_of`."""
    uses = list(done.values())
    last_good: dict[tuple[str, str], int] = {}
    last_bad: dict[tuple[str, str], int] = {}
    for at, use in enumerate(uses):
        if use.failed:
            last_bad[_key(use)] = at
        elif use.answered:
            last_good[_key(use)] = at
    open_at = {at for key, at in last_bad.items() if last_good.get(key, -1) < at}
    mended = frozenset(
        place for at, (place, use) in enumerate(done.items()) if use.failed and at not in open_at
    )
    frequent = _frequencies(uses)
    lines = (
        *_errors(uses, open_at),
        *_commits(uses),
        *_changes(uses, frequent),
        *_commands(uses),
        *_calls(uses),
        *_reads(uses, frequent),
    )
    return Ledger(lines, mended)


def chosen(lines: Sequence[LedgerLine], room: int, count: Callable[[str], int]) -> list[str]:
    """The lines that fit `room` tokens, in order of their groups; then the names behind them, a few
    of each line before more of any."""
    kept: list[LedgerLine] = []
    left = int(room * _LINES)
    for line in lines:
        cost = count(line.text) + 2
        if cost <= left:
            left -= cost
            room -= cost
            kept.append(line)
    told: list[list[str]] = [[] for _ in kept]
    for turn in range(_NAMES_EACH):
        for line, names in zip(kept, told, strict=True):
            if turn < len(line.names):
                cost = count(line.names[turn]) + 1
                if cost <= room:
                    room -= cost
                    names.append(line.names[turn])
    rows = [
        (line.group, line.sequence, line.text + (": " + ", ".join(names) if names else ""))
        for line, names in zip(kept, told, strict=True)
    ]
    return [text for _, _, text in sorted(rows, key=lambda row: row[:2])]


def _key(use: ToolUse) -> tuple[str, str]:
    """What is tried again when a use is: the same command, or the same tool on the same thing."""
    if use.kind == "command":
        return "", _bare(use.target)
    return use.tool, use.target


def _bare(command: str) -> str:
    """A command without what only shortens its output."""
    bare = _SHORTENED.split(command[:2_000], maxsplit=1)[0].strip()
    while bare.endswith(_REDIRECTIONS):
        bare = bare[: bare.rindex(">")].rstrip("&").removesuffix("2").strip()
    return bare


def _looks(command: str) -> bool:
    """True for a command whose outcome says nothing that matters later."""
    return command.split(maxsplit=1)[0] in _LOOKS if command.strip() else True


def _errors(uses: Sequence[ToolUse], open_at: set[int]) -> Iterator[LedgerLine]:
    for at in sorted(open_at, reverse=True)[:_FILES]:
        use = uses[at]
        if use.kind == "command" and _looks(use.target):
            continue  # that nothing was found is no error
        what = _cut(_bare(use.target) if use.kind == "command" else use.target)
        doing = " ".join(filter(None, (use.tool, what)))
        yield LedgerLine(
            4,
            use.sequence,
            f"failed #{use.answered} {doing}: {_cut(_error_in(use.result))}".rstrip(": "),
        )


def _error_in(text: str) -> str:
    """The line that says what went wrong: the first that names an error, else the last but for the
    exit code."""
    rows = [row.strip() for row in (text[:16_384] + "\n" + text[-16_384:]).splitlines()]
    rows = [row for row in rows if row]
    named = next((row for row in rows if _WRONG.search(row[:2_000])), "")
    return named or next((row for row in reversed(rows) if not _EXITED.match(row)), "")


def _commits(uses: Sequence[ToolUse]) -> Iterator[LedgerLine]:
    lines = []
    for use in uses:
        if use.kind != "command" or use.failed:
            continue
        made = _COMMITTED.search(use.result[:16_384])
        if made is not None:
            lines.append(
                LedgerLine(0, use.sequence, f"commit #{use.sequence} {made[1]}: {_cut(made[2])}")
            )
        elif message := _commit_message(use.target):
            lines.append(LedgerLine(0, use.sequence, f"commit #{use.sequence}: {_cut(message)}"))
    yield from reversed(lines)


def _commit_message(command: str) -> str:
    found = _MESSAGE.search(command)
    if found is None:
        return ""
    rest = command[found.end() : found.end() + 400]
    return rest.partition(" EOF" if found[2] else found[1])[0].strip()


def _changes(uses: Sequence[ToolUse], frequent: Counter[str]) -> Iterator[LedgerLine]:
    times: dict[str, list[int]] = {}
    texts: dict[str, list[str]] = {}
    for use in uses:
        if use.kind == "change" and use.answered and not use.failed:
            for path in paths_changed(use):
                times.setdefault(path, []).append(use.sequence)
                texts.setdefault(path, []).append(use.written)
    newest = sorted(times, key=lambda path: -times[path][-1])
    for path in newest[:_FILES]:
        seen = times[path]
        often = f"{len(seen)} times, last " if len(seen) > 1 else ""
        names = _names("\n".join(reversed(texts[path])), frequent)
        yield LedgerLine(1, seen[-1], f"changed {path} {often}#{seen[-1]}", names)
    if len(newest) > _FILES:
        yield LedgerLine(1, 0, f"changed {len(newest) - _FILES} more files")


def _commands(uses: Sequence[ToolUse]) -> Iterator[LedgerLine]:
    last: dict[str, tuple[int, int]] = {}
    for use in uses:
        command = _bare(use.target)
        if use.kind == "command" and use.answered and not use.failed and command:
            if not _looks(command):
                times = last[command][1] if command in last else 0
                last[command] = (use.answered, times + 1)
        elif use.kind == "command" and use.failed:
            last.pop(command, None)
    newest = sorted(last, key=lambda command: -last[command][0])
    for command in newest[: _FILES // 2]:
        sequence, times = last[command]
        often = f", {times} times" if times > 1 else ""
        yield LedgerLine(2, sequence, f"ran {_cut(command)}: ok #{sequence}{often}")


def _calls(uses: Sequence[ToolUse]) -> Iterator[LedgerLine]:
    told: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
    for use in uses:
        if use.kind == "other" and not use.failed and use.named and use.tool:
            told[use.tool, use.named] = use.sequence
    newest = sorted(told, key=lambda call: -told[call])
    for tool, named in newest[:_FILES]:
        given = "; ".join(f"{name}: {value}" for name, value in named[:12])
        yield LedgerLine(3, told[tool, named], f"called #{told[tool, named]} {tool} ({given})")


def _reads(uses: Sequence[ToolUse], frequent: Counter[str]) -> Iterator[LedgerLine]:
    changed = {path for use in uses if use.kind == "change" for path in paths_changed(use)}
    seen: dict[str, ToolUse] = {}
    for use in uses:
        if use.kind == "read" and use.answered and not use.failed and use.target:
            seen[use.target] = use
    newest = sorted(seen, key=lambda path: (path in changed, -seen[path].sequence))
    for path in newest[:_FILES]:
        use = seen[path]
        extent = f" {use.lines}" if use.lines else ""
        names = _names(use.result, frequent, least=3) if path not in changed else ()
        yield LedgerLine(5, use.sequence, f"read {_cut(path)}{extent} #{use.sequence}", names)
    if len(newest) > _FILES:
        yield LedgerLine(5, 10**12, f"read {len(newest) - _FILES} more files")


def _names(text: str, frequent: Counter[str], least: int = 1) -> tuple[str, ...]:
    """The names in a text that matter most: those that stand in most texts of the source, what is
    defined here before what is only used."""
    defined = dict.fromkeys(_DEFINED.findall(text[:_MAX_TEXT]))
    used = dict.fromkeys(_SHAPED.findall(text[:_MAX_TEXT]))
    names = {name: 2 * frequent[name] for name in defined}
    for name in used:
        names.setdefault(name, frequent[name])
    # A plain word in small letters is hardly looked for by name.
    told = [
        name
        for name in names
        if frequent[name] >= least and not (name.isalpha() and name.islower())
    ]
    return tuple(sorted(told, key=lambda name: -names[name])[:_NAMES_EACH])


def _frequencies(uses: Sequence[ToolUse]) -> Counter[str]:
    """In how many of the texts read and written a name stands."""
    found: Counter[str] = Counter()
    for use in uses:
        if use.kind in ("read", "change", "command"):
            text = (use.written or use.result)[:_MAX_TEXT]
            found.update(dict.fromkeys([*_DEFINED.findall(text), *_SHAPED.findall(text)]).keys())
    return found


def _cut(text: str) -> str:
    text = " ".join(text[: 4 * _CHARS].split())
    return text if len(text) <= _CHARS else text[: _CHARS - 1] + "…"
