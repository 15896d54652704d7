"""What Compact makes of summaries that are too long, and of summarizers that fail. See
docs/semantics.md#compaction."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine import types as t
from contextengine_server.summarize import SummarizerChain
from tests.integration.assemble.asking import (
    ask,
    judged,
    store,
    talk,
)
from tests.integration.harness import House, budget

from .summarizers import Counting, Failing, Wordy
from .test_compact import compact, engine, long, own_summarizer

__all__ = ["engine", "own_summarizer"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_summary_that_would_not_shrink_the_view(
    shared: House, session: t.SessionRef, engine: str, own_summarizer: None
) -> None:
    """Law 12: not committed, said so, and not tried again on the same input; not after a restart
    either."""
    tokens = await long(shared, session, engine)
    wordy = Wordy(shared)
    asked: dict[str, Any] = {"force": True, "budget": budget(tokens // 2)}
    refused = await compact(shared, session, **asked)
    assert (refused.compacted, len(refused.summaries), refused.generation) == (False, 0, 0)
    assert "would not be smaller" in refused.reason
    assert len(wordy.asked) == 1
    assert (await shared.export(session)).summaries == []
    again = await compact(shared, session, **asked)
    assert (again.compacted, len(wordy.asked)) == (False, 1)
    assert again.reason
    await shared.restart()
    wordy = Wordy(shared)
    assert not (await compact(shared, session, **asked)).summaries
    assert len(wordy.asked) == 0
    # Another question about the same messages is another input.
    await compact(shared, session, focus="something else", **asked)
    assert len(wordy.asked) == 1
    shared.app.core.summaries.summarizer = wordy.inner
    await store(shared, session, talk(5, 100, "n"))
    assert (await compact(shared, session, **asked)).summaries


async def test_where_no_summarizer_succeeds_a_note_counts(
    shared: House, session: t.SessionRef, engine: str, own_summarizer: None
) -> None:
    tokens = await long(shared, session, engine)
    core = shared.app.core
    core.summaries.summarizer = SummarizerChain([Failing()], core.encodings.default.count)
    done = await compact(shared, session, force=True, budget=budget(tokens // 2))
    assert done.summaries
    assert {(s.summarizer, s.fallback) for s in done.summaries} == {("count-only", True)}
    reply = await ask(shared, session, budget=budget(tokens))
    first = next(item for item in reply.items if item.origin.summary_id)
    assert "fallback=true" in first.message.parts[0].text.text
    assert str(first.summary.message_count) in first.message.parts[0].text.text
    assert await judged(shared, reply, session) == []


async def test_a_failing_summarizer_is_asked_in_its_turn(
    shared: House, session: t.SessionRef, own_summarizer: None
) -> None:
    tokens = await long(shared, session, "dag")
    own = Counting(shared, session)
    shared.app.core.summaries.summarizer = SummarizerChain(
        [Failing(), own], shared.app.core.encodings.default.count
    )
    done = await compact(shared, session, force=True, budget=budget(tokens // 2))
    assert {(s.summarizer, s.fallback) for s in done.summaries} == {("extractive", False)}
