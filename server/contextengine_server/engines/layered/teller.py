"""How the layered engine's summaries tell of messages: by the strategy of their layer."""

from __future__ import annotations

import msgspec

from contextengine_server.memory.extraction.extract import facts_in

from ..contract import Said
from ..teller import Retelling
from .classification import layer_of, states_all
from .options import LayeredOptions


class LayerTeller(msgspec.Struct, frozen=True):
    """Tells of messages by their layers."""

    options: LayeredOptions
    facts_tokens: int

    def told(self, said: Said) -> Retelling:
        """What is kept and had no room all the same is told of, and so is what says more than its
        facts."""
        strategy = self.options.strategy_of(layer_of(said))
        if strategy != "extract_facts":
            return Retelling(read=strategy != "drop")
        facts = tuple(facts_in(said.role, said.text, said_on=said.said_on))
        return Retelling(read=not states_all(said, facts), facts=facts)
