"""The hash that names what a summary says and what it was made of, so that an altered row is told
apart. Those that are stored are taken as they are; one whose bytes are no text gets a hash that
nothing has."""

from __future__ import annotations

import json
from hashlib import blake2b

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column(
        "summaries",
        sa.Column("content_hash", sa.LargeBinary(), nullable=False, server_default=""),
    )
    if op.get_context().dialect.name != "sqlite":
        return  # before this revision there was no other store
    db = op.get_bind()
    rows = db.execute(
        sa.text("SELECT rowid, CAST(text AS BLOB), CAST(children AS BLOB) FROM summaries")
    )
    hashes = [{"row": row, "hash": _hash(text, children)} for row, text, children in rows]
    if hashes:
        db.execute(sa.text("UPDATE summaries SET content_hash = :hash WHERE rowid = :row"), hashes)


def _hash(text: bytes, children: bytes) -> bytes:
    try:
        text.decode()
        named = [text, *(child.encode() for child in json.loads(children))]
    except (ValueError, AttributeError, TypeError):
        return b"\0"
    digest = blake2b(digest_size=16)
    for each in named:
        digest.update(len(each).to_bytes(8, "big"))
        digest.update(each)
    return digest.digest()


def downgrade() -> None:
    raise RuntimeError("migrations go forward only: restore a backup made before the upgrade")
