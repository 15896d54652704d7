"""The settings: every group, every default, every limit.

`Settings()` is the defaults; `contextengine_server.config.load_settings` reads file, environment
and flags. The models are immutable. Durations are `timedelta`, sizes whole
numbers of bytes.
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ByteSize, Field, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from contextengine_server.config.addresses import is_host_and_port, is_loopback
from contextengine_server.config.group import Group
from contextengine_server.config.schema import (
    Duration,
    Ratio,
    Secret,
    Size,
    Whole,
    hide_credentials,
    is_secret,
    show,
)
from contextengine_server.config.subagents import SubagentSettings
from contextengine_server.config.summarizer import SummarizerSettings
from contextengine_server.config.telemetry import TelemetrySettings
from contextengine_server.context.budget import BudgetRules
from contextengine_server.engines.options import DagOptions, LegacyOptions

MIB = 1 << 20
SECOND = timedelta(seconds=1)


def _off(value: Any) -> Any:
    # YAML reads a bare `off` as false.
    return (
        None
        if value is False or (isinstance(value, str) and value.strip().lower() == "off")
        else value
    )


class KeepaliveSettings(Group):
    """HTTP/2 keepalive of connections."""

    time: Duration = Field(
        timedelta(seconds=60),
        ge=SECOND,
        description="Ping a connection after this long without traffic.",
    )
    timeout: Duration = Field(
        timedelta(seconds=20),
        ge=SECOND,
        description="Close it when the ping is not answered within this time.",
    )
    min_client_interval: Duration = Field(
        timedelta(seconds=10),
        ge=timedelta(),
        description="A client that pings more often than this is disconnected.",
    )


class TlsSettings(Group):
    """Certificates. With none of them the server speaks plaintext."""

    cert_file: str = Field("", description="The server's certificate chain, PEM.")
    key_file: str = Field("", description="Its private key, PEM.")
    client_ca_file: str = Field(
        "",
        description=(
            "When set, a client must show a certificate signed by one of these authorities, PEM."
        ),
    )

    @property
    def enabled(self) -> bool:
        """True where connections are encrypted."""
        return bool(self.cert_file)

    @model_validator(mode="after")
    def _complete(self) -> TlsSettings:
        if bool(self.cert_file) != bool(self.key_file):
            raise ValueError("cert_file and key_file belong together: set both or neither")
        if self.client_ca_file and not self.cert_file:
            raise ValueError("client_ca_file needs cert_file and key_file as well")
        return self


class ServerSettings(Group):
    """The gRPC server."""

    address: str = Field(
        "127.0.0.1:50051",
        min_length=1,
        description=(
            "Where to listen: host:port, [ipv6]:port or unix:path. Port 0 takes any free one."
        ),
    )
    max_message_bytes: Size = Field(
        ByteSize(64 * MIB),
        ge=65_536,
        le=2**31 - 1,
        description="The largest request or reply on the wire.",
    )
    max_concurrent_rpcs: Whole = Field(
        1000,
        ge=1,
        le=1_000_000,
        description="Calls at once; more are answered RESOURCE_EXHAUSTED with RetryInfo.",
    )
    drain_grace: Duration = Field(
        timedelta(seconds=10),
        ge=timedelta(),
        le=timedelta(hours=1),
        description="On SIGTERM, how long calls in flight may take to finish.",
    )
    insecure: bool = Field(
        False,
        description=(
            "Allow an address that is not loopback without TLS and tokens. Only behind something"
            " that checks."
        ),
    )
    keepalive: KeepaliveSettings = KeepaliveSettings()
    tls: TlsSettings = TlsSettings()

    @field_validator("address")
    @classmethod
    def _has_a_port(cls, address: str) -> str:
        if address.startswith("unix:"):
            if len(address) == len("unix:"):
                raise ValueError("must name the socket's path behind unix:")
            return address
        if not is_host_and_port(address):
            raise ValueError(
                "must be host:port, [ipv6]:port or unix:path, the port from 0 to 65535"
            )
        return address

    @property
    def is_loopback(self) -> bool:
        """True where only this machine can connect."""
        if self.address.startswith("unix:"):
            return True
        return is_loopback(self.address)


def _sha256(value: Any) -> Any:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise ValueError(
            "must be the SHA-256 of the token as 64 hexadecimal digits, never the token itself"
        )
    return value.lower()


class TokenSettings(Group):
    """A bearer token, stored as its hash: `printf %s "$TOKEN" | sha256sum`."""

    sha256: Annotated[str, Secret(), BeforeValidator(_sha256)] = Field(
        description=(
            "SHA-256 of the token, 64 hexadecimal digits. The token itself is stored nowhere."
        )
    )
    tenant: str = Field(
        min_length=1, max_length=256, description="The tenant that the caller acts for."
    )
    role: Literal["runtime", "operator"] = Field(
        "runtime", description="A runtime serves sessions; an operator may also assign engines."
    )
    name: str = Field("", max_length=256, description="Who holds it, for logs and doctor.")


class AuthSettings(Group):
    """Who may call. Without tokens every caller is tenant `default`, and only loopback is
    served."""

    tokens: tuple[TokenSettings, ...] = Field(
        (), description="The bearer tokens that are accepted."
    )

    @model_validator(mode="after")
    def _distinct(self) -> AuthSettings:
        first: dict[str, int] = {}
        for index, token in enumerate(self.tokens):
            if (other := first.setdefault(token.sha256, index)) != index:
                raise ValueError(
                    f"tokens[{other}] and tokens[{index}] are the same token; a token has one"
                    " tenant and role"
                )
        return self


class StoreSettings(Group):
    """Where messages are kept."""

    url: str = Field(
        "var/contextengine.db",
        min_length=1,
        description=(
            "The SQLite file: a path, or sqlite:///path (sqlite:////path for an absolute one)."
        ),
    )

    @field_validator("url")
    @classmethod
    def _is_sqlite(cls, url: str) -> str:
        scheme, separator, rest = url.partition("://")
        if separator and (scheme != "sqlite" or not rest.startswith("/")):
            raise ValueError(
                "must be a path or sqlite:///path; this version stores in SQLite alone"
            )
        if (rest[1:] if separator else url) in {"", ":memory:"}:
            raise ValueError(
                "must name a file: a database in memory would lose what was acknowledged"
            )
        return url

    @property
    def path(self) -> Path:
        """The database file."""
        return Path(self.url.removeprefix("sqlite:///"))


class SessionSettings(Group):
    """What sessions may hold, and how many are kept warm."""

    cache_bytes: Size = Field(
        ByteSize(256 * MIB),
        ge=MIB,
        description="Memory for warm sessions; the one used longest ago leaves first.",
    )
    idle_end: Annotated[Duration | None, BeforeValidator(_off)] = Field(
        None, ge=SECOND, description="End a session after this long without a write. Off: never."
    )
    max_session_messages: Whole = Field(
        10_000_000, ge=1, description="Messages of one session, retired ones included."
    )
    max_batch_messages: Whole = Field(100_000, ge=1, description="Messages of one call.")
    max_message_bytes: Size = Field(
        ByteSize(32 * MIB), ge=1024, description="One message as encoded on the wire."
    )
    max_id_bytes: Whole = Field(
        256, ge=36, le=256, description="Ids of agents, sessions, messages and requests, in UTF-8."
    )


class TokensSettings(Group):
    """How tokens are counted."""

    encoding: Literal["o200k_base", "cl100k_base"] = Field(
        "o200k_base",
        description=(
            "The reference encoding of new sessions; a session keeps the one it began with."
        ),
    )


class EngineSettings(Group):
    """Which engine serves, and how."""

    default: str = Field(
        "dag",
        min_length=1,
        max_length=256,
        description="The engine of every session that an operator assigned no other.",
    )
    on_engine_failure: Literal["fail_closed", "legacy"] = Field(
        "fail_closed",
        description=(
            "When an engine fails: answer the error, or serve the call by the legacy engine."
        ),
    )
    dag: DagOptions = DagOptions()
    legacy: LegacyOptions = LegacyOptions()

    @field_validator("default")
    @classmethod
    def _is_an_id(cls, engine: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9@][A-Za-z0-9@._/:-]*", engine):
            raise ValueError("must be the id of an engine: letters, digits and @ . _ / : - only")
        return engine


class BudgetSettings(Group):
    """What is assumed of a budget where the request does not say. A request's own value wins."""

    window_cap: Whole | None = Field(
        None, ge=1024, description="No window is taken to be larger than this. None: no cap."
    )
    default_window: Whole = Field(
        128_000,
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
    budget: BudgetSettings = BudgetSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    summarizer: SummarizerSettings = SummarizerSettings()
    subagents: SubagentSettings = SubagentSettings()

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
