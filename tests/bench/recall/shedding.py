"""What masking and eviction alone save, turn by turn: the coding session under `pipeline`, with a
budget that it fits into many times and a window that holds all its turns, so that nothing is
summarized."""

from __future__ import annotations

from dataclasses import dataclass, field

from contextengine import types as t
from tests.integration.assemble.asking import assign
from tests.integration.harness import House, ref

from .caching import assemblies, common, tokens_of

ROOM = 1_000_000
LAYERS = {
    "default options": {},
    "eager": {
        "evictionMinAge": 3,
        "observationKeepWindow": 5,
        "observationTriggerChars": 50_000,
        "observationDeactivationChars": 40_000,
    },
}
"""Options beside the widest window."""


@dataclass(slots=True)
class Turn:
    """The steps of a request."""

    stored: int = 0
    """Tokens of all messages, for each step anew: what would be sent."""
    sent: int = 0
    kept: int = 0
    """Of those sent, the ones that begin what was sent the step before."""


@dataclass(slots=True)
class Shed:
    """What a replay came to, by turns of the user."""

    turns: list[Turn] = field(default_factory=list)

    def total(self, turns: list[Turn] | None = None) -> Turn:
        """These turns together, all where none are named."""
        chosen = self.turns if turns is None else turns
        return Turn(
            sum(one.stored for one in chosen),
            sum(one.sent for one in chosen),
            sum(one.kept for one in chosen),
        )


async def shed(house: House, layers: str, limit: int | None = None) -> Shed:
    """Plays the session with these layers."""
    session = ref(f"shed-{layers}")
    await assign(house, session, "pipeline", historyTurns=100, **LAYERS[layers])
    result, users = Shed(), 0
    before: t.AssembleResponse | None = None
    async for reply in assemblies(house, session, ROOM, limit):
        asked = sum(item.message.role == t.ROLE_USER for item in reply.items)
        if asked > users or not result.turns:
            users = asked
            result.turns.append(Turn())
        turn = result.turns[-1]
        turn.stored += (await house.client.get_status(session)).message_tokens
        turn.sent += tokens_of(reply)
        turn.kept += common(before, reply) if before is not None else 0
        before = reply
    return result
