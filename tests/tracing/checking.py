"""What a turn's trace must hold, from the agent's span to the store, and the background work that
it caused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.tracing.jaeger import Span

SERVICE = "contextengine"
TURN = "invoke_agent example"
RPC = "contextengine.v1.ContextEngine/"
STEP = ("load", "commit", "plan", "laws", "reply")
"""What an Assemble does that brings new messages."""
CALLS = {"Assemble": STEP, "AfterTurn": ("load", "commit")}


class Missing(Exception):
    """A trace is not what it must be, and how."""


@dataclass(frozen=True)
class Turn:
    """A turn of an agent, and the compactions linked to it, each a trace of its own."""

    agent: str
    spans: tuple[Span, ...]
    compactions: tuple[tuple[Span, ...], ...]

    @property
    def trace_id(self) -> str:
        return self.spans[0].trace_id

    @property
    def trace_ids(self) -> list[str]:
        """Of the turn and of what it caused."""
        return [self.trace_id, *(job[0].trace_id for job in self.compactions)]


def turns_of(agent: str, expected: int, spans: Iterable[Span]) -> list[Turn]:
    """The turns of an agent, by its service name, in order. Raises Missing where one is not
    whole."""
    traces: dict[str, list[Span]] = {}
    for span in sorted(set_of(spans), key=lambda span: span.start):
        traces.setdefault(span.trace_id, []).append(span)
    roots = [
        span
        for trace in traces.values()
        for span in trace
        if (span.service, span.name) == (agent, TURN)
    ]
    if len(roots) != expected:
        raise Missing(f"{agent}: {len(roots)} traces begin with {TURN!r}, not {expected}")
    turns = []
    for root in roots:
        trace = traces[root.trace_id]
        _check_turn(agent, root, trace)
        linked = tuple(tuple(other) for other in traces.values() if _causes(trace, other))
        _check_compactions(root, linked)
        turns.append(Turn(agent, tuple(trace), linked))
    return turns


def set_of(spans: Iterable[Span]) -> list[Span]:
    """Each span once: a trace of two services is answered for both."""
    return list({(span.trace_id, span.span_id): span for span in spans}.values())


def _check_turn(agent: str, root: Span, trace: list[Span]) -> None:
    known = {span.span_id for span in trace}
    for span in trace:
        if span is not root and span.parent_id not in known:
            raise Missing(
                f"{_named(root)}: the parent of {span.service}'s {span.name} is not in the trace"
            )
    calls = [span for span in trace if (span.service, span.kind) == (agent, "client")]
    if {call.name for call in calls} != {RPC + name for name in CALLS}:
        raise Missing(
            f"{_named(root)}: its client spans are {sorted({call.name for call in calls})}"
        )
    for call in calls:
        _check_call(root, call, trace)


def _check_call(root: Span, call: Span, trace: list[Span]) -> None:
    served = [span for span in trace if span.parent_id == call.span_id and span.service == SERVICE]
    if [(span.name, span.kind) for span in served] != [(call.name, "server")]:
        raise Missing(
            f"{_named(root)}: below the client's {call.name} there is not one server span of its"
            " name"
        )
    if call.parent_id != root.span_id:
        raise Missing(f"{_named(root)}: the client's {call.name} is not a child of the turn")
    below = {span.name for span in trace if span.parent_id == served[0].span_id}
    for name in CALLS[call.name.removeprefix(RPC)]:
        if name not in below:
            raise Missing(
                f"{_named(root)}: the server's {call.name} has no child {name!r}, only"
                f" {sorted(below)}"
            )


def _check_compactions(root: Span, linked: Sequence[Sequence[Span]]) -> None:
    if not linked:
        raise Missing(f"{_named(root)}: no background compaction is linked to it")
    found = [{f"{span.kind} {span.name.partition(' ')[0]}" for span in job} for job in linked]
    wanted = {"internal compact", "internal summarize", "client chat", "internal commit"}
    if not any(names >= wanted for names in found):
        told = " and ".join(", ".join(sorted(names)) for names in found)
        raise Missing(
            f"{_named(root)}: what it caused is not summarized by a model and committed, only"
            f" {told}"
        )


def _causes(turn: list[Span], other: list[Span]) -> bool:
    """True where a trace is background work that this turn caused."""
    served = {(span.trace_id, span.span_id) for span in turn if span.kind == "server"}
    roots = [
        span
        for span in other
        if not span.parent_id and (span.service, span.name) == (SERVICE, "compact")
    ]
    return any(served.intersection(root.links) for root in roots)


def _named(root: Span) -> str:
    return f"{root.service}, trace {root.trace_id}"
