"""The settings of telemetry."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from contextengine_server.config.addresses import is_host_and_port, is_loopback
from contextengine_server.config.group import Group
from contextengine_server.config.schema import Duration, Ratio


def _http_url(value: str) -> str:
    if value and not value.startswith(("http://", "https://")):
        raise ValueError("must begin with http:// or https://, or be empty for none")
    return value


class TracesSettings(Group):
    """Where spans go."""

    endpoint: Annotated[str, BeforeValidator(_http_url)] = Field(
        "", description="OTLP over gRPC, such as http://127.0.0.1:4317. Empty: no tracing."
    )
    sample_ratio: Ratio = Field(
        0.01,
        ge=0,
        le=1,
        description="Share of calls traced where the caller brings no decision of its own.",
    )
    parent_based: bool = Field(
        True,
        description=(
            "Follow the decision of a caller that brings one. Off: the ratio decides of every call."
        ),
    )


class PrometheusSettings(Group):
    """Metrics for Prometheus to scrape, over HTTP on a port of their own."""

    address: str = Field(
        "",
        description=(
            "Where to listen, such as 127.0.0.1:9464: host:port or [ipv6]:port, not the address of"
            " the gRPC server. Empty: nowhere."
        ),
    )
    insecure: bool = Field(
        False,
        description=(
            "Allow an address that is not loopback. Whoever reaches it reads the metrics: there is"
            " no TLS and no token."
        ),
    )

    @field_validator("address")
    @classmethod
    def _has_a_port(cls, address: str) -> str:
        if address and not is_host_and_port(address):
            raise ValueError(
                "must be host:port or [ipv6]:port, the port from 0 to 65535, such as"
                " 127.0.0.1:9464, or empty for none"
            )
        return address

    @model_validator(mode="after")
    def _on_this_machine(self) -> PrometheusSettings:
        if self.address and not self.insecure and not is_loopback(self.address):
            raise ValueError(
                f"address {self.address} can be reached from other machines, without TLS and"
                " tokens: listen on 127.0.0.1, or set insecure: true where something in front"
                " decides who may read"
            )
        return self


class MetricsSettings(Group):
    """Where metrics go."""

    endpoint: Annotated[str, BeforeValidator(_http_url)] = Field(
        "",
        description=(
            "OTLP over gRPC, such as http://127.0.0.1:4317. Empty: no metrics leave the process."
        ),
    )
    interval: Duration = Field(
        timedelta(seconds=15),
        ge=timedelta(seconds=1),
        le=timedelta(hours=1),
        description="How often metrics are sent.",
    )
    prometheus: PrometheusSettings = PrometheusSettings()


class LogsSettings(Group):
    """What is logged. Text of messages never is."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="The least level written."
    )
    format: Literal["text", "json"] = Field(
        "text", description="For people, or one JSON object a line."
    )


class TelemetrySettings(Group):
    """Traces, metrics and logs."""

    traces: TracesSettings = TracesSettings()
    metrics: MetricsSettings = MetricsSettings()
    logs: LogsSettings = LogsSettings()
