"""A compaction that found nothing to do is queued again once another outcome may be expected."""

from __future__ import annotations

import pytest

from contextengine_server.session.session import RETRY_GROWTH, PendingCompaction

TOTAL, AVAILABLE = 50_000, 16_000
GROWTH = AVAILABLE // RETRY_GROWTH


@pytest.mark.parametrize(
    ("generation", "total", "available", "stands"),
    [
        (3, TOTAL, AVAILABLE, True),
        (3, TOTAL + GROWTH, AVAILABLE, True),
        (3, TOTAL + GROWTH + 1, AVAILABLE, False),
        (4, TOTAL, AVAILABLE, False),
        (3, TOTAL, AVAILABLE - 1, False),
        (3, TOTAL, AVAILABLE + 1, True),
    ],
)
def test_until_the_session_has_grown_or_the_budget_shrinks(
    generation: int, total: int, available: int, stands: bool
) -> None:
    pending = PendingCompaction(3, TOTAL, AVAILABLE)
    assert pending.stands(generation, total, available) is stands
