"""Options of the pipeline, by the names, defaults and ranges of the Comis configuration, so that a
file carries over (docs/pipeline.md#options-of-comis)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from contextengine_server.config.schema import Whole
from contextengine_server.context.message import MIN_LONG_CHARS

from ..options import Options

Turns = Annotated[Whole, Field(ge=1, le=100)]


class PipelineOptions(Options):
    """Options of the pipeline engine."""

    thinking_keep_turns: Whole = Field(
        10,
        ge=1,
        le=50,
        description=(
            "How many of the newest replies keep their reasoning once their turn is over; signed"
            " reasoning is not kept, redacted reasoning always."
        ),
    )
    replay_drift_idle_ms: Whole = Field(
        1_800_000,
        ge=60_000,
        le=86_400_000,
        description=(
            "A user who goes on later than so many milliseconds after a reply finds the reasoning"
            " before left out, as when another model, provider or API dialect replies."
        ),
    )
    history_turns: Whole = Field(
        15,
        ge=3,
        le=100,
        description=(
            "How many of the newest turns are shown behind the summary. The window moves by a third"
            " of that at a time, so that the beginning stays put between."
        ),
    )
    history_turn_overrides: dict[str, Turns] = Field(
        {},
        description=(
            "The same for sessions on channels of a kind, by the `channel_type` that `Assemble`"
            " named last: 1 to 100 turns each."
        ),
    )
    eviction_min_age: Whole = Field(
        15,
        ge=3,
        le=50,
        description=(
            "How many results of tools must be newer than one that is superseded, an error or a"
            " picture, before a marker stands in its place."
        ),
    )
    observation_keep_window: Whole = Field(
        25,
        ge=1,
        le=50,
        description="How many of the newest results are never masked for their age.",
    )
    ephemeral_keep_window: Whole = Field(
        10,
        ge=1,
        le=50,
        description="The same for what is fetched from the web and answered by servers of MCP.",
    )
    observation_trigger_chars: Whole = Field(
        120_000,
        ge=50_000,
        le=1_000_000,
        description=(
            "The characters of a session, those of results counted twice, from which on results are"
            " masked for their age; 3.5 to a token."
        ),
    )
    observation_deactivation_chars: Whole = Field(
        80_000,
        ge=20_000,
        le=500_000,
        description=(
            "Masks move when results have grown by the trigger less this: what was shown between is"
            " what was shown before."
        ),
    )
    max_inline_tool_result_chars: Whole = Field(
        8_000,
        ge=MIN_LONG_CHARS,
        le=100_000,
        description=(
            "The most characters of a tool's result that are shown as they are. Of a longer one"
            " its head, its tail and how to read it are shown from its arrival on."
        ),
    )
    max_inline_mcp_tool_result_chars: Whole = Field(
        15_000,
        ge=MIN_LONG_CHARS,
        le=100_000,
        description="The same of tools of servers of MCP.",
    )
    max_inline_file_read_result_chars: Whole = Field(
        15_000,
        ge=MIN_LONG_CHARS,
        le=100_000,
        description="The same of tools that read files.",
    )
    compaction_cooldown_turns: Whole = Field(
        5,
        ge=1,
        le=50,
        description=(
            "How many turns of the session pass between two compactions while everything fits."
        ),
    )
    compaction_prefix_anchor_turns: Whole = Field(
        2,
        ge=0,
        le=10,
        description="How many of the first turns stay as they are before the summary.",
    )
    post_compaction_sections: tuple[str, ...] = Field(
        ("Session Startup", "Red Lines"),
        description=(
            "The sections of the workspace's files that come back after a compaction, by their"
            " headings of level 2 or 3; no more than 3,000 characters together."
        ),
    )
