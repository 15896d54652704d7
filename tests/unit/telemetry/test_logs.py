"""Log lines: JSON, with ids, and without secrets and texts."""

from __future__ import annotations

import io
import json
import logging

import pytest
import structlog

from contextengine_server.telemetry.logs import configure_logging, get_logger
from contextengine_server.telemetry.tracing import NO_TRACE, Tracer, under


@pytest.fixture
def stream():
    """Where lines go; the process's own logging is put back afterwards."""
    root = logging.getLogger()
    handlers, level, before = root.handlers[:], root.level, structlog.get_config()
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**before)


def lines(stream: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_the_ids_of_its_trace(stream):
    configure_logging("info", stream=stream)
    trace = Tracer(1.0, lambda span: None).begin("a.B/C", [], lambda: "")
    log = get_logger("contextengine.test")
    log.info("compacted", session="s1", tokens=12, **trace.ids())
    log.info("compacted", **NO_TRACE.ids())
    log.debug("not asked for")
    first, second = lines(stream)
    assert first.pop("timestamp").endswith("Z")
    assert first == {
        "event": "compacted",
        "level": "info",
        "component": "contextengine.test",
        "session": "s1",
        "tokens": 12,
        **trace.ids(),
    }
    assert "trace_id" not in second


def test_work_under_a_span_needs_not_name_it(stream):
    configure_logging("info", stream=stream)
    trace = Tracer(1.0, lambda span: None).begin("a.B/C", [], lambda: "")
    with under(trace):
        get_logger("test").info("compacted")
        logging.getLogger("a.library").warning("slow")
    get_logger("test").info("compacted")
    ours, theirs, after = lines(stream)
    for line in (ours, theirs):
        assert {name: line[name] for name in ("trace_id", "span_id")} == trace.ids()
    assert "trace_id" not in after


def test_secrets_and_texts_are_withheld(stream):
    configure_logging("info", stream=stream)
    get_logger("test").warning(
        "refused Bearer abc.def-ghi",
        authorization="hidden",
        text="hidden",
        nested={"api_key": "hidden", "size": 3},
        body=b"hidden",
        raw=b"hidden",
        detail="key sk-hidden0123456789abcdef was refused",
        odd=object(),
        long="x" * 10_000,
    )
    (line,) = lines(stream)
    assert "hidden" not in stream.getvalue()
    assert "abc.def" not in stream.getvalue()
    assert line["nested"] == {"api_key": "[withheld]", "size": 3}
    assert line["raw"] == "6 bytes"
    assert line["odd"] == "<object>"
    assert len(line["long"]) == 2_000


def test_an_exception_is_its_frames_and_not_its_text(stream):
    configure_logging("info", stream=stream)
    try:
        try:
            raise ValueError("hidden cause")
        except ValueError as cause:
            raise KeyError("hidden") from cause
    except KeyError as error:
        get_logger("test").error("defect", exc_info=error)
        logging.getLogger("a.library").exception("it failed")
    ours, theirs = lines(stream)
    for line in (ours, theirs):
        assert "builtins.KeyError" in line["exception"]
        assert "builtins.ValueError" in line["exception"]
        assert "test_logs.py" in line["exception"]
    assert "hidden" not in ours["exception"].replace(
        'raise ValueError("hidden cause")', ""
    ).replace('raise KeyError("hidden") from cause', "")
    assert (theirs["event"], theirs["level"], theirs["logger"]) == (
        "it failed",
        "error",
        "a.library",
    )


def test_libraries_are_heard_when_something_is_wrong(stream):
    configure_logging("info", stream=stream)
    logging.getLogger("a.library").info("chatter")
    logging.getLogger("a.library").warning("%s of %s", 3, 4)
    assert [line["event"] for line in lines(stream)] == ["3 of 4"]


def test_lines_for_people(stream):
    configure_logging("info", json=False, stream=stream)
    get_logger("test").info("listening", address="127.0.0.1:50051", token="hidden")
    assert "info" in stream.getvalue()
    assert "listening" in stream.getvalue()
    assert "address=127.0.0.1:50051" in stream.getvalue()
    assert "hidden" not in stream.getvalue()


def test_an_unknown_level_is_told_the_known_ones(stream):
    with pytest.raises(ValueError, match="unknown log level 'loud'; use debug, info"):
        configure_logging("loud", stream=stream)
