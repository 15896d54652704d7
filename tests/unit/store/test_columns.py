"""Rows come back from their columns as they were, also from a database that has no type for a
flag."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import astuple, fields

from contextengine_server.context.scope import Scope
from contextengine_server.store.debts import Debt
from contextengine_server.store.model_jobs import ModelJob
from contextengine_server.store.rows import (
    Assignment,
    MessageRow,
    SessionHead,
    Spawn,
    StoredReply,
    SummaryRow,
)
from contextengine_server.store.sql import columns

SCOPE = Scope("acme", "main", "s1")


def filled(row: type, **given: Any) -> Any:
    """A row whose every field has a value of its own; flags are set."""
    values: dict[str, Any] = {}
    for number, field in enumerate(fields(row), 1):
        kind = str(field.type)
        if field.type is bool:
            values[field.name] = True
        elif field.type is bytes:
            values[field.name] = b"%d" % number
        elif "tuple" in kind:
            values[field.name] = (f"a{number}", f"b{number}")
        elif "str" in kind:
            values[field.name] = f"text {number}"
        else:
            values[field.name] = number
    return row(**{**values, **given})


ROWS: list[tuple[Any, Callable[[Any], Any], Callable[[Any], Any], int]] = [
    (filled(SessionHead, scope=SCOPE), columns.head_values, columns.heads, 3),
    (filled(MessageRow), columns.message_values, columns.messages, 0),
    (filled(SummaryRow), columns.summary_values, columns.summaries, 0),
    (filled(StoredReply), columns.reply_values, columns.replies, 0),
    (filled(Debt, scope=SCOPE), columns.debt_values, columns.debts, 3),
    (filled(ModelJob), columns.job_values, columns.jobs, 0),
    (filled(Spawn), columns.spawn_values, columns.spawns, 0),
]


@pytest.mark.parametrize("flags", [True, False])
@pytest.mark.parametrize(
    ("row", "values", "rows", "named"), ROWS, ids=[type(row).__name__ for row, *_ in ROWS]
)
def test_a_row_comes_back_whole(
    row: Any,
    values: Callable[[Any], Any],
    rows: Callable[[Any], Any],
    named: int,
    flags: bool,
) -> None:
    """`named`: how many columns name the session, which are put before the others."""
    if not flags:
        off = {one.name: False for one in fields(row) if one.type is bool}
        row = type(row)(**{one.name: getattr(row, one.name) for one in fields(row)} | off)
    stored = [int(one) if isinstance(one, bool) else one for one in values(row)]
    (found,) = rows([[*SCOPE[:named], *stored]])
    assert found == row
    assert [type(one) for one in astuple(found)] == [type(one) for one in astuple(row)]


def test_an_assignment_comes_back_whole() -> None:
    choice = Assignment("acme", "main", "s1", "dag", b'{"tail": 8}')
    assert columns.assignments([astuple(choice)]) == [choice]


def test_children_that_are_no_list_any_more_are_none() -> None:
    row = filled(SummaryRow)
    stored = list(columns.summary_values(row))
    stored[columns.SUMMARY.index("children")] = "{"
    (found,) = columns.summaries([stored])
    assert (found.children, found.text) == ((), row.text)


def test_a_session_is_named_beside_other_parameters() -> None:
    assert columns.named(SCOPE, after=3) == {
        "tenant": "acme",
        "agent": "main",
        "session": "s1",
        "after": 3,
    }
