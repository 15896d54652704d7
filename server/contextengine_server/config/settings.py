"""The settings: every group, every default, every limit.

`Settings()` is the defaults; `config.load.load_settings` reads file, environment and flags. The
models are immutable. Durations are `timedelta`, sizes whole numbers of bytes.
"""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ByteSize,
    Field,
    create_model,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from contextengine_server.config.agents.memory import MemorySettings
from contextengine_server.config.agents.subagents import SubagentSettings
from contextengine_server.config.auth import AuthSettings
from contextengine_server.config.engine import EngineSettings, PluginSettings, engine_settings
from contextengine_server.config.group import Group
from contextengine_server.config.lifetime.archive import ArchiveSettings
from contextengine_server.config.lifetime.retention import RetentionSettings
from contextengine_server.config.old_results import ContextPruningSettings
from contextengine_server.config.schema import (
    Duration,
    Ratio,
    Size,
    Whole,
    hide_credentials,
    is_secret,
    show,
)
from contextengine_server.config.schema.types import off
from contextengine_server.config.server import MIB, SECOND, ServerSettings
from contextengine_server.config.summarizer import SummarizerSettings
from contextengine_server.config.telemetry import TelemetrySettings
from contextengine_server.config.usage import UsageSettings
from contextengine_server.context.budget import DEFAULT_WINDOW, BudgetRules
from contextengine_server.engines.catalogue import Catalogue
from contextengine_server.engines.patterns import SessionPattern
from contextengine_server.plugins.entry_points import PluginBroken
from contextengine_server.plugins.stores import kind_of


class StoreSettings(Group):
    """Where messages are kept."""

    url: str = Field(
        "var/contextengine.db",
        min_length=1,
        description=(
            "The store: a path or sqlite:///path (sqlite:////path for an absolute one) is an SQLite"
            " file; postgresql://user:password@host:port/database is PostgreSQL; memory: keeps"
            " nothing beyond the process; other schemes are those of installed packages."
        ),
    )
    durability: Literal["full", "normal"] = Field(
        "full",
        description=(
            "What an acknowledged write survives. full: a power cut, for it is on the disk by then;"
            " writes of many sessions share the wait. normal: the end of the server, however it"
            " comes (kill -9, out of memory), but of a power cut or a crash of the system the last"
            " seconds may be lost; the database is whole in any case. A store that keeps"
            " nothing, or has no such way, knows full alone."
        ),
    )
    scrub_rate: Whole = Field(
        100,
        ge=0,
        description=(
            "How many stored messages a second are read in the background and held against their"
            " hashes, round after round, so that damage is seen before what is damaged is asked"
            " for; 0: none."
        ),
    )

    @field_validator("url")
    @classmethod
    def _names_a_store(cls, url: str) -> str:
        try:
            kind_of(url).check(url)
        except PluginBroken as error:
            raise ValueError(f"names a store that cannot be used: {error}") from error
        return url

    @model_validator(mode="after")
    def _can_be_eased(self) -> StoreSettings:
        kind = kind_of(self.url)
        if self.durability == "normal" and not kind.eases:
            raise ValueError(
                f"durability is normal, and the store of `url` ({kind.urls}) has one way to write:"
                " leave it full"
            )
        return self


class SessionGlobs(Group):
    """Sessions by globs; what is empty is not asked for. `*` stands for any characters but a colon,
    `**` for any."""

    agent: str = Field("", max_length=1024, description="The agent's id.")
    session: str = Field("", max_length=1024, description="The session's id.")
    key: str = Field("", max_length=1024, description="The session key.")

    @model_validator(mode="after")
    def _names_something(self) -> SessionGlobs:
        if self.pattern.empty:
            raise ValueError("names nothing, and so every session: give agent, session or key")
        return self

    @property
    def pattern(self) -> SessionPattern:
        """The same as a pattern."""
        return SessionPattern(agent=self.agent, session=self.session, key=self.key)


