"""Base64 within texts: what is taken for it, and what is left alone."""

from __future__ import annotations

import re
import secrets
import string
from base64 import b64encode, encodebytes
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.wire.encoded_runs import (
    MIN_RUN_CHARS,
    MIN_URI_CHARS,
    may_hold_runs,
    without_runs,
)

BACK = "expand sequence 7 to read it"
SEED = bytes(range(256)) * 40
PROSE = st.text(st.sampled_from(string.ascii_letters + " .,;:!?()\n\t'\"{}éß漢"), max_size=300)


def noise(size: int, salt: int) -> bytes:
    """Bytes without a pattern, the same each time."""
    made = b""
    while len(made) < size:
        made += sha256(b"%d %d" % (salt, len(made))).digest()
    return made[:size]


def marker(data: bytes, media: str) -> str:
    digest = sha256(data).hexdigest()[:16]
    return f"[{media}, {len(data):,} bytes, sha256 {digest}: left out here; {BACK}]"


def found(text: str) -> str:
    """What is shown, where the cheap look and the whole one agree."""
    shown = without_runs(text, BACK)
    assert may_hold_runs(text.encode()) or shown == text
    return shown


@given(
    before=PROSE,
    after=PROSE,
    size=st.integers(MIN_RUN_CHARS, 9_000),
    salt=st.integers(0, 99),
    wrapped=st.booleans(),
)
def test_a_long_run_at_any_place_is_shown_as_what_it_is(
    before: str, after: str, size: int, salt: int, wrapped: bool
) -> None:
    # Whole lines, so that what is wrapped needs no padding to show its end.
    data = noise(size // 57 * 57, salt)
    run = encodebytes(data).decode() if wrapped else b64encode(data).decode()
    end = "\n" if wrapped else ""
    text = f"{before} {run} {after}"
    shown = f"{before} {marker(data, 'application/octet-stream')}{end} {after}"
    assert found(text) == shown
    assert found(shown) == shown  # what is shown holds none


@given(
    before=PROSE,
    after=PROSE,
    size=st.integers(MIN_URI_CHARS, 4_000),
    media=st.sampled_from(["image/png", "audio/x-wav", "image/svg+xml"]),
)
def test_a_data_uri_at_any_place_is_shown_as_what_it_says(
    before: str, after: str, size: int, media: str
) -> None:
    data = noise(size, 1)
    uri = f"data:{media};charset=utf-8;base64,{b64encode(data).decode()}"
    assert found(f"{before}![a]({uri}){after}") == f"{before}![a]({marker(data, media)}){after}"


def test_the_last_line_of_what_is_wrapped_is_known_by_its_padding() -> None:
    data = noise(57 * 60 + 1, 3)
    text = f"$ base64 f\n{encodebytes(data).decode()}Done\n"
    assert found(text) == f"$ base64 f\n{marker(data, 'application/octet-stream')}\nDone\n"


@pytest.mark.parametrize(
    ("begins", "media"),
    [(b"\x89PNG\r\n\x1a\n\x00", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"%PDF-1.7", None)],
)
def test_files_are_known_by_how_they_begin(begins: bytes, media: str | None) -> None:
    data = begins + noise(3_000, 2)
    assert found(b64encode(data).decode()) == marker(data, media or "application/pdf")


def jwt() -> str:
    parts = [b'{"alg":"RS256","typ":"JWT"}', b'{"sub":"1"}' * 300, noise(256, 5)]
    return ".".join(b64encode(part).decode().rstrip("=") for part in parts)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 100_000,
        "Ab1" * 2_000,
        "A" * 5_000,
        "0123456789abcdef" * 1_000,
        secrets.token_hex(8_000),
        sha256(b"").hexdigest(),
        b64encode(SEED).decode()[: MIN_RUN_CHARS - 1],
        "data:image/png;base64," + b64encode(SEED).decode()[: MIN_URI_CHARS - 8],
        jwt(),
        "\n".join(f"{at}" for at in range(5_000)),
        "\n".join(["thisIsAVeryLongIdentifierWithoutAnyPunctuation1"] * 200),
        "/usr/lib/python3.11/site-packages/contextengine.server/" * 200,
        "word " * 5_000,
        "GATTACA" * 2_000,
    ],
)
def test_what_is_no_encoding_is_left_alone(text: str) -> None:
    assert found(text) == text


@given(st.text(max_size=3_000))
def test_any_other_text_is_left_alone(text: str) -> None:
    if not re.search(r"[\w+/=-]{512}", text):
        assert found(text) == text
