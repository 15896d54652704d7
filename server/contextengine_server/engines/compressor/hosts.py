"""Keys of Hermes's `compression` that say what a host, the summarizers or another engine does: they
are understood, so that a file carries over, and change nothing here (docs/compressor.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from contextengine_server.config.schema import OrOff, Ratio, Whole

from ..options import Options

SUMMARIZERS = "Changes nothing here: summarizer.endpoints"
HOST = "Changes nothing here, it is the host's:"


class HostOptions(Options):
    """Options without effect."""

    max_attempts: Whole = Field(
        3, ge=1, le=10, description=f"{HOST} how often it compacts in a turn."
    )
    in_place: bool = Field(
        True, description="Changes nothing here: a session always keeps its id and its rows."
    )
    hygiene_hard_message_limit: Whole = Field(
        5_000, ge=0, description=f"{HOST} from how many messages on its gateway compacts."
    )
    hygiene_timeout_seconds: Ratio = Field(
        30, ge=0, description=f"{HOST} how long its gateway waits for that."
    )
    hygiene_total_ceiling_seconds: Ratio = Field(
        600, ge=0, description=f"{HOST} how long that may take in all."
    )
    hygiene_failure_cooldown_seconds: Ratio = Field(
        300, ge=0, description=f"{HOST} how long it lets that be after a failure."
    )
    hygiene_max_turn_hold_seconds: Ratio = Field(
        10, ge=0, description=f"{HOST} how long a turn waits for it."
    )
    context_timeout_seconds: Ratio = Field(
        120, ge=0, description=f"{SUMMARIZERS} say how long a model may be silent."
    )
    context_total_ceiling_seconds: Ratio = Field(
        600, ge=0, description=f"{SUMMARIZERS} say how long an answer may take."
    )
    micro_compact: bool = Field(
        False, description="Changes nothing here: the engine pipeline has smaller steps."
    )
    micro_compact_every_n_turns: Whole = Field(1, ge=1, description="See microCompact.")
    micro_compact_defrag_threshold_tokens: Whole = Field(
        2_000, ge=0, description="See microCompact."
    )
    idle_compact_after_seconds: Ratio = Field(
        0, ge=0, description=f"{HOST} it calls Compact when a session goes on after a pause."
    )
    progress_notices: bool = Field(
        False, description=f"{HOST} what it shows of compactions, which are events here."
    )
    checkpoint_required: bool = Field(
        False, description=f"{HOST} nothing is lost by a compaction, so none needs a checkpoint."
    )
    codex_gpt55_autoraise: bool = Field(
        True, description=f"{HOST} a threshold of its own route to Codex."
    )
    codex_gpt55_autoraise_notice: bool = Field(True, description="See codexGpt55Autoraise.")
    codex_app_server_auto: Annotated[Literal["native", "hermes", "off"], OrOff] = Field(
        "native", description=f"{HOST} who compacts the threads of its Codex app server."
    )
    codex_responses_native: bool = Field(
        False, description=f"{HOST} compaction by the provider on its route to Codex."
    )
    codex_responses_compact_threshold: Whole | None = Field(
        None, ge=1, description="See codexResponsesNative."
    )


def without_effect(options: HostOptions) -> list[str]:
    """The published names of those that are set to something else than their default."""
    return [
        field.alias or name
        for name, field in HostOptions.model_fields.items()
        if getattr(options, name) != field.get_default(call_default_factory=True)
    ]
