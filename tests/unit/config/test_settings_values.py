"""Durations, sizes, stores and addresses as they are written in settings."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from contextengine_server.plugins.stores import kind_of
from tests.unit.config.test_settings import complaints, load

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("10s", 10),
        ("1500ms", 1.5),
        ("1h30m", 5400),
        ("2d", 172_800),
        ("90", 90),
        (90, 90),
        ("1.5s", 1.5),
        ("1m 5s", 65),
        ("PT1H30M", 5400),
    ],
)
def test_durations(written: Any, seconds: float) -> None:
    assert load("", {}, {"server.keepalive.time": written}).server.keepalive.time == timedelta(
        seconds=seconds
    )


@pytest.mark.parametrize("off", ["off", "false", "null", "'off'", "OFF"])
def test_idle_end_can_be_off(off: str) -> None:
    assert load(f"sessions: {{idle_end: {off}}}").sessions.idle_end is None
    assert load("sessions: {idle_end: 30m}").sessions.idle_end == timedelta(minutes=30)


@pytest.mark.parametrize("off", ["off", "'off'"])
def test_off_is_a_word_also_without_quotes(off: str) -> None:
    assert load(f"context_pruning: {{mode: {off}}}").context_pruning.mode == "off"
    written = f"engine: {{compressor: {{codexAppServerAuto: {off}}}}}"
    assert load(written).engine.options("compressor").codex_app_server_auto == "off"


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("64MiB", 64 << 20),
        ("1GiB", 1 << 30),
        (65536, 65536),
        ("2 MB", 2_000_000),
        ("70000", 70_000),
        ("0.5GiB", 1 << 29),
        ("64Mi", 64 << 20),
    ],
)
def test_sizes(written: Any, size: int) -> None:
    assert load("", {}, {"server.max_message_bytes": written}).server.max_message_bytes == size


@pytest.mark.parametrize(
    "url",
    [
        "",
        ":memory:",
        "sqlite:///:memory:",
        "sqlite:///",
        "sqlite://x",
        "sqlite:a.db",
        "memory:a",
        "memory://",
        "mysql://u:pw@h/d",
    ],
)
def test_what_names_no_store_is_refused(url: str) -> None:
    (said,) = complaints("", {}, {"store.url": url})
    assert said.startswith("store.url: must ")
    assert "pw" not in said


def test_a_store_with_one_way_to_write_is_not_asked_for_another() -> None:
    (said,) = complaints("", {}, {"store.url": "memory:", "store.durability": "normal"})
    assert said.startswith("store: durability is normal")
    assert "one way to write: leave it full" in said
    assert load("", {}, {"store.durability": "normal"}).store.durability == "normal"


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("a/b.db", "a/b.db"),
        ("./odd:name.db", "odd:name.db"),
        ("sqlite:///a.db", "a.db"),
        ("sqlite:////var/a.db", "/var/a.db"),
    ],
)
def test_places_of_stores(url: str, path: str) -> None:
    settings = load("", {}, {"store.url": url})
    assert kind_of(url).place(settings.store.url) == str(Path(path).absolute())


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("127.0.0.1:50051", True),
        ("127.8.9.1:0", True),
        ("localhost:1", True),
        ("[::1]:50051", True),
        ("unix:/run/ce.sock", True),
        ("0.0.0.0:50051", False),
        ("[::]:50051", False),
        ("10.0.0.4:50051", False),
        ("localhost.example.org:50051", False),
        ("127.0.0.1.example.org:50051", False),
    ],
)
def test_loopback(address: str, loopback: bool) -> None:
    assert load("", {}, {"server.address": address}).server.is_loopback is loopback


@pytest.mark.parametrize(
    "address", [":50051", "h:", "h:99999", "h:-1", "::1:50051", "unix:", "h:1x", "h:١"]
)
def test_addresses_that_are_none(address: str) -> None:
    assert complaints("", {}, {"server.address": address})[0].startswith("server.address: must ")
