"""How an engine has its summaries tell of the messages that they stand for: a member beside its
contract, for engines that do not have a summarizer read all of them."""

from __future__ import annotations

from typing import Protocol, cast

import msgspec

from contextengine_server.memory.extraction.fact import FoundFact

from .contract import Engine, Said


class Retelling(msgspec.Struct, frozen=True):
    """How a summary tells of a message."""

    read: bool = True
    """A summarizer reads it."""
    facts: tuple[FoundFact, ...] = ()
    """What of it is stated word for word."""


class Teller(Protocol):
    """An engine's `teller`."""

    facts_tokens: int
    """How many tokens facts may take, in all summaries together, beside the engine's
    `summary_tokens` for the rest."""

    def told(self, said: Said) -> Retelling:
        """How a summary tells of a message. Pure: it is asked again where a summary is made
        again."""


def teller_of(engine: Engine) -> Teller | None:
    """An engine's teller; None: its summarizers read everything."""
    return cast("Teller | None", getattr(engine, "teller", None))
