"""The laws and what else is promised, over real sessions."""

from __future__ import annotations

from contextengine_server.context.budget import cell
from contextengine_server.context.lawful import least

from .case import EngineCase
from .real_sessions import REAL_SHAPER
from .steadiness import Beginnings
from .trial import FLOOR, SHARES, budgets, hold, some, trial_of


class RealSessionCases(EngineCase):
    """As they end, and on their way."""

    def test_real_sessions_are_lawful_at_their_end(self) -> None:
        """At thirty budgets."""
        for _, rows in self.sessions():
            one = trial_of(rows, REAL_SHAPER)
            listed = one.listing()
            for engine in self.engines():
                for budget in budgets(one.view.total, SHARES):
                    hold(one, engine, budget, view_of=listed)

    def test_real_sessions_are_lawful_on_their_way(self) -> None:
        """At some budgets every ten messages."""
        for number, (_, rows) in enumerate(self.sessions()):
            total = trial_of(rows, REAL_SHAPER).view.total
            one = trial_of([], REAL_SHAPER)
            for at in range(0, len(rows), 10):
                one.add(rows[at : at + 10])
                listed = one.listing()
                for engine in self.engines():
                    for budget in budgets(total, some(SHARES, 3, seed=1_000 * number + at)):
                        hold(one, engine, budget, view_of=listed)

    def test_equal_epochs_of_real_sessions_begin_alike(self) -> None:
        """At a tenth, a third and the whole of each."""
        for _, rows in self.sessions():
            total = trial_of(rows, REAL_SHAPER).view.total
            for engine in self.engines():
                for budget in budgets(total, (10, 33, 100)):
                    one, seen = trial_of([], REAL_SHAPER), Beginnings()
                    for row in rows:
                        one.add([row])
                        seen.look(one, engine, cell(budget))

    def test_what_is_over_budget_fits_once_it_is_compacted(self) -> None:
        """Unless what no law lets go exceeds the budget together."""
        for _, rows in self.sessions():
            total = trial_of(rows, REAL_SHAPER).view.total
            for engine in self.engines():
                for budget in budgets(total, SHARES[::3]):
                    one, room = trial_of(rows, REAL_SHAPER), cell(budget)
                    while engine.plan(one.view, room).over and one.compaction(
                        engine, room, force=True
                    ):
                        pass
                    plan = hold(one, engine, budget)
                    needed = least(one.view)
                    assert not plan.over or needed + FLOOR > room, (
                        f"{needed} tokens are needed, and {room} are there"
                    )
