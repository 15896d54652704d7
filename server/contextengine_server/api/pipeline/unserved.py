"""The rpcs that are part of the contract and not served by this version, and what will complete
each.

A table, so that an rpc is never missing by accident: with one that is neither served nor listed
here, or both, the server does not start.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from contextengine_server.errors import NotYetServed

UNSERVED: dict[str, str] = {}
"""Method to what completes it."""


def refuse(method: str) -> NoReturn:
    """Raises NotYetServed for a method of the table."""
    completed_by = UNSERVED[method]
    raise NotYetServed(
        f"{method} is part of the contract and not served by this version; it comes with"
        f" {completed_by}",
        metadata={"rpc": method, "completed_by": completed_by},
    )


def check(served: Iterable[str], contract: Iterable[str]) -> None:
    """Raises ValueError unless each method of the contract is either served or in the table, and
    none is unknown."""
    done, known = set(served), set(contract)
    problems = [
        *(
            f"{method} is neither served nor in api/pipeline/unserved.py"
            for method in sorted(known - done - UNSERVED.keys())
        ),
        *(
            f"{method} is served and in api/pipeline/unserved.py"
            for method in sorted(done & UNSERVED.keys())
        ),
        *(
            f"{method} is not an rpc of the contract"
            for method in sorted((done | UNSERVED.keys()) - known)
        ),
    ]
    if problems:
        raise ValueError("; ".join(problems))
