"""What the demo asks of a turn, held to what Jaeger answered of one; and the picture of it in the
docs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.tracing.checking import Missing, turns_of
from tests.tracing.jaeger import ROOT, Span, spans_of
from tests.tracing.picture import drawn

ANSWER = json.loads((ROOT / "tests" / "tracing" / "turn.json").read_text(encoding="utf-8"))
SPANS = list(spans_of(ANSWER))
AGENT = "agent-go"


def without(*names: str, below: str = "") -> list[Span]:
    """The spans but for those of these names, below one of this name where one is given."""
    names_of = {span.span_id: span.name for span in SPANS}
    return [
        span
        for span in SPANS
        if not (span.name in names and names_of.get(span.parent_id, "").endswith(below))
    ]


def test_a_whole_turn_is_one_trace() -> None:
    (turn,) = turns_of(AGENT, 1, [*SPANS, *SPANS])
    assert {span.service for span in turn.spans} == {AGENT, "contextengine"}
    assert len(turn.spans) + sum(map(len, turn.compactions)) == len(SPANS)


def unlinked() -> list[Span]:
    return [replace(span, links=()) for span in SPANS]


def elsewhere() -> list[Span]:
    """The server does not go on with the caller's trace."""
    return [
        (
            replace(span, trace_id="f" * 32, parent_id="")
            if (span.kind, span.name[-8:]) == ("server", "Assemble")
            else span
        )
        for span in SPANS
    ]


BROKEN = {
    "no turn": (
        without("invoke_agent example"),
        "0 traces begin with 'invoke_agent example', not 1",
    ),
    "no commit": (
        without("commit", below="AfterTurn"),
        "AfterTurn has no child 'commit', only ['load']",
    ),
    "no laws": (without("laws"), "Assemble has no child 'laws'"),
    "no link": (unlinked(), "no background compaction is linked to it"),
    "no model": (without("chat made-up-small"), "what it caused is not summarized by a model"),
    "another trace": (elsewhere(), "the parent of contextengine's load is not in the trace"),
}


@pytest.mark.parametrize(("spans", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_what_is_missing_is_named(spans: list[Span], message: str) -> None:
    with pytest.raises(Missing) as missing:
        turns_of(AGENT, 1, spans)
    assert message in str(missing.value)


def test_the_picture_in_the_docs_is_drawn_from_the_answer() -> None:
    (turn,) = turns_of(AGENT, 1, SPANS)
    kept = (ROOT / "docs" / "trace.svg").read_text(encoding="utf-8")
    assert kept == drawn(turn), (
        "copy build/traces/agent-go-2.json to tests/tracing/turn.json, and its .svg to"
        " docs/trace.svg"
    )
