"""What becomes of the native thread: whether the context is projected, into which thread, and why
("Modes and reasons" in docs/projection.md)."""

from __future__ import annotations

import json

import msgspec

from ..task import Task
from ..text import canonical, sha256
from ..thread import Action, Binding, Mode, ThreadEvent

SCHEMA = 1
RENDERER = {"jsonl": "jsonl/1", "openclaw": "openclaw/3"}
OVERFLOW_SHARE = 2
"""After an overflow the context gets the budget divided by this: the same again would overflow
again."""


class ThreadDecision(msgspec.Struct, frozen=True):
    """What to do with the thread."""

    action: Action
    reason: str
    project: bool
    """True: the whole context. False: what the thread has not seen."""
    bare: bool = False
    """The prompt alone, and no projection is bound: the next turn projects again."""


def mode_of(task: Task, warnings: list[str]) -> Mode:
    """The mode that holds: a bootstrap needs an epoch that names what it sent, and a host that can
    keep it."""
    if not task.bootstraps:
        if task.mode is Mode.THREAD_BOOTSTRAP:
            warnings.append(
                "thread_bootstrap for a host without thread-bootstrap-projection: projected per"
                " turn"
            )
        return Mode.PER_TURN
    wanted = task.mode or (
        Mode.THREAD_BOOTSTRAP if task.renderer == "jsonl" and task.epoch else Mode.PER_TURN
    )
    if wanted is Mode.THREAD_BOOTSTRAP and not task.epoch.strip():
        warnings.append("thread_bootstrap without an epoch: projected per turn")
        return Mode.PER_TURN
    return wanted


def policy_of(task: Task, mode: Mode, chars: int) -> str:
    """Names what decides how a context is rendered, its content apart. For `openclaw` in the very
    form that the host compares."""
    if task.renderer == "openclaw":
        facts: dict[str, object] = {"schemaVersion": SCHEMA, "engineId": task.engine_id}
        facts |= {"engineVersion": task.engine_version} if task.engine_version else {}
        facts["ownsCompaction"] = task.owns_compaction
        facts |= {"contextTokenBudget": task.budget} if task.budget is not None else {}
        facts["projectionMaxChars"] = chars
        return _compact(facts)
    payload = task.payload.value if task.payload else ""
    return sha256(
        canonical(
            [
                RENDERER[task.renderer],
                mode.value,
                "items" if task.inject else "text",
                task.engine_id,
                task.engine_version,
                payload,
                # The limits as the request names them, not what is worked out from its budget:
                # budgets of one cell share an epoch, and must lead to the same thread.
                task.max_chars,
                task.reserve,
                task.model and task.inject,
            ]
        )
    )


def decide(task: Task, mode: Mode, policy: str, first_unseen_gap: bool) -> ThreadDecision:
    """The first reason that holds. Epochs and fingerprints are compared for equality only; there is
    no order among them."""
    bound = task.binding if task.binding is not None and task.binding.thread_id else None
    reference = task.renderer == "openclaw"
    if ThreadEvent.THREAD_LOST in task.happened:
        return ThreadDecision(Action.START, "thread-lost", True)
    if ThreadEvent.OVERFLOW in task.happened and bound is not None:
        # The reference retries with the bare prompt and loses the context for that turn; ours goes
        # along, smaller.
        return ThreadDecision(
            Action.ROTATE, "context-window-exceeded", not reference, bare=reference
        )
    if mode is Mode.PER_TURN:
        if bound is None:
            return ThreadDecision(Action.START, "per-turn-projection", True)
        back = bound.mode is Mode.THREAD_BOOTSTRAP and bool(bound.epoch)
        return ThreadDecision(Action.ROTATE if back else Action.RESUME, "per-turn-projection", True)
    if bound is None:
        return ThreadDecision(Action.START, "missing-thread-binding", True)
    if not bound.epoch:
        return ThreadDecision(Action.ROTATE, "missing-projection-binding", True)
    if bound.schema != SCHEMA or bound.engine_id != task.engine_id or bound.policy != policy:
        return ThreadDecision(Action.ROTATE, "context-engine-binding-mismatch", True)
    if bound.tools != task.tools:
        return ThreadDecision(Action.ROTATE, "dynamic-tools-mismatch", True)
    same = bound.mode is mode and bound.epoch == task.epoch.strip()
    if not same or bound.fingerprint != task.fingerprint.strip():
        return ThreadDecision(Action.ROTATE, "projection-mismatch", True)
    if ThreadEvent.NATIVE_COMPACTED in task.happened:
        return ThreadDecision(
            Action.ROTATE if reference else Action.INJECT, "native-compaction", True
        )
    if first_unseen_gap and not reference:
        return ThreadDecision(Action.ROTATE, "coverage-gap", True)
    return ThreadDecision(Action.RESUME, "matching-thread-bootstrap-binding", False)


def developer_digest(instructions: str) -> str:
    """Names developer instructions."""
    return sha256(instructions) if instructions else ""


def bound(
    task: Task,
    decision: ThreadDecision,
    mode: Mode,
    policy: str,
    instructions: str,
    seen: tuple[int, int],
    cut: dict[str, int],
) -> Binding:
    """What to keep with the thread from now on. A fresh thread has no id yet: the harness puts it
    in."""
    earlier = task.binding
    keeps = earlier is not None and decision.action in (
        Action.RESUME,
        Action.INJECT,
        Action.NOTHING,
    )
    bootstrap = mode is Mode.THREAD_BOOTSTRAP and not decision.bare
    return Binding(
        thread_id=earlier.thread_id if keeps and earlier is not None else "",
        engine_id=task.engine_id,
        policy=policy,
        epoch=task.epoch.strip() if bootstrap else "",
        fingerprint=task.fingerprint.strip() if bootstrap else "",
        tools=task.tools,
        first_sequence=seen[0],
        last_sequence=seen[1],
        mode=mode,
        developer=developer_digest(instructions),
        cut=cut,
    )


def _compact(facts: dict[str, object]) -> str:
    return json.dumps(facts, separators=(",", ":"), ensure_ascii=False)
