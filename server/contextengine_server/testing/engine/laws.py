"""No plan breaks a law: by its segments, and by the list as it is sent, which the oracles judge."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.context.budget import cell
from contextengine_server.engines.contract import Engine

from .case import EngineCase
from .random_sessions import RandomSession, sessions
from .random_trials import compacted
from .trial import SHARES, Trial, budgets, hold, trial_of

shares = st.lists(st.sampled_from(SHARES), min_size=1, max_size=6)


class LawCases(EngineCase):
    """Whatever the session and the budget."""

    def test_no_plan_breaks_a_law(self) -> None:
        """Over random sessions, at budgets from a hundredth of them on."""

        @self.search
        @given(sessions(), self.any_engine(), shares)
        def holds(session: RandomSession, engine: Engine, chosen: list[int]) -> None:
            one = trial_of(session.rows)
            listed = one.listing()
            for budget in budgets(one.view.total, chosen):
                hold(one, engine, budget, view_of=listed)

        holds()

    def test_no_plan_beside_a_prompt_breaks_a_law(self) -> None:
        """What a prompt takes is not for items."""

        @self.search
        @given(sessions(), self.any_engine(), shares, st.integers(0, 3_000))
        def holds(session: RandomSession, engine: Engine, chosen: list[int], prompt: int) -> None:
            one = trial_of(session.rows)
            listed = one.listing()
            for budget in budgets(one.view.total, chosen):
                hold(one, engine, budget, min(prompt, cell(budget)), view_of=listed)

        holds()

    def test_no_plan_over_a_compacted_view_breaks_a_law(self) -> None:
        """Summaries of another engine or a host are there before this one is asked."""

        @self.search
        @given(compacted(), self.any_engine(), shares, st.sampled_from((0, 0, 700)))
        def holds(one: Trial, engine: Engine, chosen: list[int], prompt: int) -> None:
            listed = one.listing()
            for budget in budgets(one.view.total, chosen):
                hold(one, engine, budget, min(prompt, cell(budget)), view_of=listed)

        holds()
