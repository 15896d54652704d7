"""What is taken out of JSON leaves JSON, and leaves nothing of a secret."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.summarize.payload_redaction import redact_payload
from contextengine_server.summarize.redaction import MARK, redact

KEY = "ghp_0123456789abcdefABCDEF0123456789abcd"
NAMES = st.sampled_from(
    ["token", "api_key", "DB_PASSWORD", "path", "n", "authorization", "ünicode"]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from([KEY, f"line\n{KEY}", "password=hunter2 x", "Bearer abcdefgh12345678", MARK])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(NAMES | st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ('{"token":123456789012,"ok":true}', '{"token":"[redacted]","ok":true}'),
        (
            '{ "a" : {"DB_PASSWORD":12345678901,"ok":true}, "cookie":"a=b; c=d"}',
            '{ "a" : {"DB_PASSWORD":"[redacted]","ok":true}, "cookie":"[redacted]"}',
        ),
        (
            r'{"code":"result.apiKey = args[++i];\n} else if"}',
            r'{"code":"result.apiKey = [redacted]\n} else if"}',
        ),
        (
            r'{"inner":"{\"token\":123456789012,\"ok\":true}"}',
            r'{"inner":"{\"token\":\"[redacted]\",\"ok\":true}"}',
        ),
        (rf'{{"text":"line\n{KEY}"}}', r'{"text":"line\n[redacted]"}'),
        (r'{"text":"\u0070assword: hunter2x"}', '{"text":"password: [redacted]"}'),
        (f'{{"{KEY}":1}}', '{"[redacted]":1}'),
        ('{"password":["hunter2x","b"]}', '{"password":["[redacted]","[redacted]"]}'),
        ('{"max_tokens": 4096, "x": 1}', '{"max_tokens": 4096, "x": 1}'),
        (f"plain {KEY}", "plain [redacted]"),
        ('{"token":123456789012,', '{"token":[redacted]'),
        ("\x1b[1mplain\x00", "\x1b[1mplain\x00"),
    ],
)
def test_what_is_shown_of_a_payload(given, shown):
    assert redact_payload(given) == shown


def test_an_escape_before_a_key_does_not_hide_it():
    for escape in "bfnrt":
        assert KEY not in redact(rf'{{"text":"line\{escape}{KEY}"}}')


@given(VALUES, st.sampled_from([None, 2]))
def test_json_stays_json_of_the_same_structure(value, indent):
    text = json.dumps(value, indent=indent)
    clean = redact_payload(text)
    if not isinstance(value, list | dict):
        return
    assert shape(json.loads(clean), value)
    assert KEY not in clean
    assert redact_payload(clean) == clean


@given(st.lists(st.integers() | st.text(alphabet="ab \n"), max_size=30))
def test_json_without_secrets_stays_byte_for_byte(value):
    text = json.dumps({"rows": value})
    assert redact_payload(text) == text


def shape(clean: Any, value: Any) -> bool:
    """True where a value has the structure of another: a name or a scalar may be marked."""
    if isinstance(value, dict):
        # Names that become the mark may fall together.
        assert isinstance(clean, dict)
        return all(shape(clean[name], inner) for name, inner in value.items() if name in clean)
    if isinstance(value, list):
        assert isinstance(clean, list)
        return len(clean) == len(value) and all(map(shape, clean, value))
    return clean == value or (isinstance(clean, str) and MARK in clean)
