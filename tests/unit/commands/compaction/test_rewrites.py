"""The list that an engine which rewrites lists is given, and the passes that follow from its
answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from contextengine_server.compaction.rewrites import UNCHANGED_LIST, list_of
from contextengine_server.engines.companion import Conversation
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.hosted.engine import MAX_LOST, HostedEngine
from contextengine_server.engines.hosted.host import EngineHost, HostedFacts
from contextengine_server.engines.hosted.options import HostedOptions
from contextengine_server.engines.registration import Registration
from contextengine_server.engines.rewrite import ChatMessage, RewriteRequest, rewriter_of
from contextengine_server.errors import EngineFailed
from contextengine_server.projection.openai_chat.validator import validate
from contextengine_server.session.assembly.assembly import FITS
from contextengine_server.summarize.request import Steering
from contextengine_server.testing.contexts import AIRLINE
from contextengine_server.testing.engine.real_sessions import REAL_SHAPER, real_sessions
from contextengine_server.testing.engine.trial import trial_of
from tests.unit.commands.house import (
    S1,
    TENANT,
    Server,
    assistant,
    incoming,
    long,
    result,
    texts_of,
    user,
)

FACTS = HostedFacts("scripted", "1", "Scripted", 0.6)


class Scripted(EngineHost):
    """Answers what it is told to, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[RewriteRequest] = []
        self.keeps = 2
        self.note = "a note"
        self.answers: Any = None
        self.meanwhile: Any = None
        """What happens on the server's loop before it answers."""

    async def begin(self, session_id: str, told: Conversation) -> str:
        return session_id

    async def compact(self, engine: str, request: RewriteRequest) -> list[ChatMessage] | None:
        self.asked.append(request)
        if self.meanwhile is not None:
            loop, work = self.meanwhile
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), loop))
        if self.answers is not None:
            return self.answers(list(request.messages))  # type: ignore[no-any-return]
        note = [{"role": "assistant", "content": self.note}] if self.note else []
        return [*note, *request.messages[-self.keeps :]]

    async def end(self, engine: str) -> None: ...


def engine_of(host: Scripted) -> Registration:
    return Registration(
        "scripted", HostedOptions, lambda options: HostedEngine(options, FACTS, host), "plugin:test"
    )


@pytest.fixture
def host() -> Scripted:
    return Scripted()


@pytest.fixture
async def scripted(serve: Any, host: Scripted) -> Server:
    server: Server = await serve(engines=[engine_of(host)], **{"engine.default": "scripted"})
    return server


