"""Printing a session in the form that a harness or provider speaks, and judging files of these
forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contextengine_server.cli.output import Failure, note, print_json, print_table, printable
from contextengine_server.cli.where import Where, connected

if TYPE_CHECKING:
    from contextengine_server.projection.target import Target


def target_named(name: str) -> Target:
    """The target that is called so. Raises Failure with the names that there are."""
    from contextengine_server.projection.targets import Targets

    targets = Targets()
    target = targets.named(name)
    if target is None:
        raise Failure(f"there is no target {name!r}: it is one of {', '.join(targets.names)}")
    return target


async def project_session(
    where: Where,
    session: str,
    agent: str,
    target: str,
    renderer: str,
    items: bool,
    budget: int | None,
    model: str,
) -> None:
    """Prints the body that would be sent as JSON, and on standard error what a harness would do
    with it and what is lost."""
    from contextengine import SessionRef
    from contextengine.types import Budget, ProjectionAction, ProjectionOptions, ProjectionTarget

    form = target_named(target)
    options = ProjectionOptions(
        target=ProjectionTarget.Name(form.number),
        renderer=renderer,
        inject_items=items,
        model=model,
    )
    more: dict[str, Any] = {} if budget is None else {"budget": Budget(message_tokens=budget)}
    async with connected(where) as client:
        reply = await client.projection.project(
            options, session=SessionRef(agent_id=agent, session_id=session), **more
        )
    body = form.body(reply)
    print_json(body)
    if reply.action_reason:
        action = ProjectionAction.Name(reply.action).removeprefix("PROJECTION_ACTION_").lower()
        note(f"next: {action} ({reply.action_reason})")
    for warning in reply.warnings:
        note(f"warning: {warning}")
    for loss in reply.losses:
        place = f"item {loss.item_index}: " if loss.item_index >= 0 else ""
        note(f"lost: {place}{loss.what} ({loss.rule})")
    _say(body, form, model, stderr=True)


def check_file(file: Path, target: str, model: str) -> None:
    """Prints what the target's rules find in a file of its form. Raises Failure where a rule is
    broken."""
    form = target_named(target)
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Failure(f"{file} is no JSON: {error}") from error
    if _say(body, form, model):
        raise Failure("", status=1)
    print(f"ok: {file} keeps the rules of {target}")


def _say(body: Any, form: Target, model: str, *, stderr: bool = False) -> bool:
    """Prints the findings; True where one is more than advice."""
    found = form.validator(body, model)
    if found:
        rows = [
            (
                one.rule,
                "advice" if one.advice else "error",
                printable(one.where),
                printable(one.what),
            )
            for one in found
        ]
        print_table(("rule", "", "where", "what"), rows, stderr=stderr)
    return any(not one.advice for one in found)
