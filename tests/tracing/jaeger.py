"""A Jaeger of our own on loopback, and what its query API answers."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.bench.house import Process, free_port

ROOT = Path(__file__).parents[2]
BINARY, CONFIG = ROOT / ".tools" / "bin" / "jaeger", ROOT / "tools" / "jaeger" / "config.yaml"
MOST_TRACES = 1_000
"""The most traces that one question answers."""

KINDS = {1: "internal", 2: "server", 3: "client"}

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Span:
    """A span as Jaeger has it. Ids in hexadecimal; times in nanoseconds since 1970 UTC."""

    trace_id: str
    span_id: str
    parent_id: str
    service: str
    name: str
    kind: str
    start: int
    end: int
    attributes: Mapping[str, Any]
    links: tuple[tuple[str, str], ...]
    """Trace and span of each."""


class Jaeger:
    """One that runs."""

    def __init__(self, otlp: str, query: str) -> None:
        self.otlp = otlp
        """Where it takes OTLP over gRPC, as a URL."""
        self.query = query
        """Its query API, as a URL."""

    def answer(self, service: str) -> Json:
        """Every trace of a service, as the API answers it: OTLP in JSON."""
        now = datetime.now(UTC)
        asked = {
            "query.service_name": service,
            "query.start_time_min": _time(now - timedelta(hours=1)),
            "query.start_time_max": _time(now + timedelta(hours=1)),
            "query.num_traces": MOST_TRACES - 1,
        }
        return self._get(f"/api/v3/traces?{urllib.parse.urlencode(asked)}")

    def url(self, trace_id: str) -> str:
        """Where the API answers one trace."""
        return f"{self.query}/api/v3/traces/{trace_id}"

    def _get(self, path: str) -> Json:
        try:
            with urllib.request.urlopen(self.query + path, timeout=10) as reply:
                found: Json = json.load(reply)
                return found
        except urllib.error.HTTPError as error:
            if error.code == 404:  # nothing of this service yet
                return {}
            raise


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def spans_of(answer: Json) -> Iterator[Span]:
    """The spans of an answer."""
    for resource in answer.get("result", {}).get("resourceSpans", ()):
        service = _attributes(resource["resource"]["attributes"])["service.name"]
        for scope in resource["scopeSpans"]:
            for raw in scope["spans"]:
                yield Span(
                    raw["traceId"],
                    raw["spanId"],
                    raw.get("parentSpanId", ""),
                    service,
                    raw["name"],
                    KINDS.get(raw.get("kind", 0), "other"),
                    int(raw["startTimeUnixNano"]),
                    int(raw["endTimeUnixNano"]),
                    _attributes(raw.get("attributes", ())),
                    tuple((link["traceId"], link["spanId"]) for link in raw.get("links", ())),
                )


def only(answers: Iterable[Json], traces: Iterable[str]) -> Json:
    """The answers as one, with the spans of these traces alone, each once."""
    wanted, kept = set(traces), list[Json]()
    known: set[str] = set()
    for answer in answers:
        for resource in answer.get("result", {}).get("resourceSpans", ()):
            scopes = []
            for scope in resource["scopeSpans"]:
                spans = [
                    s for s in scope["spans"] if s["traceId"] in wanted and s["spanId"] not in known
                ]
                known.update(span["spanId"] for span in spans)
                scopes += [{**scope, "spans": spans}] if spans else []
            kept += [{**resource, "scopeSpans": scopes}] if scopes else []
    return {"result": {"resourceSpans": kept}}


def _attributes(pairs: Iterable[Json]) -> dict[str, Any]:
    return {pair["key"]: _plain(pair["value"]) for pair in pairs}


def _plain(value: Json) -> Any:
    ((kind, inner),) = value.items()
    if kind == "arrayValue":
        return [_plain(one) for one in inner.get("values", ())]
    return int(inner) if kind == "intValue" else inner


@contextmanager
def jaeger(directory: Path) -> Iterator[Jaeger]:
    """A Jaeger on free ports, which keeps its spans in memory; stopped when left."""
    otlp, query, query_grpc = free_port(), free_port(), free_port()
    ports = {"OTLP": otlp, "QUERY": query, "QUERY_GRPC": query_grpc}
    process = Process(
        "jaeger",
        [str(BINARY), "--config", str(CONFIG)],
        f"127.0.0.1:{query}",
        directory / "jaeger.log",
        {f"JAEGER_{name}_PORT": str(port) for name, port in ports.items()},
    )
    with process:
        process.listening()
        process.address = f"127.0.0.1:{otlp}"
        process.listening()
        yield Jaeger(f"http://127.0.0.1:{otlp}", f"http://127.0.0.1:{query}")
