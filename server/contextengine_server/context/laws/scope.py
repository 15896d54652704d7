"""Law 8, scope: every row read belongs to the scope. A scope that is not complete reads nothing."""

from __future__ import annotations

from .case import Case, Violation


def check(case: Case) -> Violation | None:
    """An incomplete scope shows nothing that is stored."""
    view = case.view
    if view.scope.complete:
        return None
    stored = any(entry.live_index < 0 for atom in view.atoms for entry in atom.entries)
    if stored or view.summaries or view.anchors:
        return Violation(8, "scope", "rows were read under an incomplete scope")
    return None
