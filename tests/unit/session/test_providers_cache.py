"""How long a provider should keep a prefix, where breakpoints stand best in it, and what stands
before the user's message so that it stays."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contextengine_server.context.layout import everything
from contextengine_server.context.plan import Keep, Plan
from contextengine_server.context.prefix import PrefixCache
from contextengine_server.context.summary_text import fenced
from contextengine_server.context.view import View
from contextengine_server.session.assembly.assembly import AssembleCall
from contextengine_server.session.assembly.preamble import PreambleSections, preamble_of
from contextengine_server.session.state import SessionState
from contextengine_server.session.usage.retention import (
    LONG,
    NONE,
    SHORT,
    breakpoints_of,
    retention_of,
)
from contextengine_server.testing.engine.trial import Trial, trial_of
from contextengine_server.usage.retention import SHORT_MS, CacheHistory, RetentionRules
from tests.unit.commands.house import S1, TENANT, Server
from tests.unit.engines.test_dag_compaction import said

ADAPTIVE = RetentionRules()
LEAST_TOKENS = 1_024
PROVEN = SessionState(cache=CacheHistory(proven=True))
VIEW = trial_of(said(("user", 10))).view


def kept(state: SessionState, view: View = VIEW, *, asked: int = 0, broke: bool = False) -> int:
    return retention_of(ADAPTIVE, asked, view, state, broke=broke)


def test_a_session_that_has_proved_itself_is_kept_for_long() -> None:
    assert (kept(SessionState()), kept(PROVEN)) == (SHORT, LONG) == (2, 3)
    assert kept(PROVEN, broke=True) == SHORT
    assert kept(PROVEN, asked=NONE) == NONE == 1
    assert kept(SessionState(), asked=LONG) == LONG
    assert kept(PROVEN, trial_of([]).view) == LONG


@pytest.mark.parametrize(("fixed", "told"), [("none", NONE), ("short", SHORT), ("long", LONG)])
def test_an_operator_may_fix_it(fixed: str, told: int) -> None:
    rules = RetentionRules(adaptive=False, fixed=fixed)
    for state in (SessionState(), PROVEN):
        assert retention_of(rules, 0, VIEW, state, broke=True) == told
    assert retention_of(rules, SHORT, VIEW, PROVEN, broke=False) == SHORT


def test_a_cache_that_is_gone_by_the_newest_message_is_begun_anew() -> None:
    rows = said(("user", 10))
    rows[-1].message.timestamp.FromMilliseconds(10 * SHORT_MS)
    late = trial_of(rows).view
    history = CacheHistory(proven=True, last_ms=1)
    assert kept(SessionState(cache=history), late) == LONG
    flat = replace(history, flat=5)
    assert kept(SessionState(cache=flat), late) == SHORT
    rows[-1].message.timestamp.FromMilliseconds(13 * SHORT_MS)
    long_gone = trial_of(rows)
    assert kept(SessionState(cache=history), long_gone.view) == SHORT


def breakpoints(one: Trial, outside: int = 0, plan: Plan | None = None) -> tuple[int, ...]:
    plan = plan or Plan(everything(one.view))
    joined = PrefixCache().join("e", plan, one.view)
    return breakpoints_of(one.view, plan.segments, joined, outside, LEAST_TOKENS)


def test_breakpoints_stand_behind_what_stays_what_was_said_and_the_end() -> None:
    rows = said(
        ("system", 1_200),
        *[("assistant", 300)] * 2,
        ("user", 90),
        *[("assistant", 300)] * 2,
    )
    one = trial_of(rows)
    assert breakpoints(one) == (0, 2, 5)
    one.compact(1, 2, "[40] before")
    assert breakpoints(one) == (1, 4)  # behind the summary the turn begins
    # A list that leaves out what leads ends its beginning nowhere.
    assert breakpoints(one, plan=Plan((Keep(3, 5, ""),))) == ()
    assert breakpoints(one, plan=Plan((Keep(3, 5, ""),)), outside=LEAST_TOKENS) == (2,)


def test_no_breakpoint_stands_in_what_is_too_short_to_be_kept() -> None:
    one = trial_of(said(("system", 100), ("assistant", 100), ("user", 90), ("assistant", 100)))
    whole = one.view.total
    turn, lead = whole - sum(atom.tokens for atom in one.view.atoms[2:]), one.view.atoms[0].tokens
    assert breakpoints(one, LEAST_TOKENS - whole - 1) == ()
    assert breakpoints(one, LEAST_TOKENS - whole) == (3,)
    assert breakpoints(one, LEAST_TOKENS - turn) == (1, 3)
    assert breakpoints(one, LEAST_TOKENS - turn - 1) == (3,)
    assert breakpoints(one, LEAST_TOKENS - lead) == (0, 1, 3)
    assert breakpoints(trial_of([]), LEAST_TOKENS) == ()


def test_a_preamble_says_what_there_is_in_its_order() -> None:
    assert preamble_of(PreambleSections()) == ""
    assert preamble_of(PreambleSections(date_time=" \n")) == ""
    everything = PreambleSections(
        date_time=" today ",
        inbound_metadata="from: somebody",
        channel_context="a room",
        retrieval_results="a document",
        active_skills="cooking",
        sender_trust="none",
    )
    assert preamble_of(everything) == "\n\n".join(
        [
            "[Date and time]\ntoday",
            f"[About this message]\n{fenced('from: somebody')}",
            "[Channel]\na room",
            "[Trust in senders]\nnone",
            "[Active skills]\ncooking",
            f"[Retrieved]\n{fenced('a document')}",
        ]
    )
    two = PreambleSections(channel_context="a room", active_skills="cooking")
    assert preamble_of(two) == "[Channel]\na room\n\n[Active skills]\ncooking"


async def test_a_preamble_is_counted_with_the_prompt(server: Server) -> None:
    await server.ingest("a")
    text = "[Channel]\na room of many words"
    made = await server.assemble(preamble=text)
    plain = await server.assemble()
    tokens = made.prompt_tokens - plain.prompt_tokens
    assert server.counter.count_text(text) <= tokens <= server.counter.count_text(text) + 8
    assert made.epoch == plain.epoch
    assert AssembleCall(TENANT, S1).preamble == ""
