"""Microcompaction: of a long result its head, its tail and how to read it are shown, from its
arrival on.

After Comis's (packages/agent/src/context-engine/microcompaction-guard.ts), which writes a file and
a reference in its place. Here the message is stored whole anyway, so the reference names its
sequence, and is a form like others. Which results have it follows from themselves, the tools that
were called and the options: neither from a budget nor from what came later, so none is ever lifted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from contextengine_server.context.atom import Atom, AtomCall
from contextengine_server.context.message import (
    OFFLOADED_HEAD,
    OFFLOADED_TAIL,
    Answer,
    Answers,
    Gone,
    Replacement,
    Slot,
)
from contextengine_server.context.view import View

from ..contract import SESSION_SEARCH
from .options import PipelineOptions
from .tool_names import is_file_read, is_mcp, is_recall

log = structlog.get_logger("contextengine.pipeline")

HARD_CAP = 100_000
"""A longer result is put away whatever brought it (TOOL_RESULT_HARD_CAP_CHARS of Comis)."""
STEP_CHARS, LEAST_CHARS = 200_000, 500
"""What the results of a step may have together, and what each has at least, as in Comis
(packages/agent/src/safety/turn-result-budget.ts). There it holds for the newest step alone, and its
results are whole again in the next."""
REFERENCE_CHARS = OFFLOADED_HEAD + OFFLOADED_TAIL
"""What a reference is taken for."""
REASON = "long or empty results, in short from their arrival on"

Decided = dict[int, Sequence[Replacement]]
"""What is shown otherwise of results, by the sequence of their message."""


@dataclass(slots=True)
class Arrived:
    """What is shown otherwise of a view's results from their arrival on."""

    forms: dict[int, dict[int, Slot]] = field(default_factory=dict)
    """What to show instead: slots by sequence, by step."""
    parts: Decided = field(default_factory=dict)
    """Which results, and why."""


def arrived(view: View, options: PipelineOptions, later: Arrived | None = None) -> Arrived:
    """What is shown otherwise, as far back as the window holds. While calls of the newest step
    stand open it is as it came (law 2). `later`: the forms of the same view since it went on; only
    what its newest step was then is worked out anew."""
    found = Arrived()
    stays = set(view.intent())
    for step in view.answers:
        if step in stays or not view.holds(step) or view.covering(step) is not None:
            continue
        if later is not None and step < view.steps - 1:
            if step in later.forms:
                found.forms[step] = later.forms[step]
            continue
        atom = view.atom(step)
        if atom.pending:
            continue
        parts, forms = _of_step(atom, options)
        if forms:
            found.forms[step] = forms
            found.parts |= parts
    return found


def _of_step(atom: Atom, options: PipelineOptions) -> tuple[Decided, dict[int, Slot]]:
    """What is shown otherwise of a step, and how."""
    decided, chars = Decided(), 0
    there = [(slot, slot.answers) for slot in atom.slots if slot.answers is not None]
    for slot, answers in there:
        parts, inline = _of_message(slot, answers, atom, options)
        chars += inline
        if parts:
            decided[slot.sequence] = parts
    if chars > STEP_CHARS:
        for sequence, cut in _shares(there, decided).items():
            decided[sequence] = sorted([*decided.get(sequence, ()), *cut], key=_part)
    return decided, {
        slot.sequence: answers.shown(tuple(decided[slot.sequence]))
        for slot, answers in there
        if slot.sequence in decided
    }


def limit_of(tool: str, options: PipelineOptions) -> int:
    """The most characters of a result of this tool that are shown as they are."""
    if is_mcp(tool):
        return options.max_inline_mcp_tool_result_chars
    if is_file_read(tool):
        return options.max_inline_file_read_result_chars
    return options.max_inline_tool_result_chars


def _of_message(
    slot: Slot, answers: Answers, atom: Atom, options: PipelineOptions
) -> tuple[Sequence[Replacement], int]:
    """What is shown otherwise of a message, and the characters that its results have then."""
    key = (
        options.max_inline_tool_result_chars,
        options.max_inline_mcp_tool_result_chars,
        options.max_inline_file_read_result_chars,
    )
    known: tuple[Sequence[Replacement], int] | None = answers.decided.get(key)
    if known is None:
        known = answers.decided[key] = _decide(slot, answers, _tools_of(atom, slot), options)
    return known


def _decide(
    slot: Slot, answers: Answers, tools: Sequence[str], options: PipelineOptions
) -> tuple[list[Replacement], int]:
    silent: list[Replacement] = []
    long: list[Replacement] = []
    inline = 0
    for answer, tool in zip(answers.results, tools, strict=True):
        if answer.silent:
            silent.append(Replacement(answer.part, Gone.SILENT, tool=tool))
        elif _is_long(answer, tool, options):
            long.append(Replacement(answer.part, Gone.OFFLOADED, tool=tool, reader=SESSION_SEARCH))
            if answer.chars > HARD_CAP:
                log.warning(
                    "a result is over the hard cap",
                    sequence=slot.sequence,
                    chars=answer.chars,
                    cap=HARD_CAP,
                )
        else:
            inline += answer.chars
    return sorted([*silent, *long], key=_part), inline + REFERENCE_CHARS * len(long)


def _is_long(answer: Answer, tool: str, options: PipelineOptions) -> bool:
    # Of what the head would hold nothing would be left out: pictures stay in any case.
    if answer.text <= OFFLOADED_HEAD:
        return False
    if answer.chars > HARD_CAP:
        return True
    # To put away again what was asked for would never end.
    again = is_recall(tool) or (answer.recovered and is_file_read(tool))
    return answer.chars > limit_of(tool, options) and not again


def _shares(there: Sequence[tuple[Slot, Answers]], decided: Decided) -> Decided:
    """What is cut of a step whose results are too long together: each to its share."""
    short = {
        (sequence, each.part): each.why for sequence, parts in decided.items() for each in parts
    }
    whole = [
        (slot.sequence, answer)
        for slot, answers in there
        for answer in answers.results
        if (slot.sequence, answer.part) not in short
    ]
    total = sum(answer.chars for _, answer in whole)
    references = sum(why is Gone.OFFLOADED for why in short.values())
    room = max(0, STEP_CHARS - REFERENCE_CHARS * references)
    shares: dict[int, list[Replacement]] = {}
    for sequence, answer in whole:
        share = max(LEAST_CHARS, answer.chars * room // total - (answer.chars - answer.text))
        if answer.text > share:
            cut = Replacement(answer.part, Gone.CUT, chars=share)
            shares.setdefault(sequence, []).append(cut)
    return {**shares}


def _tools_of(atom: Atom, slot: Slot) -> list[str]:
    """The tools that the results of a message answer, in order. Ids may repeat within a step: the
    results for one come in the order of its calls."""
    waiting: dict[str, list[AtomCall]] = {}
    for call in atom.calls:
        waiting.setdefault(call.id, []).append(call)
    tools: list[str] = []
    for entry in atom.entries:
        for _, call_id in entry.traits.results:
            calls = waiting.get(call_id)
            asked = (calls.pop(0) if len(calls) > 1 else calls[0]) if calls else None
            if entry.sequence == slot.sequence:
                tools.append(asked.entry.traits.tools[asked.index] if asked else "")
    return tools


def _part(each: Replacement) -> int:
    return each.part
