"""A valid context while the service is away: the last good assembly and what came later, whole
atoms within the budget. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .atoms import OURS, Atom, atoms_of
from .costs import bound, room
from .types import (
    ROLE_DEVELOPER,
    ROLE_SYSTEM,
    ROLE_USER,
    AssembleRequest,
    AssembleResponse,
    CacheReport,
    Item,
    Message,
)

REASON = "CLIENT_FALLBACK"
"""The outcome_reason of what a client assembles by itself."""


def make_up(
    request: AssembleRequest,
    held: Sequence[Item] = (),
    last: AssembleResponse | None = None,
    later: Iterable[Message] = (),
) -> AssembleResponse:
    """The context for `request` without the service.

    held: the items of the last good assembly, whole. last: its reply. later: what was handed over
    since. The outcome is DEGRADED, or OVER_BUDGET where what may not go exceeds the budget.
    """
    limit = room(request, last)
    kept = _fitted(atoms_of(_entries(request, held, last, later)), limit)
    total = sum(atom.cost for atom in kept)
    good = last or AssembleResponse()
    items = [item for atom in kept for item, _ in atom.entries]
    return AssembleResponse(
        items=items,
        outcome=AssembleResponse.OUTCOME_OVER_BUDGET
        if total > limit
        else AssembleResponse.OUTCOME_DEGRADED,
        outcome_reason=REASON,
        estimated_tokens=total,
        system_prompt_addition=good.system_prompt_addition,
        context_projection=good.context_projection if last is not None else None,
        cache=CacheReport(total_count=len(items)),
        revision=good.revision,
        engine_id=good.engine_id,
    )


def _entries(
    request: AssembleRequest,
    held: Sequence[Item],
    last: AssembleResponse | None,
    later: Iterable[Message],
) -> list[tuple[Item, int]]:
    """The list before anything is left out, each item with its cost."""
    if request.HasField("live"):
        held, new = (), list(request.live.messages)
    else:
        new = [*later, *request.ingest]
    factor = (last.budget.model_factor if last is not None else 0) or 1.0
    entries = [(item, math.ceil(item.tokens * factor)) for item in held]
    seen = {item.message.id for item in held if item.message.id}
    for message in new:
        if message.id and message.id in seen:
            continue
        seen.add(message.id)
        cost = bound(message)
        entries.append((Item(id=message.id, tokens=cost, message=message), cost))
    return entries


def _fitted(atoms: list[Atom], limit: int) -> list[Atom]:
    """The atoms that stay: the oldest go first, messages before summaries, those that may not go
    never."""
    total = sum(atom.cost for atom in atoms)
    fixed = _fixed(atoms)
    gone: set[int] = set()
    for of_ours in (False, True):
        for index, atom in enumerate(atoms):
            if total <= limit:
                break
            if index not in fixed and _is_ours(atom) == of_ours:
                gone.add(index)
                total -= atom.cost
    return [atom for index, atom in enumerate(atoms) if index not in gone]


def _is_ours(atom: Atom) -> bool:
    """Whether the atom begins with an item of the service: a summary."""
    return atom.messages[0].id.startswith(OURS)


def _fixed(atoms: list[Atom]) -> set[int]:
    """The indexes of atoms that may not go."""
    fixed = {len(atoms) - 1}
    for index, atom in enumerate(atoms):
        if atom.messages[0].role not in (ROLE_SYSTEM, ROLE_DEVELOPER):
            break
        fixed.add(index)
    fixed |= {index for index, atom in enumerate(atoms) if any(map(_is_pinned, atom.messages))}
    asked = [index for index, atom in enumerate(atoms) if any(map(_is_users, atom.messages))]
    return fixed | set(asked[-1:])


def _is_pinned(message: Message) -> bool:
    return message.labels.get("pinned", "false") != "false"


def _is_users(message: Message) -> bool:
    return message.role == ROLE_USER and not message.id.startswith(OURS)
