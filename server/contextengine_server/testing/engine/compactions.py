"""Compactions: each shrinks the view, they come to an end, and what was over budget fits then."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.context.budget import cell
from contextengine_server.context.lawful import least
from contextengine_server.engines.contract import CompactionGoal, CompactionStep, Engine
from contextengine_server.engines.delegation import delegate_compaction_to_runtime

from .case import EngineCase
from .random_sessions import RandomSession, sessions
from .random_trials import compacted, unfinished
from .trial import FLOOR, SHARES, Trial, budgets, hold, outline, trial_of

MOST = 500
"""So many compactions of one small session do not come to an end."""


class CompactionCases(EngineCase):
    """An engine that never compacts passes as long as it evicts what does not fit."""

    def test_compactions_shrink_the_view_and_come_to_an_end(self) -> None:
        """With a summarizer that writes as much as it may; the view stays lawful."""

        @self.search
        @given(sessions(), self.any_engine(), st.sampled_from(SHARES), st.booleans())
        def holds(session: RandomSession, engine: Engine, share: int, forced: bool) -> None:
            one = trial_of(session.rows)
            [budget] = budgets(one.view.total, [share])
            for _ in range(MOST):
                if not one.compaction(engine, budget, force=forced):
                    break
            else:
                raise AssertionError(f"{MOST} compactions of {one.view.steps} steps")
            hold(one, engine, budget)

        holds()

    def test_what_is_over_budget_fits_once_it_is_compacted_by_force(self) -> None:
        """Whoever made the summaries before; unless what no law lets go exceeds the budget together
        with the smallest summary. Nothing is left out by an engine that does not evict."""

        @self.search
        @given(compacted(), self.any_engine(), st.sampled_from(SHARES))
        def holds(one: Trial, engine: Engine, share: int) -> None:
            [budget] = budgets(one.view.total, [share])
            room = cell(budget)
            while engine.plan(one.view, room).over and one.compaction(engine, room, force=True):
                pass
            plan, needed = hold(one, engine, budget), least(one.view)
            assert not plan.over or needed + FLOOR > room, (
                f"{needed} tokens are needed, and {room} are there: {outline(plan)}"
            )
            if not engine.declared.evicts:
                said = plan.summaries
                assert said == one.view.summaries, "it never evicts, and leaves a summary out"

        holds()

    def test_a_compaction_covers_whole_steps_that_are_done(self) -> None:
        """Nothing that messages may still join, nothing that leads, and the summaries that it
        replaces lie within it."""

        @self.search
        @given(compacted(), self.any_engine(), st.sampled_from(SHARES), st.booleans())
        def holds(one: Trial, engine: Engine, share: int, reached: bool) -> None:
            [budget] = budgets(one.view.total, [share])
            goal = CompactionGoal(budget, force=not reached, floor=FLOOR, reached=reached)
            step, view = engine.compaction(one.view, goal), one.view
            if not isinstance(step, CompactionStep):
                assert step.reason.strip(), "it does not say why"
                return
            assert view.leading <= step.first <= step.last < view.steps
            assert not unfinished(view.atom(step.last))
            assert step.target_tokens > 0
            within = {
                summary.id
                for summary in view.summaries
                if step.first <= summary.first_step and summary.last_step <= step.last
            }
            assert set(step.replaces) == within, "summaries stand within it that it does not name"

        holds()

    def test_one_that_does_not_own_compaction_delegates_it(self) -> None:
        """Where a session is over its budget and the built-in compaction, when forced, would make a
        summary, so does it: nobody else makes one, so doing nothing would leave the session there
        for good."""

        @self.search
        @given(compacted(), self.any_engine(), st.sampled_from(SHARES))
        def holds(one: Trial, engine: Engine, share: int) -> None:
            [budget] = budgets(one.view.total, [share])
            goal = CompactionGoal(budget, force=True, floor=FLOOR)
            if engine.owns_compaction or one.view.view_tokens() <= goal.room:
                return
            if isinstance(delegate_compaction_to_runtime(one.view, goal), CompactionStep):
                step = engine.compaction(one.view, goal)
                assert isinstance(step, CompactionStep), (
                    f"it neither owns compaction nor delegates it: {step.reason}"
                )

        holds()
