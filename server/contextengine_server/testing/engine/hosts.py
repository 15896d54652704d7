"""What hosts rely on: calls sent twice, facts that they read, lists that providers take."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from contextengine import assistant, user
from contextengine import types as t
from contextengine_server.compaction.rewrites import list_of
from contextengine_server.context.scope import Scope
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.rewrite import (
    ChatMessage,
    Rewriter,
    RewriteRequest,
    rewriter_of,
    wrong_with,
)
from contextengine_server.projection.openai_chat.validator import validate

from .real_sessions import REAL_SHAPER
from .server import ServedCase, play, ref, tokens
from .trial import trial_of

WINDOW = 64_000


class HostCases(ServedCase):
    """Each test over the wire has a server and a database of its own."""

    @pytest.mark.asyncio
    async def test_what_is_sent_twice_is_done_once(self, tmp_path: Path) -> None:
        """By the ids that it carries: a message, a turn, a compaction. An assembly changes nothing,
        however often it is asked for."""
        async with self.served(tmp_path) as client:
            [(name, rows), *_] = self.few()
            total = await play(client, name, rows)
            half = tokens(max(1, total // 2))
            message, reply = user("once"), assistant("once as well")
            for wanted in (
                t.StoredMessage.DISPOSITION_STORED,
                t.StoredMessage.DISPOSITION_DUPLICATE,
            ):
                assert (await client.ingest(ref(name), message)).stored.disposition == wanted
            for status in (
                t.AfterTurnResponse.STATUS_COMMITTED,
                t.AfterTurnResponse.STATUS_DUPLICATE,
            ):
                done = await client.after_turn(ref(name), [reply], advancement_key="turn 1")
                assert done.status == status
            lists = [await client.assemble(ref(name), budget=tokens(total)) for _ in range(3)]
            assert [one.context_hash for one in lists[1:]] == [lists[0].context_hash] * 2
            assert [one.context_projection.epoch for one in lists[1:]] == [
                lists[0].context_projection.epoch
            ] * 2
            first = await client.compact(ref(name), force=True, budget=half, request_id="c1")
            before = await client.get_status(ref(name))
            again = await client.compact(ref(name), force=True, budget=half, request_id="c1")
            assert again == first, "the same request is answered what it was answered"
            after = await client.get_status(ref(name))
            assert (after.generation, after.summary_count, after.message_count) == (
                before.generation,
                before.summary_count,
                before.message_count,
            )

    @pytest.mark.asyncio
    async def test_the_facts_that_hosts_read_follow_the_session(self, tmp_path: Path) -> None:
        """The window, the threshold, what the last call used, how full it is, and what was
        compacted."""
        async with self.served(tmp_path) as client:
            [(name, rows), *_] = self.few()
            total = await play(client, name, rows)
            await client.update_model(ref(name), model="m", window=WINDOW)
            used = t.Usage(input_tokens=1_000, output_tokens=50)
            await client.report_usage(ref(name), usage=used)
            before = await client.get_status(ref(name))
            assert (before.model, before.window, before.window_assumed) == ("m", WINDOW, False)
            assert 0 <= before.threshold_tokens <= WINDOW
            assert 0 < before.usage_percent <= 100
            assert (before.last_prompt_tokens, before.last_completion_tokens) == (1_000, 50)
            assert before.last_total_tokens == 1_050
            assert 0 < before.view_tokens <= before.message_tokens
            verdict = await client.should_compact(ref(name), budget=tokens(total))
            assert 0 < verdict.threshold_tokens <= total, "what makes one due is over the budget"
            done = await client.compact(ref(name), force=True, budget=tokens(max(1, total // 3)))
            after = await client.get_status(ref(name))
            assert after.message_tokens == before.message_tokens, "what is stored stays"
            assert after.generation == before.generation + len(done.summaries)
            assert (after.view_tokens < before.view_tokens) == bool(done.summaries)

    def test_lists_that_it_rewrites_are_messages_that_a_provider_takes(self) -> None:
        """Of an engine with a `rewriter`: the list that it answers breaks no rule of OpenAI's chat
        API, and the one that it was given is as it was."""
        for engine in self.engines():
            rewriter = rewriter_of(engine)
            if rewriter is None:
                continue
            for name, rows in self.few():
                view = trial_of(rows, REAL_SHAPER).view
                given, places = list_of(view).written()
                said = [dict(message) for message in given]
                scope = Scope("suite", "suite", name)
                request = RewriteRequest(
                    scope, given, places, view.total, view.total // 2, force=True
                )
                answer = asyncio.run(_rewritten(rewriter, request, engine))
                assert given == said, "it changed what it was given"
                if answer is not None:
                    assert not wrong_with(answer), wrong_with(answer)
                    found = [one for one in validate(answer) if not one.advice]
                    assert not found, f"{name}: {found}"


async def _rewritten(
    rewriter: Rewriter, request: RewriteRequest, engine: Engine
) -> Sequence[ChatMessage] | None:
    try:
        return await rewriter.rewrite(request)
    finally:
        await engine.dispose()
