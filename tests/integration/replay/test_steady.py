"""A compaction or eviction holds on the next call as well. Nothing flickers, over a real session
and while its summaries are made in the background. See
docs/semantics.md#what-stays-and-what-goes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.integration.assemble.asking import settled
from tests.integration.assemble.judging import OVER, Judge
from tests.integration.harness import house as living
from tests.integration.harness import ref

from .playing import Player, coding, turns, with_ids


@pytest.mark.parametrize("budget", [8_000, 30_000])
async def test_what_has_gone_does_not_come_back(budget: int, tmp_path: Path) -> None:
    messages = with_ids(coding().messages)
    async with living(tmp_path) as house:
        player = Player(house, "s", budget, messages)
        cut = summarized = 0
        for number, (first, last) in enumerate(turns(messages)):
            reply = await player.ingest(first, last)
            if number % 4 == 0:
                judge = Judge.of(await house.export(ref("s"), as_of_revision=reply.revision))
                assert judge.verdict(reply) == []
            shown = [i.origin.sequence for i in reply.items if i.origin.sequence]
            # What law 4 keeps stands by itself before the cut: the newest user message.
            begins = [s for s, after in pairwise(shown) if after == s + 1]
            covered = max(
                (i.summary.last_sequence for i in reply.items if i.HasField("summary")), default=0
            )
            if reply.outcome != OVER and begins:
                assert begins[0] >= cut, (number, begins[0], cut)
                cut = begins[0]
            assert covered >= summarized or reply.outcome == OVER
            summarized = max(summarized, covered)
            if number % 8 == 7:
                await settled(house, ref("s"))
        assert cut > 1
        assert summarized > 0
        status = await house.client.get_status(ref("s"))
        assert status.message_count == len(messages)
