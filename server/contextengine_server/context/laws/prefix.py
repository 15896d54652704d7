"""Law 10, prefix: equal epochs, then the earlier assembly is a prefix of the later."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

SEED = b"contextengine"
HASH_BYTES = 16


def chain(before: bytes, item_hash: bytes) -> bytes:
    """The hash of a list that goes on with one more item."""
    return blake2b(before + item_hash, digest_size=HASH_BYTES).digest()


def chained(hashes: Sequence[bytes]) -> list[bytes]:
    """The hash of every beginning of a list: the n-th names its first n items; the first, for none,
    is `SEED`."""
    links = [SEED]
    for item_hash in hashes:
        links.append(chain(links[-1], item_hash))
    return links


def is_prefix(earlier: Sequence[bytes], later: Sequence[bytes]) -> bool:
    """True where the later list of item hashes begins with the earlier."""
    return len(earlier) <= len(later) and list(later[: len(earlier)]) == list(earlier)
