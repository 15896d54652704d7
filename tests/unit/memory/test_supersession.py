"""Which facts hold, and what makes room: worked out from rows, in whatever order they are read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.context.scope import Scope
from contextengine_server.memory.extraction.extract import facts_in
from contextengine_server.memory.supersession import SaidFact, forgotten, new_facts, remembered
from contextengine_server.store.agent_facts import AgentFact

HERE, THERE = Scope("t", "a", "here"), Scope("t", "a", "there")


def said(text: str, sequence: int, time_ms: int) -> list[SaidFact]:
    return [SaidFact(fact, sequence, time_ms) for fact in facts_in("user", text)]


def told(*texts: str, scope: Scope = HERE, known: tuple[AgentFact, ...] = ()) -> list[AgentFact]:
    """The rows of what a session says, each text a message, beside what is known and behind it."""
    start = 1_000 * len(known)
    facts = [one for at, text in enumerate(texts, 1) for one in said(text, at, start + 100 * at)]
    return new_facts(known, facts, scope, 10_000)


def holding(facts: list[AgentFact]) -> list[str]:
    return [one.fact.value for one in remembered(facts) if not one.superseded_by]


def test_what_is_preferred_to_what_was_refused_holds_in_its_place() -> None:
    """PyClaw's fact 45. Of another kind both hold, and so do two refusals, and a liking of all that
    is of a kind."""
    facts = told("I don't want dark mode.", "I prefer light mode.")
    newest, older = remembered(facts)
    assert (newest.superseded_by, older.superseded_by) == ("", newest.fact.id)
    again = told("I do not like dark mode.", "I prefer light mode.", "I prefer sepia mode.")
    assert holding(again) == ["I prefer sepia mode"]
    for pair in (
        ("I don't like green tea.", "I don't like ginger tea."),
        ("I don't like green tea.", "I prefer window seats."),
        ("I don't like green tea.", "I like tea."),
        ("I like green tea.", "I prefer black tea."),
    ):
        assert len(holding(told(*pair))) == 2, pair


def test_the_newest_holds_and_the_older_points_to_it() -> None:
    facts = told("I prefer dark mode.", "I prefer light mode.", "I prefer sepia mode.")
    newest, *older = remembered(facts)
    assert newest.fact.value == "I prefer sepia mode"
    assert {one.superseded_by for one in older} == {newest.fact.id}


def test_what_will_not_be_done_takes_the_place_of_what_was_decided() -> None:
    assert holding(told("We will use Kubernetes.", "We won't use Kubernetes.")) == [
        "will not use Kubernetes"
    ]
    assert len(holding(told("We will use Kubernetes.", "We won't use Docker."))) == 2
    said = ("最后我们选择了方案B。", "最后我们选择了蓝色的标志。")
    assert len(holding(told(*said))) == 2, "`at last` is nothing that a decision is about"


def test_going_back_to_the_first_makes_it_hold_again() -> None:
    facts = told("I prefer dark mode.", "I prefer light mode.", "I prefer dark mode.")
    assert holding(facts) == ["I prefer dark mode"]
    [holds] = [one for one in remembered(facts) if not one.superseded_by]
    assert [source.sequence for source in holds.sources] == [1, 3]


def test_saying_it_again_is_no_second_fact() -> None:
    assert len(told("I prefer dark mode.", "I prefer dark mode!", "i prefer Dark mode")) == 1
    first = tuple(told("I prefer dark mode."))
    [again] = told("I prefer dark mode.", scope=THERE, known=first)
    [both] = remembered([*first, again])
    assert [source.scope for source in both.sources] == [HERE, THERE]


def test_the_same_messages_again_are_nothing_new() -> None:
    texts = ("We decided to use PostgreSQL for the database.", "Actually, use MySQL instead.")
    first = tuple(told(*texts))
    assert len(first) == 2
    assert told(*texts, known=first) == []


def test_what_replaces_takes_the_place_of_what_it_names() -> None:
    first = tuple(told("We decided to use PostgreSQL for the database."))
    more = told("We will use MySQL instead of PostgreSQL.", scope=THERE, known=first)
    assert holding([*first, *more]) == ["will use MySQL instead of PostgreSQL"]
    other = told("We will use Redis instead of Memcached.", scope=THERE, known=first)
    assert len(holding([*first, *other])) == 2


def test_a_correction_is_of_what_its_own_session_said() -> None:
    assert holding(told("We decided to use PostgreSQL.", "Actually, use MySQL.")) == ["use MySQL"]
    first = tuple(told("We decided to use PostgreSQL."))
    more = told("Actually, use MySQL.", scope=THERE, known=first)
    assert len(holding([*first, *more])) == 2


def test_a_message_of_the_future_is_said_now() -> None:
    facts = new_facts((), said("Call me Sam.", 1, 99_999), HERE, 10_000)
    assert [fact.said_ms for fact in facts] == [10_000]


def test_what_holds_no_more_makes_room_first_then_the_oldest() -> None:
    known = told("I like tea.", "I prefer dark mode.", "I prefer light mode.", "I like figs.")
    new = told("I like plums.", scope=THERE, known=tuple(known))
    values = {fact.id: fact.value for fact in known}

    def gone(most: int) -> list[str]:
        return [values[id] for id in forgotten(known, new, most)]

    assert gone(5) == []
    assert gone(4) == ["I prefer dark mode"]
    assert gone(3) == ["I prefer dark mode", "I like tea"]
    assert gone(1) == [
        "I prefer dark mode",
        "I like tea",
        "I prefer light mode",
        "I like figs",
    ]


ROWS = st.builds(
    lambda session, kind, subject, value, sequence, time: AgentFact(
        Scope("t", "a", session),
        f"{session}-{kind}-{value}-{sequence}-{time}",
        kind,
        subject,
        value,
        value,
        sequence,
        time,
        time,
    ),
    st.sampled_from("xy"),
    st.sampled_from(["preference", "decision"]),
    st.sampled_from("pq"),
    st.sampled_from("uvw"),
    st.integers(1, 3),
    st.integers(1, 3),
)


@given(st.lists(ROWS, unique_by=lambda row: row.id), st.randoms())
def test_one_fact_holds_of_each_subject_whatever_the_order(
    rows: list[AgentFact], order: object
) -> None:
    found = remembered(rows)
    order.shuffle(rows)  # type: ignore[attr-defined]
    assert remembered(rows) == found
    by_id = {one.fact.id: one for one in found}
    subjects = {(row.kind, row.subject) for row in rows}
    holds = [one for one in found if not one.superseded_by]
    assert {(one.fact.kind, one.fact.subject) for one in holds} == subjects
    assert len(holds) == len(subjects)
    for one in found:
        if one.superseded_by:
            newer = by_id[one.superseded_by]
            assert not newer.superseded_by
            assert newer.fact.place > one.fact.place
            assert newer.fact.value != one.fact.value
    assert sum(len(one.sources) for one in found) == len(rows)


@given(st.lists(ROWS, unique_by=lambda row: row.id), st.sampled_from("xy"))
def test_a_session_that_goes_leaves_what_the_others_say(rows: list[AgentFact], gone: str) -> None:
    left = [row for row in rows if row.scope.session != gone]
    subjects = {(row.kind, row.subject) for row in left}
    holds = [one for one in remembered(left) if not one.superseded_by]
    assert {(one.fact.kind, one.fact.subject) for one in holds} == subjects
    for one in holds:
        alike = [
            row for row in left if (row.kind, row.subject) == (one.fact.kind, one.fact.subject)
        ]
        assert one.fact == max(alike, key=lambda row: row.place)
