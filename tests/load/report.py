"""What a run found: a table, JSON, and a page of HTML."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from tests.bench.report import number

from .driving import Row
from .ghz import Outcome

LIMIT = (
    "ghz decodes each reply by reflection and itself tops out at a few hundred replies of 100 KB a"
    " second and core: `make bench`, and not this report, holds the server's limit."
)

GROWTH = 1.25
"""A step, which doubles the load, is worth it where throughput is at least this many times the best
before it."""

KNEE = (
    "The knee is the last step whose throughput is at least a quarter above the best of the steps"
    " before it."
)


@dataclass(frozen=True, slots=True)
class Ramp:
    """The rows of a ramp, each with a load twice the one before."""

    name: str
    rows: Sequence[Row]

    @property
    def knee(self) -> Row:
        """The last step that was worth its load."""
        return self.rows[knee([row.ours.rate for row in self.rows])]

    @property
    def told(self) -> str:
        """The knee, for people."""
        last = self.knee is self.rows[-1]
        return (
            f"{self.name}: knee at {self.knee.load}, {self.knee.ours.rate:,.0f}/s, "
            f"p99 {_ms(self.knee.ours, 'p99')} ms"
            + (": the ramp's end, it may lie beyond" if last else "")
        )


def knee(rates: Sequence[float]) -> int:
    """The index of the last rate that is at least `GROWTH` times the best before it."""
    worth = [index for index in range(1, len(rates)) if rates[index] >= GROWTH * max(rates[:index])]
    return worth[-1] if worth else 0


_HEADERS = (
    "profile", "load",
    "/s", "p50 ms", "p95 ms", "p99 ms", "errors",
    "floor /s", "p50 ms", "p95 ms", "p99 ms", "errors",
    "ours / floor",
)  # fmt: skip


def _cells(row: Row) -> tuple[str, ...]:
    share = row.share
    return (
        row.name,
        row.load,
        *_side(row.ours),
        *_side(row.floor),
        "" if share is None else number(share),
    )


def _side(one: Outcome) -> tuple[str, ...]:
    return number(one.rate), _ms(one, "p50"), _ms(one, "p95"), _ms(one, "p99"), str(one.errors)


def _ms(one: Outcome, which: str) -> str:
    return number(getattr(one, which) * 1e3) if one.calls else "–"


def show(rows: Sequence[Row], ramps: Sequence[Ramp], console: Console) -> None:
    """Prints the tables."""
    for title, part in [("", rows), *((ramp.told, ramp.rows) for ramp in ramps)]:
        if part:
            table = Table(*_HEADERS[:2], box=box.SIMPLE, title=title, title_justify="left")
            for header in _HEADERS[2:]:
                table.add_column(header, justify="right")
            for row in part:
                table.add_row(*_cells(row))
            console.print(table)
    if ramps:
        console.print(KNEE)
    console.print(LIMIT)


def write_json(
    rows: Sequence[Row],
    ramps: Sequence[Ramp],
    machine: dict[str, str],
    failures: dict[str, str],
    path: Path,
) -> None:
    """Writes everything, for programs. Latencies are in seconds."""
    report = {
        "machine": machine,
        "note": LIMIT,
        "knee": KNEE,
        "profiles": [asdict(row) for row in rows],
        "ramps": {
            ramp.name: {"knee": ramp.knee.load, "steps": [asdict(row) for row in ramp.rows]}
            for ramp in ramps
        },
        "failures": failures,
    }
    path.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem;
color: #1c2330 }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .55rem; border-bottom: 1px solid #dde2ea; text-align: right; white-space:
nowrap }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left } td:nth-child(8), th:nth-child(8) {
border-left: 1px solid #aab }
.bad { background: #ffd9d6 } .knee { background: #fff3c4 } .note { color: #556 } .scroll {
overflow-x: auto }
""".strip()


def write_html(
    rows: Sequence[Row],
    ramps: Sequence[Ramp],
    machine: dict[str, str],
    failures: dict[str, str],
    path: Path,
) -> None:
    """Writes a page that needs nothing else."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>contextengine under load</title>",
        (
            f"<style>{_STYLE}</style><h1>contextengine under load</h1><p"
            f" class=note>{escape(LIMIT)}</p>"
        ),
        *(
            f"<p class=bad>{escape(name)} failed: {escape(told)}</p>"
            for name, told in failures.items()
        ),
        _table(rows),
    ]
    for ramp in ramps:
        parts.append(
            f"<h2>{escape(ramp.told)}</h2><p"
            f" class=note>{escape(KNEE)}</p>{_table(ramp.rows, ramp.knee)}"
        )
    facts = "".join(f"<tr><td>{escape(name)}<td>{escape(value)}" for name, value in machine.items())
    parts.append(f"<h2>Machine</h2><table>{facts}</table></html>")
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")


def _table(rows: Sequence[Row], marked: Row | None = None) -> str:
    head = "".join(f"<th>{escape(header)}" for header in _HEADERS)
    body = "".join(
        f"<tr{_kind(row, marked)} title='{escape(row.about, quote=True)}'>"
        + "".join(f"<td>{escape(cell)}" for cell in _cells(row))
        for row in rows
    )
    return f"<div class=scroll><table><tr>{head}{body}</table></div>"


def _kind(row: Row, marked: Row | None) -> str:
    if row.ours.errors or row.floor.errors:
        return " class=bad"
    return " class=knee" if row is marked else ""
