"""Law 11, lossless: what was acknowledged is on disk and comes back byte for byte. Compaction,
masking and eviction change the view and never a stored row.

Held by tests over the store; `intact` is what `doctor` and the kill tests ask of a row.
"""

from __future__ import annotations

from collections.abc import Callable


def intact(body: bytes, content_hash: bytes, hasher: Callable[[bytes], bytes]) -> bool:
    """True where a stored message still has the content it was acknowledged with."""
    return hasher(body) == content_hash
