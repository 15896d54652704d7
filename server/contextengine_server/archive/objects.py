"""Where objects are kept: a bucket of whatever speaks S3."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from obstore.store import S3Store

_CONNECT_S = 5.0
"""How long it is waited for a connection."""
_RETRIES = 3
_NO_BUCKET = "NoSuchBucket"
"""What S3 says where the bucket is missing, under the code that an object has which is missing."""


class ObjectsUnavailable(Exception):
    """The bucket cannot be used now, or not with these credentials; the text is for operators."""


class ObjectMissing(Exception):
    """There is no object of that name."""


class Objects(Protocol):
    """Objects by name, each written once."""

    async def put(self, name: str, data: bytes) -> None:
        """Writes an object; returns once it is stored. Raises ObjectsUnavailable."""

    async def get(self, name: str) -> bytes:
        """All of an object. Raises ObjectMissing, ObjectsUnavailable."""

    async def erase(self, name: str) -> None:
        """Erases an object, where there is one. Raises ObjectsUnavailable."""


class BucketOptions(msgspec.Struct, frozen=True):
    """Where a bucket is, and who asks."""

    bucket: str
    prefix: str = ""
    """What the names of all objects begin with."""
    endpoint: str = ""
    """The server's address; empty: Amazon's, in the region."""
    region: str = "us-east-1"
    credentials: Mapping[str, str] = {}
    """`access_key_id`, `secret_access_key` and maybe `session_token`; empty: those that the machine
    or its role has."""
    timeout_s: float = 30.0
    """One request; with what it is sent again, no more than twice that."""


class Bucket:
    """`Objects` in a bucket."""

    def __init__(self, options: BucketOptions) -> None:
        self._options = options
        self._opened: S3Store | None = None

    @property
    def _store(self) -> S3Store:
        if self._opened is None:
            self._opened = _opened(self._options)
        return self._opened

    async def put(self, name: str, data: bytes) -> None:
        """Writes an object."""
        await self._done(self._store.put_async, name, data)

    async def get(self, name: str) -> bytes:
        """All of an object."""
        found = await self._done(self._store.get_async, name)
        return bytes(await self._done(found.bytes_async))

    async def erase(self, name: str) -> None:
        """Erases an object, where there is one."""
        with suppress(ObjectMissing):
            await self._done(self._store.delete_async, name)

    async def _done(self, ask: Any, *arguments: Any) -> Any:
        """What the library answers; what it raises, as it is meant."""
        from obstore.exceptions import BaseError

        try:
            return await ask(*arguments)
        except (BaseError, OSError, ValueError) as error:
            text = str(error).strip().partition("\n")[0]
            if isinstance(error, FileNotFoundError) and _NO_BUCKET not in str(error):
                raise ObjectMissing(text) from error
            raise ObjectsUnavailable(f"bucket {self._options.bucket!r}: {text}") from error


def _opened(options: BucketOptions) -> S3Store:
    """What the library makes of a bucket. Asks nobody. Raises ObjectsUnavailable where the library
    is not installed."""
    try:
        from obstore.store import S3Store
    except ImportError as error:
        raise ObjectsUnavailable(
            "what speaks S3 is not installed: pip install 'contextengine-server[archive]'"
        ) from error
    where: dict[str, Any] = {**options.credentials, "region": options.region}
    if options.endpoint:
        where["endpoint"] = options.endpoint
    return S3Store(
        options.bucket,
        prefix=options.prefix or None,
        virtual_hosted_style_request=False,
        client_options={
            "timeout": timedelta(seconds=options.timeout_s),
            "connect_timeout": timedelta(seconds=min(_CONNECT_S, options.timeout_s)),
            "allow_http": options.endpoint.startswith("http://"),
        },
        retry_config={
            "max_retries": _RETRIES,
            "retry_timeout": timedelta(seconds=options.timeout_s),
        },
        **where,
    )


_NAMES = ("access_key_id", "secret_access_key", "session_token")


def credentials_in(path: Path) -> dict[str, str]:
    """The credentials of the profile `default` in a file as Amazon's tools have it. Raises
    ValueError, without a word of what stands in it."""
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
        profile = dict(parser["default"])
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read") from error
    except (configparser.Error, KeyError):
        # What is wrong is told with the line, which may be the key.
        raise ValueError(f"{path} has no profile [default] with credentials") from None
    found = {name: profile[f"aws_{name}"] for name in _NAMES if f"aws_{name}" in profile}
    if not {*_NAMES[:2]} <= found.keys():
        raise ValueError(f"{path}: [default] lacks aws_access_key_id or aws_secret_access_key")
    return found
