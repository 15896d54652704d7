"""What the server logs: JSON lines that are found from their trace, and that quote nobody."""

from __future__ import annotations

import json
from pathlib import Path

from contextengine import Client, SessionRef, user
from contextengine.types import Budget
from tests.acceptance.shell import serving

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SECRET = "the voucher is ZEBRA-9931"


def test_a_line_about_a_call_has_its_trace_and_no_words_of_it(tmp_path: Path) -> None:
    """A summary whose model is not there: the warning of the call that asked for it."""
    nobody = (
        "summarizer.endpoints=[{name: nobody, base_url: 'http://127.0.0.1:1/v1', model: m,"
        " retries: 0}]"
    )
    with serving(
        tmp_path,
        "--log-format",
        "json",
        "--set",
        nobody,
        "--set",
        "telemetry.traces.endpoint=http://127.0.0.1:1",
    ) as server:
        with Client(
            server.address, metadata=lambda: [("traceparent", f"00-{TRACE}-00f067aa0ba902b7-01")]
        ) as client:
            ref = SessionRef(agent_id="a", session_id="s")
            client.ingest_batch(
                ref, [user(f"{SECRET}, {number}. " * 60, id=f"m{number}") for number in range(30)]
            )
            done = client.compact(ref, force=True, budget=Budget(message_tokens=3_000))
            assert done.summaries
        assert server.stop() == 0
    text = (tmp_path / "server.log").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    [degraded, *_] = [line for line in lines if line["event"] == "degraded"]
    assert degraded["trace_id"] == TRACE
    assert len(degraded["span_id"]) == 16
    assert degraded["level"] == "warning"
    assert degraded["session"] == "s"
    assert "ZEBRA" not in text
    assert {"timestamp", "level", "event"} <= set.intersection(*({*line} for line in lines))
