"""Law 10, prefix: equal epochs, then the earlier assembly is a prefix of the later."""

from __future__ import annotations

from collections.abc import Sequence


def is_prefix(earlier: Sequence[bytes], later: Sequence[bytes]) -> bool:
    """True where the later list of item hashes begins with the earlier."""
    return len(earlier) <= len(later) and list(later[: len(earlier)]) == list(earlier)
