"""Tool payloads as OpenClaw's projection preserves them: calls by the shape of their input, results
redacted ("Payloads and secrets" in docs/projection.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from .records import shape

UNSERIALISABLE = "[unserializable payload omitted]"
CIRCULAR = "[Circular]"
METADATA = ("type", "name", "id", "callId", "toolCallId", "toolUseId")
"""What a payload keeps of its envelope, in this order."""

_SENSITIVE = frozenset(
    {
        "apikey", "token", "secret", "password", "credential", "credentials", "authorization",
        "privatekey", "accesstoken",
        "refreshtoken", "clientsecret", "jwt", "session", "signature", "cookie", "key", "passwd",
        "passphrase",
    }
)  # fmt: skip
_ENVIRONMENT = re.compile(r".*_(?:KEY|TOKEN|SECRET|PASSWORD)")
_SHORT, _FIRST, _LAST = 18, 6, 4


def mask(value: str) -> str:
    """A secret's shape: `***`, or its ends where it is long enough not to be told by them."""
    return "***" if len(value) < _SHORT else f"{value[:_FIRST]}…{value[-_LAST:]}"


def sensitive(key: str) -> bool:
    """True where the value under this key is a secret by its name."""
    return key.lower().replace("_", "").replace("-", "") in _SENSITIVE or bool(
        _ENVIRONMENT.fullmatch(key.upper())
    )


def call_payload(record: dict[str, Any], redact: Callable[[str], str]) -> dict[str, Any]:
    """A call: its metadata, and the structure of its input. No value of the input leaves."""
    payload = _metadata(record, redact)
    given = record.get("input", record.get("arguments"))
    if given is not None:
        payload["inputShape"] = shape(given)
    return payload


def result_payload(record: dict[str, Any], redact: Callable[[str], str]) -> dict[str, Any]:
    """A result: its metadata, then all else with secrets masked."""
    rest = {key: value for key, value in record.items() if key not in METADATA}
    return _metadata(record, redact) | {
        key: redacted(key, value, redact) for key, value in rest.items()
    }


def redacted(
    key: str, value: Any, redact: Callable[[str], str], above: tuple[int, ...] = ()
) -> Any:
    """A value with secrets masked, by their form and by the names of the keys that they stand
    under. Numbers and truth values too."""
    if isinstance(value, dict | list):
        if id(value) in above:
            return CIRCULAR
        inner = (*above, id(value))
        if isinstance(value, list):
            return [redacted(key, child, redact, inner) for child in value]
        return {name: redacted(name, child, redact, inner) for name, child in value.items()}
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    clean = mask(text) if sensitive(key) and text else redact(text)
    return value if clean == text else clean


def pretty(payload: Any) -> str:
    """JSON as `JSON.stringify(payload, null, 2)` writes it: key order kept, nothing escaped but
    what must be."""
    try:
        return json.dumps(_numbers(payload), indent=2, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return UNSERIALISABLE


def _numbers(value: Any) -> Any:
    """JavaScript has no 3.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [_numbers(inner) for inner in value]
    if isinstance(value, dict):
        return {key: _numbers(inner) for key, inner in value.items()}
    return value


def _metadata(record: dict[str, Any], redact: Callable[[str], str]) -> dict[str, Any]:
    return {
        key: redacted(key, record[key], redact)
        for key in METADATA
        if isinstance(record.get(key), str) and record[key].strip()
    }
