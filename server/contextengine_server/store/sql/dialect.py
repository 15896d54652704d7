"""What databases say each in its own way."""

from __future__ import annotations

import msgspec

from .clauses import SESSION
from .columns import KEY


class Dialect(msgspec.Struct, frozen=True):
    """How one database says what SQL leaves open. Braces stand for a column, an index or a
    parameter."""

    true: str
    """A flag that is set, as a value."""
    is_true: str
    """Whether a flag is set: `{} = 1`. Spelled as the partial indexes spell it, because an index
    with a condition serves only a statement that states the condition."""
    is_false: str
    greatest: str
    """The function that answers the greatest of its arguments."""
    least: str
    no_bytes: str
    """Bytes of no length, as a value."""
    through: str
    """Behind a table: read it by this index and no other. Empty where the database needs no such
    word."""
    among: str
    """Behind a column: it is one of those that a parameter lists."""
    bytes_of: str
    """How many bytes a text takes."""
    hashed: str = "{}"
    """A text of any length as it stands in a key: PostgreSQL's keys take 2,700 bytes at most."""
    key: tuple[str, ...] = KEY
    """What names a session in its head, and in what its requests were answered with."""
    session: str = SESSION
    """The rows of one session in these tables."""
    own_key: tuple[str, ...] = KEY
    """What names a session in its messages and summaries."""
    own: str = SESSION
    """The rows of one session in these."""
    own_of_tenant: str = "tenant = :tenant"
    """The messages and summaries of a tenant's sessions."""
