"""The settings of summarizers."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from contextengine_server.config.group import Group
from contextengine_server.config.policy import PolicySettings
from contextengine_server.config.schema import Duration, Ratio, Secret, Whole

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)

ORDER = ("runtime", "endpoints", "extractive")
"""Who may be asked for a summary."""


def _asked(value: Any) -> Any:
    if value not in ORDER:
        raise ValueError(f"must be one of {', '.join(ORDER)}")
    return value


def _endpoint_url(value: Any) -> Any:
    if not isinstance(value, str) or not re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", value):
        raise ValueError("must be an address that begins with http:// or https:// and has no query")
    if "@" in value:
        raise ValueError(
            "must hold no credentials: put the key into an environment variable, and its name into"
            " api_key_env"
        )
    return value


def _name(value: Any) -> Any:
    if not isinstance(value, str) or not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", value):
        raise ValueError(
            "must be at most 64 lower-case letters, digits and . _ - and begin with a letter or"
            " digit"
        )
    return value


def _endpoint_name(value: Any) -> Any:
    if value == "runtime":
        raise ValueError("must not be `runtime`: options name the models of attached harnesses so")
    return _name(value)


def _variable(value: Any) -> Any:
    if not isinstance(value, str) or not re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*)?", value):
        # What stands here is likely to be the key itself: it must not be in the message.
        raise ValueError("must be the name of an environment variable, never the key itself")
    return value


class MemoryFlushSettings(Group):
    """The facts of messages go to the agent's memory before they are summarized, where there is
    one. Shares of what the budget leaves for messages."""

    soft_ratio: Ratio = Field(
        0.75, gt=0, le=1, description="From here on what comes next is handed over ahead."
    )
    hard_ratio: Ratio = Field(
        0.90,
        gt=0,
        le=1,
        description="From here on a summary waits for it for 2 seconds at most.",
    )

    @model_validator(mode="after")
    def _in_order(self) -> MemoryFlushSettings:
        if self.soft_ratio > self.hard_ratio:
            raise ValueError("soft_ratio must not be greater than hard_ratio")
        return self


class EndpointSettings(Group):
    """A service that speaks the OpenAI chat completions API."""

    name: Annotated[str, BeforeValidator(_endpoint_name)] = Field(
        description="How options and logs name it: lower-case letters, digits and . _ - only.",
    )
    base_url: Annotated[str, BeforeValidator(_endpoint_url)] = Field(
        description="Such as https://api.openai.com/v1 or http://127.0.0.1:11434/v1."
    )
    model: str = Field(
        min_length=1, max_length=256, description="The model asked where no option names another."
    )
    api_key_env: Annotated[str, Secret(), BeforeValidator(_variable)] = Field(
        "",
        description=(
            "The environment variable that holds the key. The key itself is stored nowhere. Empty:"
            " none is sent."
        ),
    )
    timeout: Duration = Field(
        timedelta(minutes=1),
        ge=SECOND,
        le=HOUR,
        description=(
            "One try; all tries together, with the waits between them, may take `retries` + 1 times"
            " as long."
        ),
    )
    retries: Whole = Field(
        2,
        ge=0,
        le=10,
        description=(
            "Further tries after lost connections, time-outs, 408, 409, 429 and 5xx. Retry-After is"
            " honoured."
        ),
    )
    window: Whole = Field(
        128_000,
        ge=4096,
        le=10_000_000,
        description=(
            "The model's context window in tokens. More is never sent: longer messages are"
            " shortened or left to the next in the chain."
        ),
    )
    stream: bool = Field(
        False,
        description=(
            "Read answers as they are written, for services that are slow to end them. Costs more"
            " processor time."
        ),
    )
    length_parameter: Literal["max_completion_tokens", "max_tokens"] = Field(
        "max_completion_tokens",
        description="What the service calls the limit on the length of an answer.",
    )


class RuntimeSummarizerSettings(Group):
    """Work for the models that attached harnesses lend."""

    timeout: Duration = Field(
        timedelta(minutes=5),
        ge=SECOND,
        le=timedelta(days=1),
        description=(
            "How long a summary waits for a harness in all, before the next in the order is asked."
        ),
    )
    lease: Duration = Field(
        timedelta(minutes=1),
        ge=SECOND,
        le=HOUR,
        description=(
            "How long a harness has a job, from its hand-out or its last KeepLease, before another"
            " may have it."
        ),
    )
    attempts: Whole = Field(3, ge=1, le=10, description="How often a job is handed out.")
    wait: Duration = Field(
        timedelta(seconds=10),
        ge=timedelta(0),
        le=HOUR,
        description=(
            "How long a job waits to be taken by a host that said at Bootstrap that it lends its"
            " model in Maintain (`lends-in-maintain`), before the next in the order is asked."
        ),
    )


class SummarizerSettings(PolicySettings):
    """How summaries are made: by the models of attached harnesses, by those at endpoints, and
    without any by worker processes."""

    order: tuple[Annotated[str, BeforeValidator(_asked)], ...] = Field(
        ORDER,
        description=(
            "Who is asked for a summary, in order: `runtime`, the harnesses that lend their models"
            " over Runtime.Attach; `endpoints`; `extractive`, worker processes without a model. Who"
            " is not there is passed over; where all fail, a note that counts stands in."
        ),
    )
    endpoints: tuple[EndpointSettings, ...] = Field(
        (),
        description=(
            "The services asked for summaries, in order. With none, and no harness attached,"
            " summaries are extracted and no text leaves the process."
        ),
    )
    runtime: RuntimeSummarizerSettings = RuntimeSummarizerSettings()
    attempts: Whole = Field(
        3,
        ge=1,
        le=10,
        description=(
            "Times that a model is asked whose answers are no summaries, before it is asked for"
            " less, once."
        ),
    )
    memory_flush: MemoryFlushSettings = Field(default_factory=MemoryFlushSettings)
    remake: bool = Field(
        True,
        description=(
            "Make summaries again, in the background and within the spend cap, that a later one in"
            " the order wrote because an earlier one was down, once that one is back."
        ),
    )
    parallel: Whole = Field(
        4,
        ge=1,
        le=64,
        description=(
            "Sessions that are compacted at once in the background: a slow model holds up no other"
            " session."
        ),
    )
    workers: Whole = Field(
        1, ge=1, le=64, description="Processes at once. They start when first needed."
    )
    nice: Whole = Field(
        10, ge=0, le=19, description="How far they step back behind the serving process."
    )
    deadline: Duration = Field(
        timedelta(seconds=30),
        ge=SECOND,
        le=HOUR,
        description=(
            "A summary that takes a worker longer is given up, and a note that counts stands in."
        ),
    )

    @model_validator(mode="after")
    def _distinct(self) -> SummarizerSettings:
        if not self.order:
            raise ValueError(f"order is empty: name at least one of {', '.join(ORDER)}")
        if len(set(self.order)) < len(self.order):
            raise ValueError(f"order names one twice: {', '.join(self.order)}; each is asked once")
        if "extractive" in self.order[:-1]:
            raise ValueError(
                f"order is {', '.join(self.order)}: put extractive last, since it always answers,"
                " and nobody behind it would be asked"
            )
        first: dict[str, int] = {}
        for index, endpoint in enumerate(self.endpoints):
            if (other := first.setdefault(endpoint.name, index)) != index:
                raise ValueError(
                    f"endpoints[{other}] and endpoints[{index}] have the same name"
                    f" {endpoint.name!r}; options need to tell them apart"
                )
        return self
