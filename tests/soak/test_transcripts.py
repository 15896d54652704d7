"""What the quick tests hold on a sample of the transcripts, held on all of them."""

from tests.integration.replay.test_budgets import (
    test_no_law_is_broken_at_any_budget,
    test_what_exceeds_its_budget_fits_after_a_compaction,
)
from tests.integration.replay.test_ways import (
    test_a_restart_or_an_eviction_changes_no_byte,
    test_every_way_of_calling_gives_the_same_context,
)

__all__ = [
    "test_a_restart_or_an_eviction_changes_no_byte",
    "test_every_way_of_calling_gives_the_same_context",
    "test_no_law_is_broken_at_any_budget",
    "test_what_exceeds_its_budget_fits_after_a_compaction",
]
