"""Printing a session in the form that a harness or provider speaks, and judging files of these
forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contextengine_server.cli.output import Failure, note, print_json, print_table, printable
from contextengine_server.cli.where import Where, connected

if TYPE_CHECKING:
    from contextengine.types import ProjectResponse

SYSTEM = {"openai-responses": "instructions", "anthropic": "system", "gemini": "systemInstruction"}
"""What the system part is called where the form keeps it apart."""
BODY = {"openai-responses": "input", "gemini": "contents"}
"""What the list is called where it is not `messages`."""


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

    named = f"PROJECTION_TARGET_{target.upper().replace('-', '_')}"
    options = ProjectionOptions(target=named, renderer=renderer, inject_items=items, model=model)
    more: dict[str, Any] = {} if budget is None else {"budget": Budget(message_tokens=budget)}
    async with connected(where) as client:
        reply = await client.projection.project(
            options, session=SessionRef(agent_id=agent, session_id=session), **more
        )
    body = body_of(reply, target)
    print_json(body)
    if reply.action_reason:
        action = ProjectionAction.Name(reply.action).removeprefix("PROJECTION_ACTION_").lower()
        note(f"next: {action} ({reply.action_reason})")
    for warning in reply.warnings:
        note(f"warning: {warning}")
    for loss in reply.losses:
        place = f"item {loss.item_index}: " if loss.item_index >= 0 else ""
        note(f"lost: {place}{loss.what} ({loss.rule})")
    _say(body, target, model, stderr=True)


def body_of(reply: ProjectResponse, target: str) -> dict[str, Any]:
    """What is sent: a request's members for a provider; for Codex those of thread/start,
    thread/inject_items and turn/start."""
    if target == "codex":
        body: dict[str, Any] = {}
        if reply.instructions:
            body["developerInstructions"] = reply.instructions
        if reply.inject_items_json:
            body["items"] = [json.loads(item) for item in reply.inject_items_json]
        alone = [{"type": "text", "text": reply.prompt}] if reply.prompt else []
        return body | {
            "input": json.loads(reply.turn_input_json) if reply.turn_input_json else alone
        }
    system = {SYSTEM[target]: json.loads(reply.system_json)} if reply.system_json else {}
    return system | {BODY.get(target, "messages"): json.loads(reply.messages_json)}


def check_file(file: Path, target: str, model: str) -> None:
    """Prints what the target's rules find in a file of its form. Raises Failure where a rule is
    broken."""
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Failure(f"{file} is no JSON: {error}") from error
    if _say(body, target, model):
        raise Failure("", status=1)
    print(f"ok: {file} keeps the rules of {target}")


def _say(body: Any, target: str, model: str, *, stderr: bool = False) -> bool:
    """Prints the findings; True where one is more than advice."""
    from contextengine_server.projection.targets import VALIDATORS

    found = VALIDATORS[target](body, model)
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