class SessionSettings(Group):
    """What sessions may hold, and how many are kept warm."""

    cache_bytes: Size = Field(
        ByteSize(256 * MIB),
        ge=MIB,
        description="Memory for warm sessions; the one used longest ago leaves first.",
    )
    idle_end: Annotated[Duration | None, BeforeValidator(off)] = Field(
        None, ge=SECOND, description="End a session after this long without a write. Off: never."
    )
    max_session_messages: Whole = Field(
        10_000_000,
        ge=1,
        description=(
            "Messages stored of one session: retired ones included, those that a fork inherits not."
        ),
    )
    max_batch_messages: Whole = Field(100_000, ge=1, description="Messages of one call.")
    max_message_bytes: Size = Field(
        ByteSize(32 * MIB), ge=1024, description="One message as encoded on the wire."
    )
    max_id_bytes: Whole = Field(
        256, ge=36, le=256, description="Ids of agents, sessions, messages and requests, in UTF-8."
    )
    ignored: tuple[SessionGlobs, ...] = Field(
        (),
        description=(
            "Sessions of which nothing is stored or read: Assemble answers what it was sent."
        ),
    )
    stateless: tuple[SessionGlobs, ...] = Field(
        (),
        description=(
            "Sessions that are read and never written: what is new is shown and not stored."
        ),
    )


class TokensSettings(Group):
    """How tokens are counted."""

    encoding: Literal["o200k_base", "cl100k_base"] = Field(
        "o200k_base",
        description=(
            "The reference encoding of new sessions; a session keeps the one it began with."
        ),
    )


class BudgetSettings(Group):
    """What is assumed of a budget where the request does not say. A request's own value wins."""

    window_cap: Whole | None = Field(
        None, ge=1024, description="No window is taken to be larger than this. None: no cap."
    )
    default_window: Whole = Field(
        DEFAULT_WINDOW,
        ge=1024,
        description="The window where neither the request nor UpdateModel names one.",
    )
    output_reserve: Whole = Field(
        8192,
        ge=0,
        description="Tokens kept for the answer; never more than the model's maximum output.",
    )
    safety_margin_ratio: Ratio = Field(
        0.05, ge=0, lt=1, description="Share of the window kept against errors of estimation."
    )
    safety_margin_min: Whole = Field(
        2048, ge=0, description="The safety margin is at least this many tokens."
    )
    rot_buffer_ratio: Ratio = Field(
        0.25,
        ge=0,
        lt=1,
        description="Share of the window kept free because attention fades in long contexts.",
    )

    @property
    def rules(self) -> BudgetRules:
        """The reserves, as the budget algebra takes them."""
        return BudgetRules(
            self.output_reserve,
            self.safety_margin_ratio,
            self.safety_margin_min,
            self.rot_buffer_ratio,
        )


class Settings(BaseSettings):
    """All settings of the server."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        env_prefix="CONTEXTENGINE_",
        env_nested_delimiter="__",
    )

    server: ServerSettings = ServerSettings()
    auth: AuthSettings = AuthSettings()
    store: StoreSettings = StoreSettings()
    sessions: SessionSettings = SessionSettings()
    tokens: TokensSettings = TokensSettings()
    engine: EngineSettings = EngineSettings()
    plugins: PluginSettings = PluginSettings()
    budget: BudgetSettings = BudgetSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    summarizer: SummarizerSettings = SummarizerSettings()
    subagents: SubagentSettings = SubagentSettings()
    memory: MemorySettings = MemorySettings()
    retention: RetentionSettings = RetentionSettings()
    archive: ArchiveSettings = ArchiveSettings()
    usage: UsageSettings = UsageSettings()
    context_pruning: ContextPruningSettings = ContextPruningSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Construction takes its arguments alone; load_settings reads the sources, and names them
        in errors."""
        return (init_settings,)

    def redacted(self) -> dict[str, Any]:
        """All values for printing: secrets and credentials inside addresses are left out."""
        shown = _redact(self)
        assert isinstance(shown, dict)
        return shown


@lru_cache(maxsize=16)
def settings_with(catalogue: Catalogue) -> type[Settings]:
    """The settings where these engines have blocks."""
    group = engine_settings(catalogue)
    return create_model(
        "Settings", __base__=Settings, __doc__=Settings.__doc__, engine=(group, group())
    )


def _redact(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return {
            field.alias or name: "(not shown)"
            if is_secret(field)
            else _redact(getattr(value, name))
            for name, field in type(value).model_fields.items()
        }
    if isinstance(value, tuple):
        return [_redact(entry) for entry in value]
    if isinstance(value, (timedelta, ByteSize)):
        return show(value)
    return hide_credentials(value) if isinstance(value, str) else value
