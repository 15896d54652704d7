"""Results that come with a harness's notice in a message of the user's, as Claude Code sends them,
are results (docs/semantics.md#notices-of-harnesses)."""

from __future__ import annotations

import pytest

from contextengine import types as t
from contextengine_server.engines.bounds import cap_chars
from contextengine_server.testing.oracle.bounded import MARKER
from contextengine_server.tokens import TokenCounter
from tests.integration.harness import House, budget

from .asking import ask, assign, calls, ids_of, judged, quiet, reply_with, result, say, store, talk
from .judging import FITS

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENGINES = ("dag", "pipeline", "compressor", "layered", "legacy")
NOTICE = "<system-reminder>\nThe todo list is empty.\n</system-reminder>"


def carrier(name: str, *results: t.Message, told: str = NOTICE) -> t.Message:
    """Results and what is told beside them."""
    message = t.Message(id=name, role=t.ROLE_USER)
    message.parts.extend(part for one in results for part in one.parts)
    message.parts.add(text=t.TextPart(text=told))
    return message


def work(steps: int, words: int = 100, told: str = NOTICE) -> list[t.Message]:
    """So many steps, each with a notice behind what its tool answered."""
    return [
        message
        for at in range(steps)
        for message in (
            calls(f"a{at}", f"c{at}"),
            carrier(f"r{at}", result("", f"c{at}", words), told=told),
        )
    ]


