"""What a URL says of a database in PostgreSQL, and what it never tells."""

from __future__ import annotations

import pytest

from contextengine_server.plugins.stores import kind_of
from contextengine_server.store.postgres.kind import KIND
from contextengine_server.store.postgres.options import PostgresOptions, parse


def test_a_url_is_the_drivers_but_for_our_own_options() -> None:
    assert parse("postgresql://me:pw@db:5433/ce") == PostgresOptions(
        "postgresql://me:pw@db:5433/ce"
    )
    assert parse(
        "postgres://a,b/ce?target_session_attrs=primary&pool=3&wait=2&prepared=false&sslmode=require"
    ) == PostgresOptions(
        "postgres://a,b/ce?target_session_attrs=primary&sslmode=require",
        pool=3,
        wait_s=2.0,
        prepared=False,
    )
    assert parse("postgresql:///ce?host=/run/postgresql").dsn.endswith("host=/run/postgresql")


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_both_schemes_name_it(scheme: str) -> None:
    kind = kind_of(f"{scheme}://db/ce")
    assert kind is KIND
    assert kind.shared
    assert kind.durable


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("postgresql:", "must be postgresql://"),
        ("postgresql:ce", "must be postgresql://"),
        ("postgresql://me:secret@db", "must name a database"),
        ("postgresql://me:secret@db/", "must name a database"),
        ("postgresql://me:secret@[db/ce", "must be postgresql://"),
        ("postgresql://me:secret@db/ce?pool=0", "must say pool=N with N from 1 to 1000"),
        ("postgresql://me:secret@db/ce?pool=many", "must say pool=N with N from 1 to 1000"),
        ("postgresql://me:secret@db/ce?pool=-1", "must say pool=N with N from 1 to 1000"),
        ("postgresql://me:secret@db/ce?wait=0", "must say wait=N with N from 1 to 600"),
        ("postgresql://me:secret@db/ce?prepared=no", "must say prepared=true or prepared=false"),
    ],
)
def test_what_names_no_database_is_refused_without_its_password(url: str, wrong: str) -> None:
    with pytest.raises(ValueError) as refused:
        KIND.check(url)
    assert str(refused.value).startswith(wrong)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://me:secret@db:5433/ce?pool=3", "postgresql://me@db:5433/ce"),
        ("postgres://db/ce?password=secret", "postgresql://db/ce"),
        ("postgresql://me:se%40cret@a,b:5/ce", "postgresql://me@a,b:5/ce"),
        ("postgresql://me:secret@[db/ce", "postgresql:"),
    ],
)
def test_people_are_not_told_the_password(url: str, place: str) -> None:
    assert KIND.place(url) == place
