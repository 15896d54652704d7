"""The columns that tables are made of: of types that SQLite and PostgreSQL share."""

from __future__ import annotations

import sqlalchemy as sa


def key(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, primary_key=True, nullable=False)


def text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def maybe(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=True)


def flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False)


def octets(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=False)
