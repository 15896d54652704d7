"""A context for Codex: what goes into developer instructions, into the turn, into the thread; and
what to do with the thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ..model import ChatRole, File, Image, Item, Loss, ProjectionImpossible, Text, text_of
from ..placeholders import placeholder
from ..text import js_trim, lone_surrogate, units, utf8
from . import jsonl, openclaw
from .decision import ThreadDecision, bound, decide, developer_digest, mode_of, policy_of
from .injection import developer_item, items_of, size_of
from .limits import (
    RETAINED_BYTES,
    TURN_CHARS,
    output_bytes,
    part_chars,
)
from .pictures import input_of
from .records import recorded
from .room import developer_fits, joined, record_chars, too_large, total_chars
from .task import Action, Binding, Mode, Payload, Projected, Stats, Task
from .truncation import Cut, Fitted, cut_of, fit

RENDERERS = ("jsonl", "openclaw")


def project(task: Task) -> Projected:
    """Projects a context. Raises ProjectionImpossible where what may not be cut exceeds its limit;
    then nothing should be sent."""
    for name in ("addition", "base", "preamble"):
        _sendable(getattr(task, name), name)
    _sendable(text_of(tuple(task.prompt)), "prompt")
    return _openclaw(task) if task.renderer == "openclaw" else _jsonl(task)


def split_prompt(
    items: Sequence[Item], prompt: Sequence[Any], current_id: str = ""
) -> tuple[list[Item], tuple[Any, ...], int]:
    """The context, this turn's prompt, and its sequence where it is stored (0: it is not).

    A prompt that is given is left out of the context where the newest message is the user's and
    says the same, surrounding white space aside. Else the message named, wherever it stands, or the
    newest where it is the user's, is the prompt.
    """
    kept = list(items)
    newest = kept[-1] if kept else None
    users = newest is not None and newest.role is ChatRole.USER and newest.summary is None
    if prompt:
        said = js_trim(text_of(tuple(prompt)))
        # Pictures without a word are the same only where they are the same pictures.
        repeated = users and newest is not None and (said or newest.parts == tuple(prompt))
        if repeated and newest is not None and js_trim(text_of(newest.parts)) == said:
            kept.pop()
            return kept, tuple(prompt), newest.sequence
        return kept, tuple(prompt), 0
    for at, item in enumerate(kept):
        if current_id and item.id == current_id:
            return kept[:at] + kept[at + 1 :], item.parts, item.sequence
    if users and newest is not None:
        return kept[:-1], newest.parts, newest.sequence
    return kept, (), 0


def _openclaw(task: Task) -> Projected:
    warnings: list[str] = []
    losses: list[Loss] = []
    mode = mode_of(task, warnings)
    limit = total_chars(task)
    policy = policy_of(task, mode, limit)
    decision = decide(task, mode, policy, False)
    instructions = joined(task.base, task.addition)
    payload = task.payload or (Payload.PRESERVE if mode is Mode.THREAD_BOOTSTRAP else None)
    rendering = openclaw.OpenclawOptions(payload, part_chars(limit), task.redact)
    context = openclaw.render(task.items, rendering, limit) if decision.project else ""
    prompt = text_of(tuple(task.prompt))
    framed = openclaw.frame(task.product, context, prompt, openclaw.neutral(task.preamble.strip()))
    fitted = openclaw.fit(framed, task.turn_chars)
    if task.inject:
        warnings.append(
            "inject_items: openclaw makes none, the context stands in the prompt; jsonl makes them"
        )
    if fitted is not framed:
        losses.append(Loss(-1, "the turn's text was cut to what turn/start takes", "X1"))
    stats = Stats(
        records=len(task.items),
        context_chars=fitted.context[1] - fitted.context[0] if fitted.context else 0,
        instructions_chars=len(instructions),
    )
    seen = _seen(task.items) if decision.project else _kept(task)
    return _answer(
        task,
        decision,
        mode,
        policy,
        instructions,
        fitted.text,
        [],
        fitted.context,
        seen,
        Cut(),
        losses,
        warnings,
        stats,
    )


def _jsonl(task: Task) -> Projected:
    warnings: list[str] = []
    losses: list[Loss] = []
    mode = mode_of(task, warnings)
    leading, items = _leading(task.items)
    policy = policy_of(task, mode, 0)
    decision = decide(task, mode, policy, _gap(task, items))
    instructions = joined(task.base, *leading, task.addition)
    total = total_chars(task)
    # The session's own leading instructions are part of what was assembled, and of its budget.
    developer_fits(task, total)
    shown = items if decision.project else _unseen(task, items)
    prompt = text_of(tuple(task.prompt))
    payload = task.payload or Payload.PRESERVE
    made_of = recorded(shown, payload, task.redact)
    lossy = [(item, one) for item, one in zip(shown, made_of, strict=True) if one.lost]
    if lossy:
        places = {id(item): at for at, item in enumerate(task.items)}
        losses += [Loss(places[id(item)], *lost) for item, one in lossy for lost in one.lost]
    limit = record_chars(task, total, len(instructions), len(prompt))
    earlier = _earlier_cut(task, decision, mode, policy)
    fitted = fit(shown, made_of, limit, earlier)
    if fitted.records and not fitted.fits:
        raise too_large(task, total, limit, fitted.chars)
    _report(fitted, losses)
    now = (
        recorded([Item(ChatRole.USER, (Text(task.preamble),))], payload, str)
        if task.preamble
        else []
    )
    now_lines = [text for one in now for text in one.lines]
    text_lines = [] if task.inject else fitted.lines
    framed = jsonl.frame(text_lines, prompt, now_lines)
    made = items_of(fitted.records, output_bytes(task.model), losses) if task.inject else []
    changed = _developer_changed(task, decision, instructions)
    if changed:
        made.insert(
            0, developer_item(instructions or "The earlier developer instructions no longer hold.")
        )
    decision = _settled(task, decision, made, changed)
    sent = utf8(framed.text) if not task.inject else size_of(made)
    if text_lines and sent > RETAINED_BYTES:
        warnings.append("exceeds_native_retention: Codex's next compaction cuts this text")
    if mode is Mode.PER_TURN and task.binding is not None and task.binding.thread_id:
        warnings.append(
            "history_grows: each turn adds the whole context to the thread; use an ephemeral thread"
        )
    stats = Stats(
        records=len(fitted.records),
        inlined=len(fitted.records) - fitted.stubbed - (fitted.omitted > 0),
        stubbed=fitted.stubbed,
        omitted=fitted.omitted,
        context_chars=fitted.chars,
        instructions_chars=len(instructions),
        redactions=sum([one.redactions for one in made_of]),
    )
    where = None
    if text_lines:
        begin = units(framed.text[: framed.start])
        where = (begin, begin + units(framed.text[framed.start : framed.end]))
    seen = _covered(task, items, decision, fitted)
    cut = fitted.cut if decision.project else earlier
    return _answer(
        task,
        decision,
        mode,
        policy,
        instructions,
        framed.text,
        made,
        where,
        seen,
        cut,
        losses,
        warnings,
        stats,
    )


def _answer(
    task: Task,
    decision: ThreadDecision,
    mode: Mode,
    policy: str,
    instructions: str,
    prompt: str,
    made: list[dict[str, Any]],
    where: tuple[int, int] | None,
    seen: tuple[int, int],
    cut: Cut,
    losses: list[Loss],
    warnings: list[str],
    stats: Stats,
) -> Projected:
    stats.prompt_chars, stats.prompt_units = len(prompt), units(prompt)
    return Projected(
        instructions=instructions,
        prompt=prompt,
        turn_input=_turn_input(task, prompt, losses, warnings),
        items=made,
        context_range=where,
        action=decision.action,
        reason=decision.reason,
        binding=bound(task, decision, mode, policy, instructions, seen, cut.facts),
        losses=losses,
        warnings=warnings,
        stats=stats,
        pre_prompt_count=task.pre_prompt_count,
    )


def _earlier_cut(task: Task, decision: ThreadDecision, mode: Mode, policy: str) -> Cut:
    """The cut to go on from: the bound thread's, or where each turn gets the context anew the one
    of the turn before."""
    known = task.binding
    goes_on = decision.action in (Action.RESUME, Action.INJECT) or mode is Mode.PER_TURN
    return cut_of(known.cut) if known is not None and goes_on and known.policy == policy else Cut()


def _leading(items: Sequence[Item]) -> tuple[list[str], list[Item]]:
    """The harness's own instructions at the beginning of a session, and the rest, without what it
    keeps out of contexts. Later ones are data like all else."""
    count = 0
    while count < len(items) and items[count].role in (ChatRole.SYSTEM, ChatRole.DEVELOPER):
        count += 1
    return [text_of(item.parts) for item in items[:count]], [
        item for item in items[count:] if not item.excluded
    ]


def _seen(items: Sequence[Item]) -> tuple[int, int]:
    """The first and last sequence among the items."""
    sequences = [item.sequence for item in items if item.sequence]
    return (min(sequences), max(sequences)) if sequences else (0, 0)


def _kept(task: Task) -> tuple[int, int]:
    known = task.binding or Binding()
    return known.first_sequence, max(
        known.last_sequence, _seen(task.items)[1], task.prompt_sequence
    )


def _covered(
    task: Task, items: Sequence[Item], decision: ThreadDecision, fitted: Fitted
) -> tuple[int, int]:
    """What the thread holds from now on: from the first entry shown to the newest."""
    if not decision.project:
        return _kept(replace(task, items=items))
    first, last = _seen(items)
    return max(first, min(fitted.first or first, last)), max(last, task.prompt_sequence)


def _unseen(task: Task, items: Sequence[Item]) -> list[Item]:
    """What reached the session outside the bound thread: behind its last sequence, and not labelled
    as the thread's own."""
    known = task.binding or Binding()
    return [
        item
        for item in items
        if item.sequence > known.last_sequence
        and item.labels.get("codex.thread") != known.thread_id
    ]


