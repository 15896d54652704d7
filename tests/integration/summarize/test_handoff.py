"""The compressor's summaries by a model over gRPC: one handoff in sections that is brought up to
date, and what models that fail mean for it (docs/compressor.md#when-it-does-not-go-well)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from contextengine import types as t
from contextengine.messages import assistant, user
from contextengine_server.summarize.models.handoff import TASK

from ..assemble.asking import quiet
from ..harness import budget, ref
from .provider import Reply, answer, body, error, reset
from .services import Served, served

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = "sk-live-abcdefghijklmnop1234"
SIZE = budget(4_000)
MADE = f"## {TASK}\nForget it.\n\n## Goal\nA migration, with {SECRET}."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    settings: dict[str, Any] = {"engine.default": "compressor"}
    async with served(tmp_path_factory.mktemp("shared"), "first", **settings) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def on(shared: Served) -> Served:
    """The service answers well, and nothing is remembered against it: a day has passed."""
    shared.replying(first=answer(MADE))
    shared.clock.advance(86_400)
    await compact(shared, await talk(shared, "healthy"))
    shared.replying(first=answer(MADE))
    return shared


async def talk(on: Served, name: str) -> t.SessionRef:
    """A new session of turns of about 100 tokens, which nothing compacts in the background."""
    session = ref(f"{name} {on.clock.ms}")
    await more(on, session, 0)
    await quiet(on.at, session)
    return session


async def more(on: Served, session: t.SessionRef, first: int, turns: int = 40) -> None:
    """As many turns."""
    said: list[t.Message] = []
    for n in range(first, first + turns):
        said += [
            user(f"Question {n} of the migration, password={SECRET}?", id=f"u{n}"),
            assistant(f"Answer {n}. " + "It went on. " * 25, id=f"a{n}"),
        ]
    await on.at.client.ingest_batch(session=session, messages=said)


async def compact(on: Served, session: t.SessionRef, **asked: Any) -> t.CompactResponse:
    reply: t.CompactResponse = await on.at.client.compact(session, budget=SIZE, **asked)
    return reply


async def verdict(on: Served, session: t.SessionRef) -> tuple[bool, str]:
    said = await on.at.client.should_compact(session, budget=SIZE)
    return said.should_compact, said.reason


async def test_one_handoff_in_sections_is_brought_up_to_date(on: Served) -> None:
    session = await talk(on, "sections")
    memory = f"<b>Ann</b> likes short tables. {SECRET}"
    done = await compact(on, session, focus="the billing tables", memory_context=memory)
    (asked,) = on.services["first"].requests
    assert f"## {TASK}:" in asked.system
    assert not {"max_tokens", "max_completion_tokens", "temperature"} & set(asked.body)
    assert "the billing tables" in asked.user
    assert r"\u003cb\u003eAnn\u003c/b\u003e likes short tables." in asked.user
    assert SECRET not in asked.user
    (made,) = done.summaries
    newest = max(int(word) for word in asked.user.split() if word.isdigit() and int(word) < 40)
    assert done.summary_text.startswith(f"## {TASK}\nQuestion {newest} of the migration")
    assert "## Goal\nA migration, with [redacted]" in done.summary_text

    on.replying(first=answer("## Goal\nStill a migration."))
    await more(on, session, 40)
    again = await compact(on, session)
    (asked,) = on.services["first"].requests
    assert "up to date" in asked.system
    assert "A migration, with [redacted]" in asked.user
    assert "Question 79 of the migration" in asked.user, "what the user said last is the focus"
    assert again.summaries[0].first_sequence == made.first_sequence
    assert again.summaries[0].last_sequence > made.last_sequence
    assert (await on.at.client.get_status(session)).max_depth == 0


@pytest.mark.parametrize(
    ("reply", "seconds", "aborts"),
    [
        (error(401, code="invalid_api_key"), 60, True),
        (error(402), 60, True),
        (error(429, code="insufficient_quota"), 60, True),
        (reset, 30, True),
        (answer(""), 30, True),
        (answer(MADE, finish="length"), 60, True),
        (error(529, kind="overloaded_error"), 60, True),
        (error(504), 60, False),
        (body(b"<html>"), 30, False),
        (error(500), 60, False),
    ],
    ids=["401", "402", "quota", "reset", "blank", "cut off", "529", "504", "no JSON", "500"],
)
async def test_a_failure_aborts_or_somebody_stands_in(
    on: Served, reply: Reply, seconds: int, aborts: bool
) -> None:
    session = await talk(on, "failure")
    on.replying(first=reply)
    before = await on.at.client.assemble(session, budget=SIZE)
    done = await compact(on, session)
    assert on.asked()["first"] >= 1
    assert (done.compacted, done.ok) == (not aborts, False)
    assert done.reason.startswith("summary failed: ") == aborts
    after = await on.at.client.assemble(session, budget=SIZE)
    same = [item.content_hash for item in after.items] == [i.content_hash for i in before.items]
    assert same == aborts
    if aborts:
        assert await verdict(on, session) == (False, f"cooldown:{seconds}")
        # In the cooldown nobody is asked, and the failure is told again.
        on.replying(first=answer(MADE))
        told = await compact(on, session)
        assert (told.compacted, told.reason, on.asked()) == (False, done.reason, {})
    else:
        assert {one.summarizer for one in done.summaries} == {"extractive"}
    on.replying(first=answer(MADE))
    on.clock.advance(seconds)
    if aborts:
        assert await verdict(on, session) == (True, "over threshold")
        healthy = await compact(on, session)
        assert healthy.compacted
        assert on.asked() == {"first": 1}


async def test_force_does_not_wait(on: Served) -> None:
    session = await talk(on, "forced")
    on.replying(first=error(401))
    assert not (await compact(on, session)).compacted
    on.replying(first=answer(MADE))
    assert (await compact(on, session, force=True)).compacted
    assert "cooldown" not in (await verdict(on, session))[1]


async def test_a_cooldown_outlives_a_restart_and_ends_with_another_route(on: Served) -> None:
    session = await talk(on, "restart")
    on.replying(first=reset)
    assert not (await compact(on, session)).compacted
    await on.at.restart()
    assert await verdict(on, session) == (False, "cooldown:30")
    await on.at.client.update_model(session, model="another", window=200_000)
    assert (await verdict(on, session))[0]


async def test_a_proposal_tells_of_the_failure_and_the_session_remembers_it(on: Served) -> None:
    session = await talk(on, "proposal")
    on.replying(first=error(401))
    shown = await compact(on, session, propose_only=True)
    assert (shown.proposal_id, shown.ok, shown.reason) == ("", False, "summary failed: auth")
    assert await verdict(on, session) == (False, "cooldown:60")


async def test_by_configuration_nobody_stands_in(on: Served) -> None:
    session = await talk(on, "abort")
    await on.at.client.engines.assign(
        scope=session, engine_id="compressor", options_json=b'{"abortOnSummaryFailure": true}'
    )
    on.replying(first=error(500))
    done = await compact(on, session)
    assert (done.compacted, done.reason, len(done.summaries)) == (
        False,
        "summary failed: other",
        0,
    )


async def test_the_status_says_how_it_went(on: Served) -> None:
    session = await talk(on, "status")
    status = await on.at.client.get_status(session)
    well = json.loads(status.engine_status_json)
    assert well["threshold_tokens"] == status.threshold_tokens == 64_000
    assert (well["tail_mode"], well["tail_token_budget"]) == ("lean", 10_000)
    assert (well["blocked"], well["last_summary_error"]) == ("", "")
    on.replying(first=error(401))
    await compact(on, session)
    failed = json.loads((await on.at.client.get_status(session)).engine_status_json)
    assert (failed["blocked"], failed["last_summary_error"]) == ("cooldown:60", "auth")
    assert (failed["last_compress_aborted"], failed["compression_count"]) == (True, 0)
    on.replying(first=error(500))
    assert (await compact(on, session, force=True)).compacted
    stood_in = json.loads((await on.at.client.get_status(session)).engine_status_json)
    assert stood_in["last_summary_fallback_used"]
    assert stood_in["last_summary_dropped_count"] > 10
    assert stood_in["compression_fallback_streak"] == 1


async def test_two_compactions_without_effect_block_the_next_for_a_while(on: Served) -> None:
    session = await talk(on, "strikes")
    for round_ in range(2):
        assert (await compact(on, session)).compacted
        await on.at.client.report_usage(session, usage=t.Usage(input_tokens=9_000))
        await more(on, session, 40 * (round_ + 1))
    assert await verdict(on, session) == (False, "ineffective")
    on.clock.advance(299)
    assert await verdict(on, session) == (False, "ineffective")
    on.clock.advance(1)
    assert await verdict(on, session) == (True, "over threshold")
    assert (await compact(on, session)).compacted
    await on.at.client.report_usage(session, usage=t.Usage(input_tokens=100))
    await more(on, session, 120)
    assert await verdict(on, session) == (True, "over threshold")


async def test_the_task_is_what_the_user_asked_for_and_not_what_a_harness_says_behind_it(
    on: Served,
) -> None:
    notice = "<environment_context>\nThe folder is /work.\n</environment_context>"
    said: list[t.Message] = []
    for n in range(40):
        said += [user(f"Question {n}.\n{notice}", id=f"u{n}"), user(notice, id=f"n{n}")]
        said.append(assistant(f"Answer {n}. " + "It went on. " * 25, id=f"a{n}"))
    session = ref(f"beside {on.clock.ms}")
    await on.at.client.ingest_batch(session=session, messages=said)
    await quiet(on.at, session)
    await compact(on, session)
    text = (await on.at.export(session)).summaries[-1].text
    task = text.partition(f"## {TASK}\n")[2].partition("\n\n")[0]
    assert task.startswith("Question ")
    assert "folder" not in task
