"""Law 2, pending: the open calls of the newest assistant message are verbatim, with the results
there are."""

from __future__ import annotations

from .case import Case, Violation


def check(case: Case) -> Violation | None:
    """The newest atom is shown verbatim while calls of it stand open."""
    if case.view.atoms and case.view.atoms[-1].pending and not case.verbatim(case.view.steps - 1):
        return Violation(
            2, "pending", "open calls of the newest assistant message are not verbatim"
        )
    return None
