"""The archive as the settings have it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from contextengine_server.api.pipeline.auth import ConfigurationError
from contextengine_server.archive.archived_store import ArchivedStore
from contextengine_server.archive.cold_room import ColdRoom
from contextengine_server.archive.objects import Bucket, BucketOptions, credentials_in
from contextengine_server.commands.sessions.archive import (
    ArchiveRule,
    ArchiveSessions,
    Archivist,
)
from contextengine_server.config.lifetime.archive import ArchiveSettings
from contextengine_server.config.policy import MILLISECOND
from contextengine_server.config.settings import Settings
from contextengine_server.session.sweeper import Sweeper
from contextengine_server.store.protocols import Store
from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.wiring.core import Core


def cold_room_of(settings: ArchiveSettings, store: Store, clock_ms: Callable[[], int]) -> ColdRoom:
    """The archive of a store. Asks nobody. Raises ConfigurationError where the credentials cannot
    be read, or what speaks S3 is not installed."""
    if settings.url and find_spec("obstore") is None:
        raise ConfigurationError(
            "archive.url is set, and what speaks S3 is not installed: pip install"
            " 'contextengine-server[archive]'"
        )
    bucket = Bucket(bucket_options_of(settings)) if settings.url else None
    return ColdRoom(
        store,
        bucket,
        clock_ms,
        kept_ms=settings.keep // MILLISECOND,
        max_bytes=settings.max_session,
    )


def with_archive(
    settings: ArchiveSettings, store: Store, clock_ms: Callable[[], int]
) -> tuple[ArchivedStore, ColdRoom]:
    """A store whose sessions come back at the first touch, and where they come from."""
    room = cold_room_of(settings, store, clock_ms)
    return ArchivedStore(store, room), room


def bucket_options_of(settings: ArchiveSettings) -> BucketOptions:
    """Where the bucket is, and who asks. Raises ConfigurationError."""
    bucket, _, prefix = settings.url.removeprefix("s3://").partition("/")
    return BucketOptions(
        bucket,
        prefix.strip("/"),
        settings.endpoint,
        settings.region,
        _credentials(settings),
        settings.timeout.total_seconds(),
    )


def _credentials(settings: ArchiveSettings) -> dict[str, str]:
    if settings.credentials_file:
        try:
            return credentials_in(Path(settings.credentials_file))
        except ValueError as error:
            raise ConfigurationError(f"archive.credentials_file: {error}") from error
    found = {
        "access_key_id": os.environ.get(settings.access_key_env, ""),
        "secret_access_key": os.environ.get(settings.secret_key_env, ""),
    }
    if not any(found.values()):
        return {}
    if not all(found.values()):
        raise ConfigurationError(
            "archive: of the environment variables that access_key_env and secret_key_env name, one"
            " is set and the other is not"
        )
    token = os.environ.get("AWS_SESSION_TOKEN", "")
    return {**found, "session_token": token} if token else found


def archive_sweepers(
    settings: Settings, core: Core, room: ColdRoom, metrics: Metrics
) -> Sequence[Sweeper]:
    """What brings sessions into the archive while the server runs; where there is one."""
    archive = settings.archive
    _measured(room, metrics)
    if not archive.url or archive.interval is None:
        return ()
    work = archive_sessions_of(archive, core.store, room, core.clock_ms)
    return [Archivist(work, archive.interval.total_seconds())]


def _measured(room: ColdRoom, metrics: Metrics) -> None:
    counts = room.counts
    for name, of, what, unit in (
        ("archived", lambda: counts.archived, "Sessions that went into the archive", "{session}"),
        ("restored", lambda: counts.restored, "Sessions that came back", "{session}"),
        ("restored_bytes", lambda: counts.restored_bytes, "Bytes of their objects", "By"),
        (
            "failed",
            lambda: counts.failed,
            "Sessions that were asked for and did not come",
            "{session}",
        ),
        ("damaged", lambda: counts.damaged, "Of these, those whose object is damaged", "{session}"),
        ("erased", lambda: counts.erased, "Objects that were erased", "{object}"),
    ):
        metrics.gauge(f"contextengine.archive.{name}", of, f"{what}, since the start", unit=unit)


def archive_sessions_of(
    settings: ArchiveSettings, store: Store, room: ColdRoom, clock_ms: Callable[[], int]
) -> ArchiveSessions:
    """What brings sessions into the archive by the rules."""
    rules = [
        ArchiveRule(rule.after // MILLISECOND, rule.tenant, rule.agent, rule.session)
        for rule in settings.rules
    ]
    return ArchiveSessions(store, rules, clock_ms, room.put_away, room.clean)
