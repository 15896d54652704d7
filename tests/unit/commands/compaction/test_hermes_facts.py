"""What Hermes's compressor promises of a list that it is given, fact by fact, through Compact's
own list. The numbers are those of the collected facts.

Of the others: 5 to 11, 21, 27 and 33 are held in tests/unit/engines/compressor/test_sizes.py and
test_compaction.py there; 49 to 53 and 57 in tests/integration/summarize/test_handoff.py and
tests/unit/summarize/test_attempts.py; 47 in tests/unit/summarize/test_prompts.py. These do not hold
here, and what stands in their place is asserted instead: 37 and 41 (a summary is never merged into
a user's message, and no system message is altered), 43 (a summary is state of its session, so that
there is no foreign one), 45 (no prefix stands in a summary's text: the framing is in the addition
to the system prompt), 13 as far as it counts a strike (later versions of the original count none),
15 as far as messages that are smaller than any summary are concerned (law 12).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.commands.compaction.compact import CompactDone
from contextengine_server.commands.compaction.live_list import LiveList
from contextengine_server.commands.compaction.should_compact import ShouldCompactCall
from contextengine_server.commands.turn.update_model import Model
from contextengine_server.context.budget import ModelTokens
from contextengine_server.engines.compressor.words import HANDOFF
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.session.model import Report
from contextengine_server.wire.slots import item_of
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import (
    S1,
    TENANT,
    Server,
    assistant,
    incoming,
    long,
    result,
    scope,
    text_of,
    user,
)

WINDOW = 10_000


@pytest.fixture
def compressor(serve: Serve) -> Serve:
    def made(**options: Any) -> Any:
        named = {f"engine.compressor.{name}": value for name, value in options.items()}
        return serve(**{"engine.default": "compressor", **named})

    return made


@pytest.fixture
async def server(compressor: Any) -> Server:
    made: Server = await compressor()
    return made


def system(text: str) -> pb.Message:
    return pb.Message(role=pb.ROLE_SYSTEM, parts=[pb.Part(text=pb.TextPart(text=text))])


def call(name: str, text: str, tool: str = "terminal", arguments: str = "{}") -> list[pb.Message]:
    """A call and what it answers."""
    asked = assistant("", "", name)
    asked.parts[0].tool_call.name = tool
    asked.parts[0].tool_call.arguments_json = arguments.encode()
    return [asked, result(name, text)]


def talk(turns: int, words: int = 100, first: int = 0) -> list[pb.Message]:
    said = []
    for at in range(first, first + turns):
        said += [user(long(f"u{at}", words)), assistant(long(f"a{at}", words))]
    return said


async def compress(
    server: Server, messages: Sequence[pb.Message], tokens: int = WINDOW, **more: Any
) -> tuple[list[pb.Message], CompactDone]:
    """The new list, as Hermes would go on with it."""
    sent = [message.SerializeToString() for message in messages]
    live = LiveList(incoming(*messages), store_new=True)
    done = await server.compact(tokens, live=live, return_list=True, **more)
    assert [message.SerializeToString() for message in messages] == sent, "the input is untouched"
    items = [item_of(slot.frame) for slot in done.shown.slots]
    return [item.message for item in items], done


def paired(messages: Sequence[pb.Message]) -> bool:
    """True where every result stands behind its call, and every call has its result."""
    waiting: list[str] = []
    for message in messages:
        for part in message.parts:
            kind = part.WhichOneof("kind")
            if kind == "tool_call":
                waiting.append(part.tool_call.call_id)
            elif kind == "tool_result":
                if part.tool_result.call_id not in waiting:
                    return False
                waiting.remove(part.tool_result.call_id)
            elif message.role != pb.ROLE_TOOL and waiting and message.role != pb.ROLE_ASSISTANT:
                return False
    return not waiting


async def test_1_due_at_the_threshold_and_not_below(server: Server) -> None:
    live = LiveList(incoming(*talk(20)))
    ask = server.context.should_compact

    async def verdict(tokens: int) -> tuple[bool, int, int]:
        budget = BudgetSpec(message_tokens=ModelTokens(tokens))
        said = await ask.run(TENANT, S1, ShouldCompactCall(budget, live=live))
        return said.due, said.tokens, said.threshold

    _, tokens, _ = await verdict(100_000)
    window = next(size for size in range(tokens, 2 * tokens) if int(size * 0.85) > tokens)
    assert (await verdict(window))[0] is False
    assert await verdict(window - 2) == (True, tokens, int((window - 2) * 0.85))


async def test_3_usage_of_nothing_is_no_error(server: Server) -> None:
    await server.talk(1, 2)
    await server.context.report_usage.run(TENANT, S1, Report(billed=True), None)
    assert (await server.state()).usage.last_prompt == 0


async def test_13_a_system_message_and_seven_are_left_as_they_are(server: Server) -> None:
    messages = [system("Be kind."), *talk(3, 5), user("And now?")]
    now, done = await compress(server, messages)
    assert (done.changed, done.done.compacted) == (False, False)
    assert [text_of(message) for message in now] == [text_of(message) for message in messages]


async def test_15_nine_messages_with_a_head_of_two_get_fewer(compressor: Any) -> None:
    server = await compressor(protect_first_n=2, protect_last_n=3)
    now, done = await compress(server, [*talk(4, 600), user("And now?")], 4_000)
    assert done.changed
    assert len(now) < 9


async def test_17_every_result_has_its_call_and_every_call_its_result(server: Server) -> None:
    messages = [user("Look at everything.")]
    for number in range(30):
        messages += call(f"c{number}", long(f"out{number}", 120))
    now, done = await compress(server, messages, 4_000)
    assert done.changed
    assert paired(now)


async def test_19_of_two_like_reads_the_older_refers_to_the_newer(compressor: Any) -> None:
    server = await compressor(protect_first_n=0, protect_last_n=0, tail_mode="legacy")
    body = "the same line of a file\n" * 45
    where = '{"path": "/srv/app.py"}'
    older, newer = (call(name, body, "read_file", where) for name in ("r1", "r2"))
    last = [*call("c3", "ok"), assistant("Both read.")]
    now, _ = await compress(server, [*talk(40), user("Read it."), *older, *newer, *last])
    said = {part.tool_result.call_id: text_of(message) for message in now for part in message.parts}
    assert said["r2"] == body
    assert said["r1"] != body
    assert len(said["r1"]) < 400
    assert "the same was read again" in said["r1"]


@pytest.mark.parametrize(
    ("fact", "arguments"),
    [(23, "not JSON " * 100), (25, '{"goal": true}'), (23, '{"text": "' + "x" * 3_000 + '"}')],
)
async def test_23_25_arguments_of_any_kind_are_left_as_they_are(
    server: Server, fact: int, arguments: str
) -> None:
    late = call("late", "done", "delegate_task", arguments)
    early = call("early", "done", "delegate_task", arguments)
    now, done = await compress(server, [user("Go."), *early, *talk(40), user("Go on."), *late])
    assert done.changed
    shown = [part.tool_call for message in now for part in message.parts]
    assert [one.arguments_json.decode() for one in shown if one.call_id == "late"] == [arguments]


async def test_29_a_message_of_many_parts_is_priced_by_their_texts(server: Server) -> None:
    one = user(long("u0", 400))
    many = user("")
    del many.parts[:]
    for word in text_of(one).split(" "):
        many.parts.add().text.text = f"{word} "
    await server.context.ingest.run(TENANT, S1, incoming(one, many), None)
    rows = await server.store.messages(scope(), 1)
    assert rows[1].tokens < 3 * rows[0].tokens
    image = user("See.")
    image.parts.add().image.data = b"x" * 1_000_000
    [priced] = incoming(image)
    assert priced.fixed_tokens < 5_000, "by what an image costs, and not by its bytes"


async def test_31_a_request_stays_and_thirty_rounds_behind_it_get_short(server: Server) -> None:
    request = user("Find out why the nightly build fails, and say so in one line.")
    messages = [*talk(3, 20), request]
    for number in range(30):
        messages += call(f"c{number}", long(f"out{number}", 1_000))
    now, done = await compress(server, messages, 32_000)
    assert done.changed
    assert [text_of(one) for one in now].count(text_of(request)) == 1
    assert sum(slot.tokens for slot in done.shown.slots) < done.done.before / 3
    assert paired(now)


@pytest.mark.parametrize(("first_n", "role"), [(1, pb.ROLE_ASSISTANT), (2, pb.ROLE_USER)])
async def test_35_a_summary_takes_the_role_that_is_next(
    compressor: Any, first_n: int, role: pb.Role
) -> None:
    """Behind a user's message and behind the model's: it says itself what it is, and where it
    ends."""
    server = await compressor(protect_first_n=first_n)
    now, _ = await compress(server, talk(40))
    told = now[first_n]
    assert told.id.startswith("ce:summary:")
    assert told.role == role
    assert "trust=untrusted" in text_of(told).splitlines()[0]
    assert text_of(told).splitlines()[-1].startswith("[Expand for details")


async def test_37_41_no_users_message_and_no_system_message_is_altered(server: Server) -> None:
    """The framing that the original writes into both stands in the addition, once."""
    messages = [system("Be kind."), *talk(40)]
    now, _ = await compress(server, messages)
    again, _ = await compress(server, [*now, *talk(40, first=40)])
    for shown in (now, again):
        assert shown[0] == messages[0]
        told = [one for one in shown if "ce:summary:" in one.id]
        assert len(told) == 1
        assert HANDOFF not in text_of(told[0])
    users = {text_of(one) for one in talk(80) if one.role == pb.ROLE_USER}
    said = [one for one in again if one.role == pb.ROLE_USER and not one.id.startswith("ce:")]
    assert {text_of(one) for one in said} <= users
    assembly = await server.assemble(WINDOW)
    assert assembly.addition.count(HANDOFF) == 1


async def test_39_behind_the_system_message_stands_a_users(compressor: Any) -> None:
    server = await compressor(protect_first_n=0)
    now, _ = await compress(server, [system("Be kind."), *talk(40)])
    assert now[0].role == pb.ROLE_SYSTEM
    assert now[1].role == pb.ROLE_USER
    assert now[1].id.startswith("ce:summary:")


async def test_43_45_a_handoff_from_elsewhere_is_a_message_like_any_other(server: Server) -> None:
    """It is summarized with the rest, and the summary there is bears no prefix twice."""
    old = user("[CONTEXT COMPACTION] Earlier turns were compacted. ## Goal\nAnother goal.")
    now, _ = await compress(server, [old, assistant("Understood."), *talk(40)])
    again, _ = await compress(server, [*now, *talk(40, first=40)])
    told = [one for one in again if one.id.startswith("ce:summary:")]
    assert len(told) == 1
    assert text_of(told[0]).count("[Summary ") == 1


async def test_55_without_a_model_the_ask_paths_and_no_secrets_are_told(server: Server) -> None:
    key = "sk-live-abcdefghijklmnop1234"
    ask = user(f"Mend /srv/app/billing.py with the key {key}, please.")
    now, done = await compress(server, [*talk(10), ask, *talk(30, first=10)])
    [made] = done.done.summaries
    assert made.text.count("Mend /srv/app/billing.py") <= 1
    assert "/srv/app/billing.py" in made.text
    assert now


async def test_59_another_model_has_other_budgets_and_no_reading(server: Server) -> None:
    await compress(server, talk(40))
    report = Report(input_tokens=9_000, billed=True)
    await server.context.report_usage.run(TENANT, S1, report, None)
    assert (await server.state()).attempts.strikes == 1
    ask = server.context.should_compact
    before = await ask.run(TENANT, S1, ShouldCompactCall())
    await server.context.update_model.run(TENANT, S1, Model("other", "there", 50_000), None)
    after = await ask.run(TENANT, S1, ShouldCompactCall())
    state = await server.state()
    assert after.threshold < before.threshold
    assert (state.usage.last_prompt, state.attempts.strikes, state.attempts.cooldown_ms) == (
        0,
        0,
        0,
    )


def transcript(dice: random.Random) -> list[pb.Message]:
    """Messages in any lawful order, of any size."""
    messages = [system("Be kind.")] if dice.random() < 0.5 else []
    for turn in range(dice.randint(1, 8)):
        messages.append(user(long(f"u{turn}", dice.choice([6, 40, 150]))))
        for step in range(dice.choice([0, 0, 1, 4])):
            ids = [f"c{turn}.{step}.{n}" for n in range(dice.choice([1, 1, 3]))]
            messages.append(assistant(dice.choice(["", "I look."]), "", *ids))
            messages += [result(id, long(id, dice.choice([6, 40, 200]))) for id in ids]
        if dice.random() < 0.8:
            messages.append(assistant(long(f"a{turn}", dice.choice([6, 100]))))
    return messages


@pytest.mark.parametrize("seed", range(3))
async def test_random_transcripts(compressor: Any, seed: int) -> None:
    """A hundred of each: no pair is broken, the input is untouched, the last request is there, and
    nothing gets larger."""
    dice, server, changed = random.Random(seed), await compressor(), 0
    for number in range(100):
        messages, budget = transcript(dice), dice.choice([700, 1_500, 4_000])
        now, done = await compress(server, messages, budget, ref=Ref("agent", f"r{number}"))
        assert paired(now)
        last = [one for one in messages if one.role == pb.ROLE_USER][-1]
        texts = [text_of(one) for one in now if one.role == pb.ROLE_USER]
        assert text_of(last) in texts or any(text_of(last)[:40] in text for text in texts)
        assert done.done.after <= done.done.before
        changed += bool(done.changed)
    assert changed > 30
