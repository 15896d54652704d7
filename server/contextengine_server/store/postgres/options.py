"""What a URL says: the database, and how it is used."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import msgspec

SCHEMES = ("postgresql", "postgres")
URLS = "postgresql://user:password@host:port/database"

_MOST_CONNECTIONS = 1000


class PostgresOptions(msgspec.Struct, frozen=True):
    """A URL in parts."""

    dsn: str
    """What the driver is told: all but our own options."""
    pool: int = 10
    """The most connections for all but the writer of commits and the look-ups of heads, which have
    one each."""
    wait_s: float = 5.0
    """How long a call waits for a connection that is free, and for one to be made."""
    prepared: bool = True
    """Whether statements are prepared once for each connection. Not where a pooler lends
    connections for a transaction (PgBouncer before 1.21)."""


def parse(url: str) -> PostgresOptions:
    """Raises ValueError where the URL names no database or has an option that is wrong: a sentence
    without its subject, and without the password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError(f"must be {URLS}") from None
    if parts.scheme not in SCHEMES or not url.startswith(f"{parts.scheme}://"):
        raise ValueError(f"must be {URLS}")
    if not parts.path.strip("/"):
        raise ValueError(f"must name a database: {URLS}")
    theirs: list[tuple[str, str]] = []
    ours: dict[str, str] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name in ("pool", "wait", "prepared"):
            ours[name] = value
        else:
            theirs.append((name, value))
    dsn = urlunsplit(parts._replace(query=urlencode(theirs, safe="/", quote_via=quote)))
    return PostgresOptions(
        dsn,
        pool=_whole("pool", ours.get("pool", "10"), 1, _MOST_CONNECTIONS),
        wait_s=float(_whole("wait", ours.get("wait", "5"), 1, 600)),
        prepared=_yes("prepared", ours.get("prepared", "true")),
    )


def place(url: str) -> str:
    """The database without a password: `postgresql://user@host:port/database`."""
    try:
        parts = urlsplit(url)
        user = f"{parts.username}@" if parts.username else ""
        hosts = parts.netloc.rpartition("@")[2]
        return f"postgresql://{user}{hosts}{parts.path}"
    except ValueError:
        return "postgresql:"


def _whole(name: str, said: str, least: int, most: int) -> int:
    if not said.isascii() or not said.isdigit() or not least <= int(said) <= most:
        raise ValueError(f"must say {name}=N with N from {least} to {most}")
    return int(said)


def _yes(name: str, said: str) -> bool:
    if said not in ("true", "false"):
        raise ValueError(f"must say {name}=true or {name}=false")
    return said == "true"
