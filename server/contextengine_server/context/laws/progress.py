"""Law 12, progress: a compaction that would not shrink the view is not committed and not tried
again on the same input."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b


def shrinks(before: int, after: int) -> bool:
    """True where a compaction makes the view smaller, in tokens as shown."""
    return after < before


def input_key(hashes: Sequence[bytes], configuration: str) -> str:
    """Names the input of a compaction: what it would read, and the configuration it would read it
    under."""
    whole = blake2b(configuration.encode(), digest_size=12)
    for item_hash in hashes:
        whole.update(item_hash)
    return whole.hexdigest()
