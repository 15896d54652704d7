"""Settings of the archive: where sessions go that nobody uses, and when."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, ByteSize, Field, model_validator

from contextengine_server.config.group import Group
from contextengine_server.config.schema import Duration, Secret, Size
from contextengine_server.config.schema.types import off

SECOND = timedelta(seconds=1)
_GLOB = "by a glob: `*` stands for anything but a colon, `**` for anything, `?` for one character."


def _url(value: Any) -> Any:
    if not isinstance(value, str) or not re.fullmatch(
        r"(s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._/-]*)?)?", value
    ):
        raise ValueError("must be s3://BUCKET or s3://BUCKET/PREFIX, without credentials")
    return value


def _endpoint(value: Any) -> Any:
    if not isinstance(value, str) or not re.fullmatch(r"(https?://[^\s/?#@]+/?)?", value):
        raise ValueError(
            "must be an address such as https://objects.example:9000, without a path or credentials"
        )
    return value


def _variable(value: Any) -> Any:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        # What stands here is likely to be the key itself: it must not be in the message.
        raise ValueError("must be the name of an environment variable, never the key itself")
    return value


class ArchiveRuleSettings(Group):
    """After how long whose sessions go."""

    after: Duration = Field(
        ge=SECOND,
        description="A session goes when nobody wrote to it, or brought it back, for so long.",
    )
    tenant: str = Field("**", min_length=1, description=f"Whose sessions, {_GLOB}")
    agent: str = Field("**", min_length=1, description=f"Of which agents, {_GLOB}")
    session: str = Field("**", min_length=1, description=f"Which sessions by their ids, {_GLOB}")


class ArchiveSettings(Group):
    """Sessions that nobody uses go to object storage, and come back at the first touch. Without a
    `url` none goes. Needs the extra `archive` of the package."""

    url: Annotated[str, BeforeValidator(_url)] = Field(
        "",
        description=(
            "The bucket, and what the names of all objects in it begin with: `s3://BUCKET/PREFIX`."
            " Empty: there is no archive. It must stay as it is while sessions are there."
        ),
    )
    endpoint: Annotated[str, BeforeValidator(_endpoint)] = Field(
        "",
        description=(
            "The address of what speaks S3; empty: Amazon's. Over http:// what sessions say can be"
            " read on the way."
        ),
    )
    region: str = Field("us-east-1", pattern=r"^[a-z0-9-]{1,64}$", description="The bucket's.")
    access_key_env: Annotated[str, Secret(), BeforeValidator(_variable)] = Field(
        "AWS_ACCESS_KEY_ID",
        description="The environment variable that holds the id of the access key.",
    )
    secret_key_env: Annotated[str, Secret(), BeforeValidator(_variable)] = Field(
        "AWS_SECRET_ACCESS_KEY",
        description=(
            "The environment variable that holds the secret of the key. Where neither is set, the"
            " role of the machine is asked for."
        ),
    )
    credentials_file: str = Field(
        "",
        description=(
            "A file with the credentials instead, as Amazon's tools have it: its profile"
            " `[default]`. Read at the start."
        ),
    )
    interval: Annotated[Duration | None, BeforeValidator(off)] = Field(
        timedelta(hours=1),
        ge=SECOND,
        description=(
            "How often the server brings the sessions there that the rules let go, and erases the"
            " objects that are needed no more. Off: only `contextengine archive` does."
        ),
    )
    rules: tuple[ArchiveRuleSettings, ...] = Field(
        (),
        description=(
            "Which sessions go, and when. The first rule that names a session is its own; one that"
            " no rule names stays."
        ),
    )
    keep: Duration = Field(
        timedelta(days=30),
        ge=timedelta(0),
        description=(
            "How long an object stays once its session came back: as long as a backup of the store"
            " may be restored. The objects of a session that is deleted go with it."
        ),
    )
    max_session: Size = Field(
        ByteSize(64 << 20),
        ge=1024,
        description=(
            "A session with more bytes of messages stays in the store: one that comes back is in"
            " memory as a whole, and is written at once."
        ),
    )
    timeout: Duration = Field(
        timedelta(seconds=30),
        ge=SECOND,
        le=timedelta(minutes=10),
        description="One request to the bucket.",
    )

    @model_validator(mode="after")
    def _has_a_place(self) -> ArchiveSettings:
        if self.rules and not self.url:
            raise ValueError("rules say which sessions go, and url does not say where to")
        return self
