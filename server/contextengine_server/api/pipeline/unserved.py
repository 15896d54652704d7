"""The rpcs that are part of the contract and not served by this version, and what will complete
each.

A table, so that an rpc is never missing by accident: with one that is neither served nor listed
here, or both, the server does not start.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from google.protobuf.message import Message

from contextengine_server.errors import FieldViolation, NotYetServed

_PACKAGE = "contextengine.v1"
_COMPRESSOR = "the compressor and layered engines"

UNSERVED: dict[str, str] = {}
"""Method to what completes it."""

FIELDS = {
    "AssembleRequest": {
        "memory_sections": _COMPRESSOR,
    },
}
"""Fields of rpcs that are served, which say what the reply must hold or what is to be done, and
what completes each. To pass over them in silence would answer another question than the one that
was asked."""

VALUES = {"SearchRequest": {"scope": _COMPRESSOR}}
"""Fields of which one value asks for what is not there yet, and what completes it: the memory of
agents."""


def refuse(method: str) -> NoReturn:
    """Raises NotYetServed for a method of the table."""
    completed_by = UNSERVED[method]
    raise NotYetServed(
        f"{method} is part of the contract and not served by this version; it comes with"
        f" {completed_by}",
        metadata={"rpc": method, "completed_by": completed_by},
    )


def refuse_fields(request: Message) -> None:
    """Raises NotYetServed where the request has a field of the table."""
    descriptor = request.DESCRIPTOR
    for name, completed_by in FIELDS[descriptor.name].items():
        given = request.HasField if descriptor.fields_by_name[name].has_presence else None
        if given(name) if given is not None else getattr(request, name):
            refuse_field(name, completed_by)


def refuse_field(name: str, completed_by: str) -> NoReturn:
    """Raises NotYetServed for a field, or for what it asks for."""
    text = f"is part of the contract and not served by this version; it comes with {completed_by}"
    raise NotYetServed(
        f"{name}: {text}",
        violations=[FieldViolation(name, text)],
        metadata={"field": name, "completed_by": completed_by},
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
