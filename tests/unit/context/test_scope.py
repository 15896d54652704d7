"""A scope reads something only where all three of its names are there (law 8)."""

from __future__ import annotations

import pytest

from contextengine_server.context.scope import Scope


@pytest.mark.parametrize(
    ("scope", "complete"),
    [
        (Scope("t", "a", "s"), True),
        (Scope("", "a", "s"), False),
        (Scope("t", "", "s"), False),
        (Scope("t", "a", ""), False),
        (Scope("t", "", ""), False),
        (Scope("", "", "s"), False),
        (Scope("", "", ""), False),
    ],
)
def test_a_scope_is_complete_with_all_three_names(scope: Scope, complete: bool) -> None:
    assert scope.complete is complete
