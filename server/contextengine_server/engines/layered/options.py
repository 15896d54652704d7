"""Options of the layered engine, by the names and defaults of PyClaw's settings of its engine, so
that a file carries over (docs/layered.md#options-of-pyclaw)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from contextengine_server.config.schema import Ratio, Whole

from ..options import Options
from .layers import Layer, Strategy

Tokens = Annotated[Whole, Field(ge=0, le=1_000_000)]

KEEP = (
    "`keep`: as they are, whatever they take; `summarize`: told of by a summary; `extract_facts`:"
    " their facts, word for word; `drop`: left out."
)


class CompactionOptions(Options):
    """When what is old is compacted, and by which plan."""

    enabled: bool = Field(
        True, description="False: nothing is compacted by itself; Compact with force still is."
    )
    max_tokens: Whole = Field(
        128_000,
        ge=1,
        description=(
            "The most tokens of messages that are to be shown, of which the reserve is a share; the"
            " budget for messages where that is less."
        ),
    )
    reserve_ratio: Ratio = Field(
        0.3,
        gt=0,
        lt=1,
        description=(
            "The share that is held back for new messages. Up to the rest nothing changes, above it"
            " a compaction is due."
        ),
    )
    strategy: Literal["dag", "linear", "hybrid"] = Field(
        "dag",
        description=(
            "`dag`: all but the newest step goes by the layers. `hybrid`: a tail of the newest"
            " history stays as it is, what lies before goes by the layers. `linear`: the tail"
            " stays, and one summary tells of all before."
        ),
    )


class CriticalLayer(Options):
    """System messages, and what a user lays down."""

    max_tokens: Tokens = Field(
        2_000,
        description="The tokens that it should take; more is kept, and GetStatus says how much.",
    )
    strategy: Strategy = Field("keep", description=f"What becomes of its messages. {KEEP}")


class ImportantLayer(Options):
    """Tool calls with their results, requests, questions and answers."""

    max_tokens: Tokens = Field(
        3_000, description="The tokens that summaries of it may take together."
    )
    strategy: Strategy = Field("summarize", description="What becomes of its messages, as above.")


class ContextualLayer(Options):
    """Facts: preferences, decisions, who somebody is."""

    max_tokens: Tokens = Field(2_000, description="The tokens that its facts may take together.")
    strategy: Strategy = Field(
        "extract_facts", description="What becomes of its messages, as above."
    )


class TransientLayer(Options):
    """Greetings, thanks, short confirmations."""

    max_tokens: Tokens = Field(0, description="The tokens that may be left of it.")
    strategy: Strategy = Field("drop", description="What becomes of its messages, as above.")


class LayerOptions(Options):
    """A layer each."""

    critical: CriticalLayer = CriticalLayer()
    important: ImportantLayer = ImportantLayer()
    contextual: ContextualLayer = ContextualLayer()
    transient: TransientLayer = TransientLayer()


class LayeredOptions(Options):
    """Options of the layered engine."""

    compaction: CompactionOptions = CompactionOptions()
    layers: LayerOptions = LayerOptions()

    @property
    def linear(self) -> bool:
        """True where nothing is told apart."""
        return self.compaction.strategy == "linear"

    def strategy_of(self, layer: Layer) -> Strategy:
        """What becomes of a layer's messages."""
        return self._layers[layer].strategy

    def tokens_for(self, layer: Layer) -> int:
        """The tokens that a layer may take."""
        return self._layers[layer].max_tokens

    def tokens_of(self, strategy: Strategy) -> int:
        """The tokens that the layers of a strategy may take together."""
        return sum(one.max_tokens for one in self._layers if one.strategy == strategy)

    @property
    def _layers(
        self,
    ) -> tuple[CriticalLayer, ImportantLayer, ContextualLayer, TransientLayer]:
        layers = self.layers
        return layers.critical, layers.important, layers.contextual, layers.transient
