"""Law 9, determinism: same revision, same request, same configuration, same bytes.

Held by tests over `fingerprint`: the bytes of an assembly, whoever made it, whenever.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from ..message import Slot


def fingerprint(slots: Iterable[Slot]) -> bytes:
    """Names the bytes of an assembly."""
    whole = blake2b(digest_size=16)
    for slot in slots:
        whole.update(slot.frame)
    return whole.digest()