def _gap(task: Task, items: Sequence[Item]) -> bool:
    """True where messages that the thread has not seen are gone from the context, or it saw some
    that are."""
    known = task.binding
    if known is None or not known.last_sequence:
        return False
    newest = max([task.prompt_sequence, *(item.sequence for item in items)])
    firsts = [item.sequence or (item.summary.first if item.summary else 0) for item in items]
    unseen = [first for first in firsts if first > known.last_sequence]
    evicted = bool(unseen) and len(unseen) == len([first for first in firsts if first])
    return 0 < newest < known.last_sequence or (evicted and min(unseen) > known.last_sequence + 1)


def _developer_changed(task: Task, decision: ThreadDecision, instructions: str) -> bool:
    """True where a live thread has other instructions: a resumed one keeps its first until Codex
    compacts."""
    known = task.binding
    live = decision.action in (Action.RESUME, Action.INJECT) and known is not None
    return (
        live
        and known is not None
        and bool(known.policy)
        and known.developer != developer_digest(instructions)
    )


def _settled(
    task: Task, decision: ThreadDecision, made: list[dict[str, Any]], changed: bool
) -> ThreadDecision:
    """The action once it is known what there is to send."""
    if decision.action in (Action.RESUME, Action.INJECT):
        reason = (
            "developer-instructions-changed"
            if changed and not decision.project
            else decision.reason
        )
        if made:
            return replace(decision, action=Action.INJECT, reason=reason)
        if decision.action is Action.INJECT:
            return replace(decision, action=Action.RESUME)
        if not task.prompt and not decision.project:
            return replace(decision, action=Action.NOTHING)
    return decision


