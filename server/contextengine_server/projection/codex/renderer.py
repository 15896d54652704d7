"""A context for Codex: what goes into developer instructions, into the turn, into the thread; and
what to do with the thread."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from ..fragments import JsonObject
from ..model import ChatRole, Item, Loss, ProjectionImpossible, Text, text_of
from ..projection import Stats
from ..task import Payload, Task
from ..text import lone_surrogate, units, utf8
from ..thread import Action, Binding, Mode
from . import jsonl, openclaw
from .coverage import has_gap, held_after, held_before, sequences, unseen
from .decision import ThreadDecision, bound, decide, developer_digest, mode_of, policy_of
from .injection import developer_item, items_of, size_of
from .limits import RETAINED_BYTES, output_bytes, part_chars
from .records import recorded
from .room import developer_fits, joined, record_room, too_large, total_chars, turn_fits
from .truncation import Cut, Fitted, cut_of, fit
from .turn_input import attachments, text_chars, turn_input

RENDERERS = ("jsonl", "openclaw")


class Projected(msgspec.Struct, frozen=True, kw_only=True):
    """A context for Codex."""

    instructions: str
    prompt: str
    turn_input: list[JsonObject]
    """The `input` of turn/start: the prompt's text, and the pictures of this turn."""
    items: list[JsonObject]
    """What to inject before the turn."""
    context_range: tuple[int, int] | None
    """Where the context stands in `prompt`, in UTF-16 units."""
    action: Action
    reason: str
    binding: Binding
    losses: list[Loss]
    warnings: list[str]
    stats: Stats


def render(task: Task) -> Projected:
    """Renders a context whose prompt is not among its items. Raises ProjectionImpossible where
    what may not be cut exceeds its limit; then nothing should be sent."""
    _sendable(task.addition, "addition")
    _sendable(task.base, "base")
    _sendable(task.preamble, "preamble")
    _sendable(text_of(tuple(task.prompt)), "prompt")
    return _openclaw(task) if task.renderer == "openclaw" else _jsonl(task)


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
    shown = task.items if decision.project else ()
    context = openclaw.render(shown, rendering, limit)
    losses += context.losses
    prompt = text_of(tuple(task.prompt))
    inbound = openclaw.neutral(task.preamble.strip())
    framed = openclaw.frame(task.product, context.text, prompt, inbound)
    attached = attachments(task, losses, warnings)
    fitted = openclaw.fit(framed, task.turn_chars - text_chars(attached))
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
        omitted=context.omitted,
        redactions=context.redactions,
    )
    _report_secrets(stats.redactions, losses)
    holds = sequences(task.items) if decision.project else held_before(task, task.items)
    return _answer(
        task,
        decision,
        mode,
        policy,
        instructions,
        fitted.text,
        [],
        attached,
        fitted.context,
        holds,
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
    decision = decide(task, mode, policy, has_gap(task, items))
    instructions = joined(task.base, *leading, task.addition)
    total = total_chars(task)
    # The session's own leading instructions are part of what was assembled, and of its budget.
    developer_fits(task, total)
    shown = items if decision.project else unseen(task, items)
    prompt = text_of(tuple(task.prompt))
    payload = task.payload or Payload.PRESERVE
    made_of = recorded(shown, payload, task.redact)
    lossy = [(item, one) for item, one in zip(shown, made_of, strict=True) if one.lost]
    if lossy:
        places = {id(item): at for at, item in enumerate(task.items)}
        losses += [Loss(places[id(item)], *lost) for item, one in lossy for lost in one.lost]
    now = (
        recorded([Item(ChatRole.USER, (Text(task.preamble),))], payload, str)
        if task.preamble
        else []
    )
    now_lines = [text for one in now for text in one.lines]
    attached = attachments(task, losses, warnings)
    beside = text_chars(attached)
    around = jsonl.frame_chars(prompt, now_lines) + beside
    room = record_room(task, total, len(instructions), len(prompt), around)
    earlier = _earlier_cut(task, decision, mode, policy)
    fitted = fit(shown, made_of, room.least, earlier)
    if fitted.records and not fitted.fits:
        raise too_large(task, total, room, fitted.chars)
    text_lines = [] if task.inject else fitted.lines
    framed = jsonl.frame(text_lines, prompt, now_lines)
    turn_fits(task, len(framed.text) + beside)
    _report(fitted, losses)
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
    _report_secrets(stats.redactions, losses)
    where = None
    if text_lines:
        begin = units(framed.text[: framed.start])
        where = (begin, begin + units(framed.text[framed.start : framed.end]))
    holds = held_after(task, items, decision, fitted)
    cut = fitted.cut if decision.project else earlier
    return _answer(
        task,
        decision,
        mode,
        policy,
        instructions,
        framed.text,
        made,
        attached,
        where,
        holds,
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
    made: list[JsonObject],
    attached: Sequence[JsonObject],
    where: tuple[int, int] | None,
    holds: tuple[int, int],
    cut: Cut,
    losses: list[Loss],
    warnings: list[str],
    stats: Stats,
) -> Projected:
    stats.prompt_chars, stats.prompt_units = len(prompt), units(prompt)
    return Projected(
        instructions=instructions,
        prompt=prompt,
        turn_input=turn_input(prompt, attached),
        items=made,
        context_range=where,
        action=decision.action,
        reason=decision.reason,
        binding=bound(task, decision, mode, policy, instructions, holds, cut.facts),
        losses=losses,
        warnings=warnings,
        stats=stats,
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
    task: Task, decision: ThreadDecision, made: list[JsonObject], changed: bool
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


def _report(fitted: Fitted, losses: list[Loss]) -> None:
    if fitted.omitted:
        losses.append(
            Loss(-1, f"{fitted.omitted} messages left out; `omitted` records name them", "budget")
        )
    if fitted.stubbed:
        losses.append(Loss(-1, f"{fitted.stubbed} payloads shown as stubs", "budget"))


def _report_secrets(redactions: int, losses: list[Loss]) -> None:
    if redactions:
        losses.append(Loss(-1, f"secrets are taken out of {redactions} payloads", "secrets"))


def _sendable(text: str, name: str) -> None:
    if (at := lone_surrogate(text)) >= 0:
        raise ProjectionImpossible(
            name, f"holds a lone surrogate at character {at}: Codex answers nothing to it"
        )
