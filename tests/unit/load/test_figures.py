"""The figures of the load: which calls count, what an error is, and where a knee lies."""

from __future__ import annotations

import json
from pathlib import Path

from tests.load.driving import Row
from tests.load.ghz import Made, Outcome, _outcome
from tests.load.report import LIMIT, Ramp, knee, write_html, write_json


def test_calls_within_the_window_count_and_errors_of_all() -> None:
    calls = [
        Made(0.0, 0.4, ""),
        Made(0.4, 1.1, "late"),
        Made(0.9, 1.0, ""),
        Made(1.0, 1.2, ""),
        Made(1.9, 2.1, ""),
    ]
    found = _outcome(calls, begin=0.5, end=1.5)
    assert (found.calls, found.all_calls, found.errors, found.kinds) == (2, 5, 1, {"late": 1})
    assert found.rate == 2.0
    assert (round(found.p50, 3), round(found.p99, 3)) == (0.2, 0.2)


def test_no_call_is_no_latency() -> None:
    found = _outcome([Made(0.0, 0.4, "")], begin=0.5, end=1.5)
    assert (found.calls, found.rate, found.p99, found.errors) == (0, 0.0, 0.0, 0)


def test_the_knee_is_the_last_step_that_was_worth_its_load() -> None:
    assert knee([100, 190, 350, 380, 384]) == 2
    assert knee([100, 190, 180, 300]) == 3, "one slow step is not the end"
    assert knee([100, 99, 98]) == 0
    assert knee([100, 120, 140, 165]) == 0, "no doubling brought a quarter more"


def _row(rate: float, *, errors: int = 0) -> Row:
    one = Outcome(10, rate, 0.001, 0.002, 0.003, 12, errors, {"<broken>": errors} if errors else {})
    return Row("step", "steps", f"{rate:.0f} in flight", one, one)


def test_reports_hold_every_figure_and_say_what_ghz_cannot(tmp_path: Path) -> None:
    ramp = Ramp("ramp-step", [_row(100), _row(200), _row(201)])
    rows, failures = [_row(100), _row(50, errors=3)], {"step": "3 × <broken>"}
    write_json(rows, [ramp], {"machine": "a"}, failures, tmp_path / "report.json")
    write_html(rows, [ramp], {"machine": "a"}, failures, tmp_path / "report.html")
    report = json.loads((tmp_path / "report.json").read_text())
    assert [one["ours"]["errors"] for one in report["profiles"]] == [0, 3]
    assert report["ramps"]["ramp-step"]["knee"] == "200 in flight"
    assert report["note"] == LIMIT
    page = (tmp_path / "report.html").read_text()
    assert "&lt;broken&gt;" in page
    assert "<broken>" not in page
    assert "tops out" in page
    assert page.count("class=knee") == 1
