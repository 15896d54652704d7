"""What commands print: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from rich.console import Console

Advance = Callable[[str, int], None]
"""Told by long work: a session, and messages of it that were done."""

PIPED_WIDTH = 240
"""Columns where the output goes to a file or a pipe: wide enough that no cell of ours is folded."""

# Control characters would let a message's text drive the terminal; direction marks would let it
# rearrange a line.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


class CommandFailed(Exception):
    """A command cannot go on: what is wrong and what to do, for people, and the exit status. No
    text: nothing is said."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


def complain(text: str) -> None:
    """Says on standard error what is wrong."""
    print(f"error: {printable(text)}", file=sys.stderr)


def note(text: str) -> None:
    """Says something on standard error that is no result."""
    print(printable(text), file=sys.stderr)


def printable(text: str) -> str:
    """Text of others, safe for a terminal: control characters are shown as escapes, line ends and
    tabs stay."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def one_line(text: str, limit: int) -> str:
    """The beginning of a text as one line of at most `limit` characters."""
    flat = " ".join(printable(text[: limit * 4]).split())
    return flat if len(flat) <= limit and len(text) <= limit * 4 else flat[: limit - 1] + "…"


def console(*, stderr: bool = False) -> Console:
    """Where tables go."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else max(PIPED_WIDTH, shutil.get_terminal_size().columns)
    return Console(stderr=stderr, width=width, markup=False, highlight=False, emoji=False)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str = "",
    stderr: bool = False,
) -> None:
    """A table. Columns whose name begins with `#` are numbers and stand to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for column in columns:
        table.add_column(column.lstrip("#"), justify="right" if column.startswith("#") else "left")
    for row in rows:
        table.add_row(*(Text(printable(shown(cell)), style=_style(cell)) for cell in row))
    console(stderr=stderr).print(table)


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Names and values, a line each; empty values are left out."""
    rows = [(name, shown(value)) for name, value in facts if value not in ("", None)]
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        print(f"{name:<{width}}  {printable(value)}")


def print_json(value: object) -> None:
    """A value as JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def plain(message: Message) -> dict[str, Any]:
    """A message of the API as JSON values, by the names of the protos."""
    from google.protobuf.json_format import MessageToDict

    found: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return found


def shown(value: object) -> str:
    """A value as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def size(count: int) -> str:
    """Bytes as people read them."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"


_STYLES = {"ok": "green", "warning": "yellow", "error": "bold red"}


def _style(cell: object) -> str:
    return _STYLES.get(cell, "") if isinstance(cell, str) else ""


@contextmanager
def progress(work: str) -> Iterator[Advance]:
    """A bar on the terminal while something long goes on; nothing where nobody looks on. The
    function yielded counts messages of the session that it names."""
    if not sys.stderr.isatty():
        yield lambda session, messages: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} messages"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(work, total=None)
        yield lambda session, messages: bar.update(task, description=session, advance=messages)