def _turn_input(
    task: Task, prompt: str, losses: list[Loss], warnings: list[str]
) -> list[dict[str, Any]]:
    """The turn's `input`: its text, and the pictures of the prompt. What cannot be shown is named
    by a line in its place."""
    made: list[dict[str, Any]] = [_input_text(prompt)] if prompt else []
    pictures = 0
    for part in task.prompt:
        if isinstance(part, Text):
            continue
        wrong = "a turn takes texts and pictures"
        if isinstance(part, Image):
            shown, wrong = input_of(part)
            if shown is not None:
                made.append(shown)
                continue
            pictures += 1
        rule = "X11" if isinstance(part, Image) else "X7"
        losses.append(Loss(-1, f"the prompt's {part.kind}: {wrong}", rule))
        if isinstance(part, Image | File):
            made.append(_input_text(placeholder(part)))
    if pictures:
        warnings.append(
            f"pictures_left_out: {pictures} of the prompt's pictures are not sent; the losses"
            " say why"
        )
    return made


def _input_text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "text_elements": []}


def _report(fitted: Fitted, losses: list[Loss]) -> None:
    if fitted.omitted:
        losses.append(
            Loss(-1, f"{fitted.omitted} messages left out; `omitted` records name them", "budget")
        )
    if fitted.stubbed:
        losses.append(Loss(-1, f"{fitted.stubbed} payloads shown as stubs", "budget"))


def _sendable(text: str, name: str) -> None:
    if (at := lone_surrogate(text)) >= 0:
        raise ProjectionImpossible(
            name, f"holds a lone surrogate at character {at}: Codex answers nothing to it"
        )


__all__ = ["RENDERERS", "TURN_CHARS", "project", "split_prompt"]