def test_the_list_of_a_real_session_breaks_no_rule_of_the_api() -> None:
    """Compacted or not: ids of calls are there once, and each closed call has its result."""
    engine = DagEngine(DagOptions(fresh_tail_turns=2, leaf_chunk_tokens=1_000))
    for number, rows in enumerate(real_sessions(AIRLINE)):
        one = trial_of(rows, REAL_SHAPER)
        for _ in range(3):
            messages, places = list_of(one.view).written()
            assert len(messages) == len(places)
            found = [finding for finding in validate(messages) if not finding.advice]
            assert not found, f"session {number}: {found}"
            steps = [place.first for place in places]
            assert steps == sorted(steps)
            if not one.compaction(engine, one.view.total // 3, force=True):
                break


async def test_it_is_told_what_the_view_shows(scripted: Server, host: Scripted) -> None:
    await scripted.talk(1, 8)
    await scripted.compact(tokens=2_000, steering=Steering("tests", "a memory"))
    [asked] = host.asked[:1]
    assert [message["content"] for message in asked.messages] == await scripted.stored()
    assert (asked.available, asked.force, asked.focus) == (2_000, True, "tests")
    assert asked.memory_context == "a memory"
    assert asked.tokens == (await scripted.head()).message_tokens


async def test_its_note_is_the_summary(scripted: Server, host: Scripted) -> None:
    await scripted.talk(1, 8)
    done = await scripted.compact(tokens=2_000)
    [summary] = done.done.summaries
    assert (summary.text, summary.summarizer, summary.origin) == ("a note", "scripted", "engine")
    assert scripted.summarizer.asked == []
    assert done.done.after < done.done.before
    shown = await scripted.shown(2_000)
    assert any("a note" in text for text in shown)


async def test_it_sees_its_note_again_and_brings_it_up_to_date(
    scripted: Server, host: Scripted
) -> None:
    await scripted.talk(1, 8)
    first = await scripted.compact(tokens=2_000)
    await scripted.talk(20, 8)
    host.note = "a newer note"
    second = await scripted.compact(tokens=2_000)
    assert host.asked[-1].messages[0]["content"] == "a note"
    [old], [new] = first.done.summaries, second.done.summaries
    assert new.children == (old.id,)
    assert new.message_count > old.message_count
    assert new.first_sequence == old.first_sequence


async def test_what_it_leaves_out_without_a_word_is_summarized(
    scripted: Server, host: Scripted
) -> None:
    await scripted.talk(1, 8)
    host.note = ""
    done = await scripted.compact(tokens=2_000)
    assert [one.summarizer for one in done.done.summaries] == ["extractive"]
    [asked] = scripted.summarizer.asked
    assert asked.messages


async def test_a_note_that_is_longer_than_what_it_stands_for_is_not_taken(
    scripted: Server, host: Scripted
) -> None:
    await scripted.talk(1, 8)
    host.note = "on and on " * 5_000
    done = await scripted.compact(tokens=2_000)
    assert [one.summarizer for one in done.done.summaries] == ["extractive"]
    assert done.done.after < done.done.before


async def test_stretches_are_committed_one_after_the_other(
    scripted: Server, host: Scripted
) -> None:
    await scripted.talk(1, 12)

    def answers(messages: list[ChatMessage]) -> list[ChatMessage]:
        middle = len(messages) // 2
        one, other = ({"role": "user", "content": f"note {n}"} for n in (1, 2))
        return [one, *messages[middle : middle + 2], other, *messages[-2:]]

    host.answers = answers
    done = await scripted.compact(tokens=4_000)
    assert [one.text for one in done.done.summaries] == ["note 1", "note 2"]
    first, second = done.done.summaries
    assert first.last_sequence + 2 < second.first_sequence
    assert len(host.asked) == 1


@pytest.mark.parametrize(
    "answers",
    [
        lambda messages: messages,
        lambda messages: [dict(message) for message in messages],
        lambda messages: [*messages, {"role": "user", "content": "more"}],
    ],
    ids=["the same", "copies", "more"],
)
async def test_what_changes_nothing_is_no_compaction_unless_it_is_forced(
    scripted: Server, host: Scripted, answers: Any
) -> None:
    await scripted.talk(1, 8)
    host.answers = answers
    done = await scripted.compact(force=False)
    assert (done.done.summaries, done.done.reason) == ([], UNCHANGED_LIST)
    forced = await scripted.compact()
    assert {one.summarizer for one in forced.done.summaries} == {"extractive"}


@pytest.mark.parametrize(
    "answers",
    [
        lambda messages: messages[-1:],
        lambda messages: [],
        lambda messages: [{"role": "user", "content": "all of it"}],
        lambda messages: messages[:2] + messages[-3:],
        lambda messages: [one for one in messages if one["role"] != "tool"],
        lambda messages: [one for one in messages if one["role"] != "assistant"],
        lambda messages: messages[::-1],
    ],
    ids=["the last", "nothing", "one note", "a hole", "no results", "no calls", "backwards"],
)
async def test_what_no_law_lets_go_stays_whatever_it_answers(
    scripted: Server, host: Scripted, answers: Any
) -> None:
    """The assembly would be refused if it broke a law."""
    for at in range(8):
        turn = [
            user(long(f"u{at}"), f"u{at}"),
            assistant("", f"a{at}", f"c{at}"),
            result(f"c{at}", long(f"r{at}"), f"r{at}"),
        ]
        await scripted.context.ingest.run(TENANT, S1, incoming(*turn), None)
    await scripted.ingest("the last question")
    stored = await scripted.stored()
    host.answers = answers
    await scripted.compact()
    shown = await scripted.assemble(2_000)
    assert (shown.outcome, texts_of(shown)[-1]) == (FITS, "the last question")
    assert await scripted.stored() == stored


async def test_legacy_stands_in_where_it_is_told_to(serve: Any, host: Scripted) -> None:
    def answers(messages: list[ChatMessage]) -> list[ChatMessage]:
        raise RuntimeError("a sorry end")

    host.answers = answers
    settings = {"engine.default": "scripted", "engine.on_engine_failure": "legacy"}
    server = await serve(engines=[engine_of(host)], **settings)
    await server.talk(1, 8)
    done = await server.compact()
    assert done.done.error == "engine scripted failed, legacy stood in"
    assert {one.summarizer for one in done.done.summaries} == {"extractive"}


async def test_messages_that_come_meanwhile_are_kept(scripted: Server, host: Scripted) -> None:
    await scripted.talk(1, 8)
    host.meanwhile = asyncio.get_running_loop(), lambda: scripted.ingest("late")
    done = await scripted.compact(tokens=2_000)
    assert [one.text for one in done.done.summaries] == ["a note"]
    assert (await scripted.stored())[-1] == "late"
    assert (await scripted.shown(2_000))[-1] == "late"


async def test_a_view_that_is_reshaped_meanwhile_is_planned_anew(
    scripted: Server, host: Scripted
) -> None:
    """What the engine said of the old view is not committed to the new one."""
    await scripted.talk(1, 8)

    async def reset() -> None:
        host.meanwhile = None
        await scripted.context.reset_session.run(TENANT, S1, None, None)
        await scripted.talk(50, 8)

    host.meanwhile = asyncio.get_running_loop(), reset
    done = await scripted.compact(tokens=2_000)
    assert len(host.asked) == 2
    assert host.asked[1].messages[0]["content"].startswith("u50 ")
    [summary] = done.done.summaries
    assert summary.first_sequence == 17


async def test_a_session_that_was_emptied_is_another_to_the_engine(
    scripted: Server, host: Scripted
) -> None:
    await scripted.talk(1, 8)
    await scripted.compact()
    await scripted.talk(10, 4)
    await scripted.compact()
    await scripted.context.reset_session.run(TENANT, S1, None, None)
    await scripted.talk(50, 8)
    await scripted.compact()
    first, second, third = (asked.life for asked in host.asked)
    assert first == second != third


async def test_doctor_lets_an_engine_be_asked_again(scripted: Server, host: Scripted) -> None:
    await scripted.talk(1, 8)
    engine = scripted.registry.configured("scripted")
    rewriter = rewriter_of(engine)
    assert isinstance(rewriter, HostedEngine)
    rewriter._lost = MAX_LOST
    with pytest.raises(EngineFailed):
        await scripted.compact()
    assert host.asked == []
    await scripted.engines.doctor.run(TENANT, None, clear_failures=True)
    assert (await scripted.compact()).done.summaries
