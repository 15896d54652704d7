"""Logs: one JSON object a line on standard error, and one guard that withholds secrets and texts.

A line says what happened with names, ids and numbers. Texts of messages and secrets are not put
there in the first place; the guard is for the day when somebody does. An exception is written as
its type and its frames, without its own text, which may quote what it choked on.
"""

from __future__ import annotations

import logging
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

import orjson
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from contextengine_server.telemetry.tracing import CURRENT

WITHHELD = "[withheld]"

SECRET_KEYS = frozenset(
    {"api_key", "apikey", "authorization", "cookie", "password", "secret", "token", "tokens_file"}
)
TEXT_KEYS = frozenset(
    {
        "arguments",
        "body",
        "content",
        "message",
        "messages",
        "native",
        "parts",
        "prompt",
        "query",
        "request",
        "response",
    }
    | {"reply", "summary", "system_prompt", "text"}
)
MAX_VALUE_CHARS = 2_000
"""Longer values are cut: a log line is not a place for data."""

_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]+")
_KEYLIKE = re.compile(r"\b(?:sk|pk|ghp|xox[bp])[-_][\w-]{12,}")


def configure_logging(level: str = "info", json: bool = True, stream: TextIO | None = None) -> None:
    """Sets up structlog and the standard library's logging alike.

    `level` is debug, info, warning, error or critical. Without `json` lines are for people.
    `stream` is standard error by default, so that standard output stays a command's own.
    """
    numeric = logging.getLevelNamesMapping().get(level.upper())
    if numeric is None:
        raise ValueError(
            f"unknown log level {level!r}; use debug, info, warning, error or critical"
        )
    renderer: Processor = structlog.processors.JSONRenderer(_dumps) if json else _plain_line
    _configure_structlog(numeric, renderer, stream)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *_SHARED],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    # Libraries speak up only when something is wrong, unless everything was asked for.
    root.setLevel(numeric if numeric == logging.DEBUG else max(numeric, logging.WARNING))


def get_logger(name: str) -> Any:
    """A structlog logger: `log.info("event_name", key=value)`."""
    return structlog.get_logger(component=name)


def ids_of_trace(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Adds `trace_id` and `span_id` of the sampled work that the line is about, so that it is found
    from its trace."""
    for name, value in CURRENT.get().ids().items():
        event.setdefault(name, value)
    return event


def withhold(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Replaces values under keys that hold secrets or texts, credentials inside other values, and
    cuts what is long."""
    for key, value in event.items():
        event[key] = _guarded(key, value)
    return event


def frames_of_exception(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Turns `exc_info` into `exception`: types and frames of the whole chain, without the
    exceptions' own texts."""
    info = event.pop("exc_info", None)
    if info is True:
        info = sys.exc_info()
    error = (
        info if isinstance(info, BaseException) else info[1] if isinstance(info, tuple) else None
    )
    if error is not None:
        event["exception"] = "\n".join(_chain(error))
    return event


def _chain(error: BaseException) -> Iterator[str]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        kind = type(current)
        frames = "".join(traceback.format_tb(current.__traceback__))
        yield f"{kind.__module__}.{kind.__qualname__}\n{frames}".rstrip()
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )


def _guarded(key: str, value: object) -> object:
    lowered = key.lower()
    if lowered in SECRET_KEYS or lowered in TEXT_KEYS:
        return WITHHELD
    if isinstance(value, Mapping):
        return {str(name): _guarded(str(name), inner) for name, inner in value.items()}
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, str):
        scrubbed = _KEYLIKE.sub(WITHHELD, _BEARER.sub(WITHHELD, value))
        # The frames of an exception are long, and are code.
        return scrubbed if key == "exception" else scrubbed[:MAX_VALUE_CHARS]
    return value


def _dumps(event: Mapping[str, Any], **_: object) -> str:
    return orjson.dumps(event, default=_unknown, option=orjson.OPT_NON_STR_KEYS).decode()


def _unknown(value: object) -> str:
    # The value's own text is not known to be harmless.
    return f"<{type(value).__name__}>"


def _plain_line(logger: WrappedLogger, method: str, event: EventDict) -> str:
    fields = dict(event)
    head = f"{fields.pop('timestamp', '')} {fields.pop('level', ''):<8} {fields.pop('event', '')}"
    trace = fields.pop("exception", None)
    tail = " ".join(f"{key}={value}" for key, value in fields.items())
    return f"{head}  {tail}".rstrip() + (f"\n{trace}" if trace else "")


_SHARED: tuple[Processor, ...] = (
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    ids_of_trace,
    frames_of_exception,
    withhold,
)


def _configure_structlog(level: int, renderer: Processor, stream: TextIO | None) -> None:
    structlog.configure(
        processors=[*_SHARED, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # Asked for at each line: standard error may be another by then.
        logger_factory=lambda *_: structlog.WriteLogger(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )


# Until somebody configures more: structlog's own default would print the local variables of an
# exception's frames.
_configure_structlog(logging.INFO, _plain_line, None)
