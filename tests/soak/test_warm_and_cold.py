"""Lives of sessions at random, for as long as CONTEXTENGINE_SOAK_SECONDS says (a minute): memory
and store show in nothing. `make test` plays some with a fixed seed.

A life that fails is printed with its seed; CONTEXTENGINE_SOAK_SEED plays from that one on.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from tests.properties.lives import CALL_IDS, ENGINES, ROLES, WHATS, Event, Happening, Part, Said
from tests.properties.test_warm_and_cold import as_anywhere

_USUAL: Sequence[tuple[int, tuple[str, ...]]] = [
    (pb.ROLE_USER, ("text",)),
    (pb.ROLE_USER, ("text",)),
    (pb.ROLE_ASSISTANT, ("text",)),
    (pb.ROLE_ASSISTANT, ("thought",)),
    (pb.ROLE_ASSISTANT, ("text", "call")),
    (pb.ROLE_ASSISTANT, ("call", "call")),
    (pb.ROLE_TOOL, ("result",)),
    (pb.ROLE_TOOL, ("result",)),
    (pb.ROLE_TOOL, ("result", "result")),
    (pb.ROLE_USER, ("result",)),
    (pb.ROLE_DEVELOPER, ("call",)),
    (pb.ROLE_SYSTEM, ("text",)),
]
_KINDS = ("text", "text", "call", "result", "result", "thought", "signed")


def _part(chance: random.Random, kind: str) -> Part:
    tokens = 6_000 if chance.random() < 0.01 else chance.choice((6, 20, 60, 200))
    return kind, chance.randrange(len(CALL_IDS)), tokens


def life_of(chance: random.Random) -> list[Event]:
    """A life of 8 to 120 events."""
    life: list[Event] = []
    role: int
    for _ in range(chance.randint(8, 120)):
        kind = chance.random()
        if kind < 0.35:
            what = chance.choice(WHATS)
            life.append(Happening(what, chance.randrange(8), chance.randrange(8)))
            continue
        if kind < 0.5:
            role, label = chance.choice(ROLES), chance.choice(("",) * 5 + ("pinned", "excluded"))
            kinds: Sequence[str] = chance.choices(_KINDS, k=chance.randint(1, 3))
        else:
            role, kinds = chance.choice(_USUAL)
            label = "pinned" if chance.random() < 0.08 else ""
        life.append(Said(role, tuple(_part(chance, each) for each in kinds), label))
    return life


@pytest.mark.timeout(0)
def test_memory_and_store_show_in_nothing() -> None:
    begun = seed = int(os.environ.get("CONTEXTENGINE_SOAK_SEED", time.time_ns()))
    until = time.monotonic() + float(os.environ.get("CONTEXTENGINE_SOAK_SECONDS", "60"))
    while seed == begun or time.monotonic() < until:
        chance = random.Random(seed)
        engine, life = chance.choice(sorted(ENGINES)), life_of(chance)
        share = chance.choice((0.1, 0.5, 1.0))
        forgets = frozenset(at for at in range(len(life)) if chance.random() < share)
        try:
            as_anywhere(engine, life, forgets)
        except BaseException:
            print(f"seed {seed}, engine {engine}, forgets {sorted(forgets)}:", *life, sep="\n  ")
            raise
        seed += 1
