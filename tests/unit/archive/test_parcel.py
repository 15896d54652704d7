"""What an object is: rows come back as they were, and nothing else does."""

from __future__ import annotations

import gzip
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from contextengine_server.archive.parcel import FORMAT, ObjectDamaged, packed, unpacked
from contextengine_server.store.archives import ArchivedObject
from contextengine_server.store.rows import MessageRow, SessionHead, SummaryRow
from contextengine_server.testing.store.rows import SCOPE, message, summary

HEAD = SessionHead(SCOPE, "life", 7, 3)

rows = st.lists(
    st.builds(
        MessageRow,
        sequence=st.integers(1, 2**62),
        role=st.integers(0, 9),
        tokens=st.integers(0, 2**62),
        content_hash=st.binary(max_size=16),
        body=st.binary(max_size=300),
        created_revision=st.integers(0, 2**62),
        host_id=st.text(max_size=8),
        time_ms=st.none() | st.integers(-(2**62), 2**62),
        pinned=st.booleans(),
    ),
    max_size=600,
)


def row_of(data: bytes) -> ArchivedObject:
    digest = hashlib.sha256(data).digest()
    return ArchivedObject(SCOPE, "name", "life", digest, len(data), 0, 0, False, 0)


@given(messages=rows, texts=st.lists(st.text(), max_size=5))
def test_what_goes_in_comes_out(messages: list[MessageRow], texts: list[str]) -> None:
    summaries = [
        replace(summary(f"s{at}", 1, 2), text=text, children=(text, "b"))
        for at, text in enumerate(texts)
    ]
    data = packed(HEAD, messages, summaries)
    assert data == packed(HEAD, messages, summaries)
    found: tuple[list[MessageRow], list[SummaryRow]] = unpacked(data, row_of(data), HEAD)
    assert found == (messages, summaries)


def test_its_first_line_says_what_it_is() -> None:
    data = packed(HEAD, [message(1), message(2)], [summary("a", 1, 2)])
    line, _, body = gzip.decompress(data).partition(b"\n")
    assert json.loads(line) == {
        "format": FORMAT,
        "tenant": "acme",
        "agent": "main",
        "session": "s1",
        "incarnation": "life",
        "revision": 7,
        "messages": 2,
        "summaries": 1,
        "bytes": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
    }


@pytest.mark.parametrize("at", [0, 5, 40, -1])
def test_one_byte_is_enough(at: int) -> None:
    data = bytearray(packed(HEAD, [message(1)], []))
    row = row_of(bytes(data))
    data[at] ^= 1
    with pytest.raises(ObjectDamaged, match="SHA-256"):
        unpacked(bytes(data), row, HEAD)


@pytest.mark.parametrize(
    "other",
    [
        replace(HEAD, incarnation="another"),
        replace(HEAD, revision=8),
        replace(HEAD, scope=SCOPE._replace(tenant="beta")),
    ],
)
def test_an_object_is_of_one_session_alone(other: SessionHead) -> None:
    data = packed(HEAD, [message(1)], [])
    with pytest.raises(ObjectDamaged, match="another session"):
        unpacked(data, row_of(data), other)


def test_what_is_no_such_object_is_damaged() -> None:
    for data in (b"", b"nothing", gzip.compress(b"{}"), packed(HEAD, [message(1)], [])[:-9]):
        with pytest.raises(ObjectDamaged):
            unpacked(data, row_of(data), HEAD)
    line = gzip.decompress(packed(HEAD, [message(1)], [])).partition(b"\n")[0]
    short = gzip.compress(line + b"\n")
    with pytest.raises(ObjectDamaged, match="cannot be read"):
        unpacked(short, row_of(short), HEAD)