@pytest.mark.parametrize("engine", ENGINES)
async def test_the_request_stays_whole_while_notices_come(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    """It is the newest user message, however many steps have told the model something since."""
    await assign(shared, session, engine)
    steps = work(24)
    await store(shared, session, [*talk(10), say("ask", 80)])
    for begin in range(0, len(steps), 8):
        await store(shared, session, steps[begin : begin + 8])
        await shared.client.compact(session, budget=budget(1_600), force=True)
        await quiet(shared, session)
        reply = await ask(shared, session, budget=budget(1_600))
        assert reply.outcome == FITS
        assert "ask" in ids_of(reply.items)
        if engine != "pipeline":  # which adds a message of its own
            assert await judged(shared, reply, session) == []


async def test_what_a_user_says_beside_results_is_a_request(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, [*talk(10), say("ask", 80), *work(12)])
    await store(shared, session, [calls("b", "d")])
    said = "Stop that.\n" + NOTICE
    await store(shared, session, [carrier("stop", result("", "d", 50), told=said), *work(24)])
    await shared.client.compact(session, budget=budget(1_600), force=True)
    reply = await ask(shared, session, budget=budget(1_600))
    assert "stop" in ids_of(reply.items)
    assert "ask" not in ids_of(reply.items)
    assert await judged(shared, reply, session) == []


@pytest.mark.parametrize("engine", ENGINES)
async def test_long_results_beside_a_notice_are_bounded_as_others_are(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    """They are no prompt, which would be shown with a degradation."""
    await assign(shared, session, engine)
    step = [result("", f"c{at}", 3_000) for at in range(4)]
    await store(
        shared,
        session,
        [*talk(4), say("ask"), calls("a", *(f"c{at}" for at in range(4))), carrier("r", *step)],
    )
    if engine == "legacy":  # which leaves nothing out
        await shared.client.compact(session, budget=budget(2_000), force=True)
    reply = await ask(shared, session, budget=budget(2_000))
    assert reply.outcome == FITS
    assert ids_of(reply.items)[-3:] == ["ask", "a", "r"]
    assert [t.Form.Name(item.form) for item in reply.items if item.form] == ["FORM_HEAD_TAIL"]
    assert await judged(shared, reply, session) == []


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_a_user_says_beside_long_results_is_whole(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    """Claude Code sets what is said to it amid its work, and its order to summarize, behind the
    results, in one message: it was cut with them, and small results were gone."""
    await assign(shared, session, engine)
    said = f"Stop that. {'Then begin with the other one, please. ' * 20}"
    step = [result("", f"c{at}", words) for at, words in enumerate((3_000, 40, 3_000))]
    await store(
        shared,
        session,
        [*talk(4), say("ask"), calls("a", "c0", "c1", "c2"), carrier("r", *step, told=said)],
    )
    if engine == "legacy":  # which leaves nothing out
        await shared.client.compact(session, budget=budget(3_000), force=True)
    reply = await ask(shared, session, budget=budget(3_000))
    assert ids_of(reply.items)[-1] == "r"
    large, small, other, told = reply.items[-1].message.parts
    assert told.text.text == said
    assert small == step[1].parts[0]
    texts = [part.tool_result.parts[0].text.text for part in (large, other)]
    assert all("are left out here; the whole message is stored" in text for text in texts)
    assert abs(len(texts[0]) - len(texts[1])) < 10
    assert await judged(shared, reply, session) == []


@pytest.mark.parametrize("window", [20_000, 60_000, 200_000])
async def test_results_of_one_message_may_have_what_those_of_several_have(
    shared: House, session: t.SessionRef, window: int
) -> None:
    step = [result(f"r{at}", f"c{at}", 16_000) for at in range(3)]
    work = [say("ask"), calls("a", "c0", "c1", "c2")]
    apart, together = (t.SessionRef(agent_id=session.agent_id) for _ in range(2))
    apart.session_id, together.session_id = f"{session.session_id}-1", f"{session.session_id}-2"
    await store(shared, apart, [*work, *step])
    await store(shared, together, [*work, carrier("r", *step, told=NOTICE)])
    one, other = [
        sum(item.tokens for item in (await ask(shared, each, budget=budget(window))).items)
        for each in (apart, together)
    ]
    assert abs(one - other) < 0.1 * one


async def test_a_cap_is_that_of_each_result(shared: House, session: t.SessionRef) -> None:
    step = [result("", f"c{at}", words) for at, words in enumerate((40_000, 40, 9_000))]
    await store(shared, session, [say("ask"), calls("a", "c0", "c1", "c2"), carrier("r", *step)])
    reply = await ask(shared, session, budget=budget(200_000))
    shown = reply.items[-1].message.parts
    text = shown[0].tool_result.parts[0].text.text
    assert len(MARKER.sub("", text)) == cap_chars(reply.budget.cell)
    assert list(shown[1:3]) == [one.parts[0] for one in step[1:]]
    assert await judged(shared, reply, session) == []


async def test_layered_cuts_each_result_by_itself(shared: House, session: t.SessionRef) -> None:
    await assign(shared, session, "layered")
    short, long = (
        [result("", f"c{turn}{at}", words[at]) for at in range(3)]
        for turn, words in enumerate(((5_000, 5_000, 5_000), (15_000, 40, 5_000)))
    )
    for at, step in enumerate((short, long)):
        names = [one.parts[0].tool_result.call_id for one in step]
        await store(shared, session, [say(f"ask{at}"), calls(f"a{at}", *names)])
        await store(shared, session, [carrier(f"r{at}", *step)])
    reply = await ask(shared, session, budget=budget(100_000))
    whole, cut = (item for item in reply.items if item.message.id in ("r0", "r1"))
    assert not whole.form
    assert list(cut.message.parts[1:3]) == [one.parts[0] for one in long[1:]]
    text = cut.message.parts[0].tool_result.parts[0].text.text
    assert 8_000 < TokenCounter().count_text(text) < 12_000
    assert await judged(shared, reply, session) == []


async def test_a_read_beside_a_notice_makes_an_earlier_one_stale(
    shared: House, session: t.SessionRef
) -> None:
    """It is masked with the next compaction, and its notice stays."""
    await assign(shared, session, "dag", freshTailTurns=2)
    reads = work(8, 400)
    for at, path in enumerate(("a.py", "b.py", "a.py", "c.py", "d.py", "e.py", "f.py", "g.py")):
        [called] = reads[2 * at].parts
        called.tool_call.name, called.tool_call.arguments_json = (
            "read",
            b'{"path": "%s"}' % path.encode(),
        )
    await store(shared, session, [*(say(f"u{n}", 300) for n in range(6)), *reads])
    await quiet(shared, session)
    compacted = t.RecordHostChangeRequest.HostCompaction(
        first_sequence=1, last_sequence=5, summary="talk"
    )
    await shared.client.record_host_change(session, change_id="1-5", compacted=compacted)
    reply = await ask(shared, session, budget=budget(20_000))
    [masked] = [item.message for item in reply.items if item.form]
    assert masked.id == "r0"
    assert masked.parts[0].tool_result.parts[0].text.text.startswith("[superseded: ")
    assert masked.parts[1].text.text == NOTICE
    assert await judged(shared, reply, session, 2) == []


async def test_layered_cuts_a_long_result_beside_a_notice(
    shared: House, session: t.SessionRef
) -> None:
    await assign(shared, session, "layered")
    await store(shared, session, [say("ask"), *work(1, 12_000), reply_with("so")])
    reply = await ask(shared, session, budget=budget(30_000))
    assert {item.message.id: item.form for item in reply.items if item.form} == {
        "r0": t.FORM_HEAD_TAIL
    }
    assert await judged(shared, reply, session) == []
