"""Asking for projections, and what the target's rules find in the answer."""

from __future__ import annotations

from typing import Any

from contextengine import types as t
from contextengine_server.projection.rules import RuleFinding
from contextengine_server.projection.targets import Targets
from tests.integration.harness import House

TARGETS = {target.name: target for target in Targets()}
CODEX = t.PROJECTION_TARGET_CODEX
Action = t.ProjectionAction


def text(said: str) -> list[t.Part]:
    return [t.Part(text=t.TextPart(text=said))]


def options(target: str = "codex", **fields: Any) -> t.ProjectionOptions:
    named = t.ProjectionTarget.Name(TARGETS[target].number)
    return t.ProjectionOptions(target=named, **fields)


async def project(
    house: House, session: t.SessionRef, target: str = "codex", **fields: Any
) -> t.ProjectResponse:
    """A projection of a session; `fields` of the request, or of the options where the request has
    none of the name."""
    own = {
        name: fields.pop(name)
        for name in ("budget", "prompt", "at_least_revision")
        if name in fields
    }
    return await house.client.projection.project(options(target, **fields), session=session, **own)


def judged(reply: t.ProjectResponse, target: str, model: str = "") -> list[RuleFinding]:
    """What the target's rules find, advice left out."""
    form = TARGETS[target]
    found = form.validator(form.body(reply), model)
    return [finding for finding in found if not finding.advice]
