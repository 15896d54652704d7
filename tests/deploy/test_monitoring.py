"""The dashboard and the alerts: each query parses, and asks for metrics and labels that a real
server shows."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml

from tests.acceptance.shell import ROOT
from tests.integration.api_infra.test_scraping import ON, Scrape, scrape
from tests.integration.harness import house

ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "dashboards" / "contextengine.json"
OF_PROMETHEUS = {"instance", "job"}
"""Labels that the scraper adds."""


@dataclass
class Asked:
    """A time series that a query asks for."""

    metric: str
    labels: dict[str, str]
    """The labels that it names; a value for those that must be equal to one."""


def asked(query: str) -> Iterator[Asked]:
    """Every selector of a query. Raises ValueError where it is no PromQL."""

    def walk(node: Any) -> Iterator[Any]:
        yield node
        for name in ("expr", "lhs", "rhs", "param", "vector_selector", "vs"):
            inner = getattr(node, name, None)
            if inner is not None and not isinstance(inner, (str, int, float)):
                yield from walk(inner)
        for inner in getattr(node, "args", None) or ():
            yield from walk(inner)

    for node in walk(promql.parse(query)):
        if type(node).__name__ == "VectorSelector":
            equal = promql.MatchOp.Equal
            matched = {m.name: m.value if m.op == equal else "" for m in node.matchers.matchers}
            yield Asked(node.name, matched)


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def dashboard_queries() -> list[str]:
    """The queries of all panels, with what Grafana puts in for its variables."""
    return [
        target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")
        for panel in panels()
        for target in panel.get("targets", ())
    ]


def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(ALERTS.read_text())["groups"]
    assert group["name"] == "contextengine"
    found: list[dict[str, Any]] = group["rules"]
    return found


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, set[str]]]:
    """Every sample's name of a real scrape, with its labels and their values."""
    endpoint = {"name": "e", "base_url": "http://127.0.0.1:1/v1", "model": "m"}

    async def seen() -> Scrape:
        async with house(
            tmp_path_factory.mktemp("m"), **ON, **{"summarizer.endpoints": [endpoint]}
        ) as running:
            return await scrape(running)

    found: dict[str, dict[str, set[str]]] = {"up": {}}
    for sample in asyncio.run(seen()).samples:
        labels = found.setdefault(sample.name, {})
        for name, value in sample.labels.items():
            labels.setdefault(name, set()).add(value)
    return found


def check(query: str, shown: dict[str, dict[str, set[str]]]) -> None:
    """Holds that a query asks for what is shown."""
    selectors = list(asked(query))
    assert selectors, query
    for one in selectors:
        assert one.metric in shown, f"{one.metric} is no metric: {query}"
        labels = shown[one.metric]
        for name, value in one.labels.items():
            assert name in labels.keys() | OF_PROMETHEUS, (
                f"{one.metric} has no label {name}: {query}"
            )
            # Statuses of calls and kinds of errors come up when they happen.
            if value and name not in OF_PROMETHEUS | {"rpc_response_status_code"}:
                assert value in labels[name], f"{one.metric} has no {name}={value}: {query}"
    grouped = {
        name for names in re.findall(r"by \(([^)]*)\)", query) for name in re.split(r",\s*", names)
    }
    known = set().union(*(shown[one.metric].keys() for one in selectors)) | OF_PROMETHEUS
    assert grouped <= known, query


def test_every_query_of_the_dashboard_has_its_metric(shown: dict[str, dict[str, set[str]]]) -> None:
    queries = dashboard_queries()
    assert len(queries) >= 30
    for query in queries:
        check(query, shown)


def test_every_alert_has_its_metric(shown: dict[str, dict[str, set[str]]]) -> None:
    for rule in rules():
        check(rule["expr"], shown)


def test_the_check_would_find_a_name_that_is_none(shown: dict[str, dict[str, set[str]]]) -> None:
    for query in (
        "contextengine_nothing",
        'contextengine_compactions_total{outcome="sunny"}',
        "sum by (planet) (contextengine_store_up)",
        'contextengine_store_up{session="s"}',
    ):
        with pytest.raises(AssertionError):
            check(query, shown)


def test_every_metric_of_ours_that_can_be_watched_is_on_the_dashboard() -> None:
    on_it = {one.metric for query in dashboard_queries() for one in asked(query)}
    for wanted in (
        "rpc_server_call_duration_seconds_bucket",
        "contextengine_tokens_stored_total",
        "contextengine_tokens_assembled_total",
        "contextengine_tokens_reused_total",
        "contextengine_compactions_total",
        "contextengine_summarizer_breakers",
        "contextengine_summarizer_spent",
        "contextengine_store_write_queue",
        "contextengine_background_jobs",
        "contextengine_sessions_warm",
        "contextengine_sessions_warm_size_bytes",
    ):
        assert wanted in on_it, wanted


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    assert {"title", "uid", "schemaVersion", "panels", "templating", "time"} <= dashboard.keys()
    assert {variable["name"] for variable in dashboard["templating"]["list"]} == {
        "datasource",
        "instance",
    }
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
            assert panel["description"]
            assert panel["fieldConfig"]["defaults"]["unit"]
            assert (
                len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0
            )


def test_every_alert_says_what_is_wrong_and_what_to_do() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) <= 10
    for rule in rules():
        assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"[0-9]+[smh]", rule["for"])
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert rule["annotations"].keys() == {"summary", "runbook"}
        assert rule["annotations"]["runbook"].endswith(".")
        for setting in re.findall(
            r"\b(?:server|sessions|summarizer)\.[a-z_]+", rule["annotations"]["runbook"]
        ):
            assert f"`{setting}`" in (ROOT / "docs" / "configuration.md").read_text(), setting


@pytest.mark.skipif(
    not shutil.which("promtool"), reason="promtool is not installed (Debian: prometheus)"
)
def test_prometheus_itself_takes_the_rules_and_fires_them() -> None:
    checks = (
        ["check", "rules", ALERTS],
        ["check", "config", ALERTS.with_name("prometheus.yml")],
        ["test", "rules", Path(__file__).with_name("alerts.test.yml")],
    )
    for words in checks:
        done = subprocess.run(
            ["promtool", *map(str, words)], capture_output=True, text=True, timeout=150, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
