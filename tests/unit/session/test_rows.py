"""Between rows and the core: nothing that a row says is lost or changed on its way."""

from __future__ import annotations

import pytest
from msgspec.structs import asdict, replace

from contextengine_server.context.eviction import CommitSnapshot
from contextengine_server.context.work import at_once
from contextengine_server.errors import CorruptRow
from contextengine_server.session import rows
from contextengine_server.session.encoding import Encoding
from contextengine_server.session.rows import (
    facts_by_sequence,
    rendered,
    summary_cost,
    summary_of,
    summary_overhead,
)
from contextengine_server.session.state import SessionState, facts_of
from contextengine_server.store.rows import Facts, SummaryRow
from contextengine_server.tokens import MESSAGE_TOKENS, TokenCounter
from contextengine_server.wire.slots import item_of
from tests.unit.commands.house import (
    S1,
    TENANT,
    Server,
    assistant,
    incoming,
    result,
    scope,
    user,
)

ENCODING = Encoding(TokenCounter())
ROW = SummaryRow(
    id="s7-abcdef01",
    depth=2,
    first_sequence=3,
    last_sequence=19,
    message_count=17,
    source_tokens=900,
    tokens=80,
    text="What was said.",
    created_revision=21,
    first_step=2,
    last_step=9,
    span_start=11,
    span_end=911,
    before_view=1_000,
    before_total=1_100,
    before_fixed=120,
    before_peak=130,
    asked_before=True,
    children=("s1-00000001", "s2-00000002"),
    start_ms=1_700_000_000_000,
    end_ms=1_700_000_060_000,
    summarizer="cheap:model",
    fallback=True,
    generation=4,
    origin="host",
)


def test_a_summary_says_what_its_row_says() -> None:
    summary = summary_of(ROW, ENCODING.shaper)
    row, seen = asdict(ROW), asdict(summary)
    same = set(row) & set(seen)
    assert len(same) == 21
    assert {name: seen[name] for name in same} == {name: row[name] for name in same}
    assert summary.created == 21
    assert summary.before == CommitSnapshot(1_000, 1_100, 120, 130)
    assert summary.covered_tokens == 900


def test_a_summary_is_shown_as_its_row_is_rendered() -> None:
    summary = summary_of(ROW, ENCODING.shaper)
    (part,) = item_of(summary.slot.frame).message.parts
    assert part.text.text == rendered(ROW)
    assert summary.slot is summary.slot  # made once
    for told in (ROW.text, "17 messages", "2023-11-14", "untrusted", ROW.id):
        assert told in rendered(ROW)


def test_what_a_summary_costs_is_its_text_as_a_message() -> None:
    cost = summary_cost(ROW, ENCODING.shaper)
    assert cost == MESSAGE_TOKENS + ENCODING.count(rendered(ROW))
    # Framed as any other, it costs no more than the most that a frame may.
    assert cost - ENCODING.count(ROW.text) <= summary_overhead(ENCODING.count)


def test_a_summary_that_is_not_shown_honestly_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "verify", lambda facts, text: "it says nothing of its depth")
    with pytest.raises(CorruptRow) as refused:
        rendered(ROW)
    assert str(refused.value) == (
        "summary s7-abcdef01 cannot be shown honestly: it says nothing of its depth"
    )


async def test_every_stored_fact_is_what_a_whole_view_says(server: Server) -> None:
    """Of atoms, orphan results, late results, and what comes behind them."""
    batches = [
        [user("a", "1"), assistant("one", "2", "c1", "c2"), result("c1", "done", "3")],
        [user("b", "4"), result("c9", "orphan", "5"), assistant("two", "6", "c3")],
        [result("c2", "late", "7"), result("c3", "done", "8"), user("c", "9")],
    ]
    for batch in batches:
        await server.context.ingest.run(TENANT, S1, incoming(*batch), None)
    stored = {
        row.sequence: Facts(row.sequence, row.step, row.start, row.late_of)
        for row in await server.store.messages(scope())
    }
    async with server.core.sessions.open(scope(), None) as session:
        await server.core.sessions.reload(session, await server.head(), None)
        facts = at_once(facts_by_sequence(session.view))
        assert facts == {at: one for at, one in stored.items() if one.step is not None}
        assert stored[7].late_of == 2
        assert [at for at, one in facts.items() if one.start is not None] == [1, 2, 4, 6, 9]
        # What the head carries of it is what a fold of everything finds.
        assert facts_of(session.view, session.state.view) == (await server.state()).view


def test_a_state_that_cannot_be_read_is_a_damaged_row() -> None:
    assert SessionState.decode(b"") == SessionState()
    assert SessionState.decode(b'{"unknown":1}') == SessionState()
    with pytest.raises(CorruptRow, match=r"^the state of a session cannot be read \(.*\): restore"):
        SessionState.decode(b'{"depth":"x"}')


def test_inputs_that_were_refused_are_remembered_newest_last() -> None:
    state = SessionState()
    for at in range(20):
        state = state.refusing(str(at))
    assert state.refused == tuple(str(at) for at in range(4, 20))
    assert state.refusing("6").refused == (*(str(at) for at in range(4, 20) if at != 6), "6")


def test_the_most_that_a_frame_costs_is_what_the_longest_costs_without_a_text() -> None:
    longest = replace(
        ROW,
        id="s" + "9" * 9 + "-ffffffff",
        depth=9,
        message_count=999_999,
        start_ms=0,
        end_ms=4_102_444_799_000,
        text="",
    )
    assert summary_overhead(len) == MESSAGE_TOKENS + len(rendered(longest))
