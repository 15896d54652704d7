"""Holding replies to laws 1 to 8 with the tests' oracle, which knows only what Export answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from contextengine import types as t
from contextengine_server.engines.base import ADDITION
from contextengine_server.testing.engine.views import entry_of
from contextengine_server.testing.oracle.assembly import broken
from contextengine_server.testing.oracle.known import Known, SentList
from contextengine_server.testing.oracle.pairs import (
    CoveredRange,
    Shown,
    ViewRow,
    WholeList,
    listing,
)
from contextengine_server.testing.oracle.summaries import Covering
from contextengine_server.tokens import MESSAGE_TOKENS, TokenCounter
from contextengine_server.wire.slots import WireShaper
from tests.integration.harness import Exported

TAILS = {"compressor": 1, "dag": 8, "layered": 1, "legacy": 1, "pipeline": 1}
"""The steps that each engine declares, by default."""

COUNTER = TokenCounter("o200k_base")
SHAPER = WireShaper(COUNTER.count_text)
"""Prices what is shown in another form than it is stored in; nothing else is asked of it."""

_SHORT = frozenset({int(t.FORM_HEAD_TAIL), int(t.FORM_PLACEHOLDER)})
FORMS = {
    "compressor": _SHORT,
    "dag": _SHORT,
    "layered": frozenset({int(t.FORM_HEAD_TAIL)}),
    "pipeline": _SHORT,
}
"""The forms that each engine declares."""

FITS = t.AssembleResponse.OUTCOME_FITS
OVER = t.AssembleResponse.OUTCOME_OVER_BUDGET
DEGRADED = t.AssembleResponse.OUTCOME_DEGRADED


@dataclass
class Judge:
    """What is known of a session, against which any number of its assemblies can be held."""

    rows: list[ViewRow]
    listing: WholeList
    coverings: list[Covering]
    tokens: dict[int, int]
    """What each message costs by itself, by its sequence."""
    tail: int | None = None
    """The steps that this session's engine declares; None: its default."""

    @classmethod
    def of(cls, exported: Exported, tail: int | None = None) -> Judge:
        """Everything that Export says of the view."""
        rows = [
            ViewRow(row.sequence, row.message, row.created_revision) for row in exported.messages
        ]
        live = [summary for summary in exported.summaries if not summary.info.retired_revision]
        stretches = [
            CoveredRange(s.info.first_sequence, s.info.last_sequence, s.info.created_revision)
            for s in live
        ]
        below = {child for summary in live for child in summary.info.children}
        coverings = [_covering(summary) for summary in live if summary.info.id not in below]
        costs = {row.sequence: row.tokens for row in exported.messages}
        return cls(rows, listing(rows, stretches), coverings, costs, tail)

    def broken(
        self,
        items: Sequence[t.Item],
        budget: int,
        engine: str,
        *,
        over: bool = False,
        prompt_bounded: bool = False,
    ) -> list[tuple[int, str]]:
        """The laws that a list breaks, with the reason of each. `budget`: for items, in reference
        tokens."""
        return broken(self._known(budget, engine), SentList(items, over, prompt_bounded))

    def _known(self, budget: int, engine: str) -> Known:
        costs = {
            group.first: sum(self._cost(shown) for shown in group.shown)
            for group in self.listing.groups
        }
        return Known(
            rows=self.rows,
            listing=self.listing,
            budget=budget,
            tail=TAILS[engine] if self.tail is None else self.tail,
            forms=FORMS.get(engine, frozenset()),
            evicts=engine != "legacy",
            coverings=self.coverings,
            costs=costs,
        )

    def _cost(self, shown: Shown) -> int:
        """What showing this costs: a message as it came what its row says, all else what it is
        shown as."""
        if shown.kind == "whole":
            return self.tokens[shown.sequence]
        row = next(row for row in self.rows if row.sequence == shown.sequence)
        entry = entry_of(row, COUNTER.count_text)
        if shown.kind == "no result":
            return SHAPER.no_result(entry, entry.traits.calls.index(shown.call)).tokens
        make = SHAPER.note if shown.kind == "note" else SHAPER.parts
        return make(entry, shown.parts).tokens

    def verdict(self, reply: t.AssembleResponse) -> list[tuple[int, str]]:
        """The laws that a full reply breaks, its outcome included.

        Where a summary would have room without the clause that is said beside it, and has none
        with it, none is shown, and the rest is planned with what the clause leaves.
        """
        assert not reply.cache.reused_count, "only a full list can be judged"
        tokens, room = tokens_of(reply.items), room_of(reply)
        without = room - self._clause(reply.system_prompt_addition)
        found = self.broken(
            reply.items,
            without if tokens <= without else room,
            reply.engine_id,
            over=tokens > room,
            prompt_bounded=reply.outcome_reason == "PROMPT_BOUNDED",
        )
        if (tokens > room) != (reply.outcome == OVER):
            found.append((5, f"{tokens} tokens in {room} are called {reply.outcome}"))
        return found

    def _clause(self, said: str) -> int:
        """The tokens that what is said beside a summary would add to what is said; 0 where there is
        no summary, or it is said."""
        if not self.coverings or said.startswith("##"):
            return 0
        if not said:
            return COUNTER.count_text(ADDITION) + MESSAGE_TOKENS
        return COUNTER.count_text(f"{ADDITION}\n{said}") - COUNTER.count_text(said)

    def stays(self) -> int:
        """What no law lets go, in reference tokens: leading, pinned, the last user message and the
        last step, at least."""
        groups = self.listing.groups
        kept = self._known(0, "dag").stays | {len(groups) - 1}
        return sum(self._cost(shown) for index in kept for shown in groups[index].shown)


def _covering(summary: t.ExportResponse.ExportedSummary) -> Covering:
    info = summary.info
    start = info.start_time.ToJsonString()[:19] + "Z" if info.HasField("start_time") else "unknown"
    end = info.end_time.ToJsonString()[:19] + "Z" if info.HasField("end_time") else "unknown"
    return Covering(
        info.id,
        info.depth,
        info.first_sequence,
        info.last_sequence,
        info.message_count,
        start,
        end,
        summary.text,
    )


def tokens_of(items: Iterable[t.Item]) -> int:
    """What items cost, in the reference encoding."""
    return sum(item.tokens for item in items)


def room_of(reply: t.AssembleResponse) -> int:
    """What the budget left for items, in the reference encoding."""
    report = reply.budget
    taken = report.system_prompt_addition + report.prompt
    return int((report.available - taken) / report.model_factor)
