"""Printing a session in the form that a harness or provider speaks, and judging files of these
forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contextengine_server.cli.connection import Where, connected
from contextengine_server.cli.output import CommandFailed, note, print_json, print_table, printable

if TYPE_CHECKING:
    from contextengine_server.projection.target import Target

REFUSED = 2
"""The exit status of a command that was typed wrongly."""


def target_named(name: str) -> Target:
    """The target that is called so. Raises CommandFailed with the names that there are, and why
    others cannot be used."""
    from contextengine_server.plugins.targets import installed_targets

    found = installed_targets()
    target = found.targets.named(name)
    if target is None:
        why = [str(one) for one in found.broken if one.name == name]
        there_are = f"there is no such target; there are {', '.join(found.targets.names)}"
        raise CommandFailed(f"--to {name}: {'; '.join(why) or there_are}", REFUSED)
    return target


def list_targets(json_wanted: bool) -> None:
    """Prints the targets that are installed here, and the package that each is of; on standard
    error those that cannot be used."""
    from importlib.metadata import version

    from contextengine_server.plugins.targets import installed_targets

    found = installed_targets()
    own = f"contextengine-server {version('contextengine-server')}"
    columns = ("name", "form", "renderers", "package")
    rows = [
        (target.name, target.title, target.renderer_names, found.packages.get(target.name, own))
        for target in found.targets
    ]
    if json_wanted:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_table(columns, [(name, form, ", ".join(by), of) for name, form, by, of in rows])
    for why in found.broken:
        note(f"warning: {why}")


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
    from contextengine.types import Budget, ProjectionAction, ProjectionOptions

    form = target_named(target)
    options = ProjectionOptions(
        target_name=form.name,
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
    """Prints what the target's rules find in a file of its form. Raises CommandFailed where a rule
    is broken."""
    form = target_named(target)
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise CommandFailed(f"{file} is not valid JSON: {error}") from error
    if _say(body, form, model):
        raise CommandFailed("", status=1)
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
