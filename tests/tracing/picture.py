"""A picture of a turn's trace: a row for each span, its time as a bar; below it, the compaction
that it caused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from tests.tracing.checking import Turn
from tests.tracing.jaeger import Span

WIDTH, NAMES, ROW, TOP = 980, 400, 22, 34
"""Pixels: of the picture, of its column of names, of a row, and above the rows of a trace."""
MARGIN, INDENT, TIME_ROOM = 12, 14, 80
COLOURS = {"client": "#7c5cbf", "server": "#1f6f8b", "internal": "#3d9970"}
AGENT_COLOUR = "#b5651d"

STYLE = """\
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #24292f }
.title { font-weight: bold } .faint { fill: #6e7781; font-weight: normal } .line { stroke: #d0d7de }
.page { fill: #ffffff } .link { stroke: #cf222e; fill: none; stroke-dasharray: 4 3 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .faint { fill: #8d96a0 } .line { stroke: #30363d } .page { fill: #0d1117 }
}"""


def drawn(turn: Turn) -> str:
    """The picture, as SVG."""
    job = max(turn.compactions, key=len)
    parts: list[str] = []
    cause, bottom = _trace(parts, turn.spans, 0, f"one turn of {turn.agent}", mark=_linked(job))
    work, height = _trace(parts, job, bottom + 10, "the compaction that it caused, linked to it")
    parts.append(f'<path class="link" d="M {MARGIN + 2 * INDENT - 4} {cause} H 5 V {work} h 5"/>')
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height + MARGIN}"'
        f' viewBox="0 0 {WIDTH} {height + MARGIN}" role="img">'
    )
    title = f"<title>A turn of {escape(turn.agent)} as Jaeger shows it</title>"
    page = f'<rect class="page" width="{WIDTH}" height="{height + MARGIN}"/>'
    return "\n".join([head, title, f"<style>\n{STYLE}\n</style>", page, *parts, "</svg>", ""])


def _linked(job: Sequence[Span]) -> str:
    """The span that a compaction is linked to."""
    return next(span_id for span in job for _, span_id in span.links)


def _trace(
    parts: list[str], spans: Sequence[Span], top: int, title: str, mark: str = ""
) -> tuple[int, int]:
    """Draws a trace from `top` on. Answers where the row of the marked span is, by default the
    first one's, and the bottom."""
    began, ended = min(span.start for span in spans), max(span.end for span in spans)
    parts.append(
        f'<text class="title" x="{MARGIN}" y="{top + 20}">{escape(title)}<tspan class="faint"'
        f' dx="12">trace {spans[0].trace_id}, {_ms(ended - began)}</tspan></text>'
    )
    y, marked = top + TOP, top + TOP + ROW // 2
    room = WIDTH - NAMES - MARGIN - TIME_ROOM
    for depth, span in _rows(spans):
        if span.span_id == mark:
            marked = y + ROW // 2
        x = NAMES + MARGIN + (span.start - began) * room / (ended - began)
        width = max(2.0, (span.end - span.start) * room / (ended - began))
        colour = (
            COLOURS[span.kind]
            if span.service == "contextengine" or span.kind == "client"
            else AGENT_COLOUR
        )
        parts += [
            f'<line class="line" x1="0" x2="{WIDTH}" y1="{y}" y2="{y}"/>',
            (
                f'<text x="{MARGIN + depth * INDENT}" y="{y + 15}">{escape(_short(span))}'
                f'<tspan class="faint" dx="12">{escape(_kind(span))}</tspan></text>'
            ),
            (
                f'<rect x="{x:.1f}" y="{y + 5}" width="{width:.1f}" height="{ROW - 10}" rx="2"'
                f' fill="{colour}"/>'
            ),
            (
                f'<text class="faint" x="{x + width + 6:.1f}"'
                f' y="{y + 15}">{_ms(span.end - span.start)}</text>'
            ),
        ]
        y += ROW
    return marked, y


def _rows(spans: Sequence[Span]) -> Iterator[tuple[int, Span]]:
    """Each span with its depth, children below their parent, by their beginning."""
    known = {span.span_id for span in spans}

    def below(parent: str, depth: int) -> Iterator[tuple[int, Span]]:
        children = [s for s in spans if (s.parent_id if s.parent_id in known else "") == parent]
        for child in sorted(children, key=lambda span: (span.start, -span.end)):
            yield depth, child
            yield from below(child.span_id, depth + 1)

    return below("", 0)


def _short(span: Span) -> str:
    return span.name.removeprefix("contextengine.v1.")


def _kind(span: Span) -> str:
    return f"{span.service}, {span.kind}" if span.kind != "internal" or not span.parent_id else ""


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.3g} ms" if nanoseconds < 1e9 else f"{nanoseconds / 1e9:.3g} s"
