"""A session that is read anew shows what one shows that was there all along: the window, and what
is read before it, stand for the whole history."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.commands.lifecycle.record_host_change import Rewound
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.context.work import at_once
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.explanation import explain
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import (
    AGENT,
    S1,
    SMALL,
    TENANT,
    Rows,
    Server,
    assistant,
    incoming,
    long,
    request,
    result,
    same_as_cold,
    user,
)

KINDS = (
    "user", "user", "answer", "answer", "calls", "result", "late", "pin", "large", "rewind",
    "system",
)  # fmt: skip

happening = st.tuples(st.sampled_from(KINDS), st.integers(0, 3), st.integers(20, 500))


def said(kind: str, number: int, words: int, calls: list[str]) -> list[pb.Message]:
    """The messages of what happens; `calls`: the ids of all calls so far, the newest last."""
    text = long(f"{kind}{number}", words)
    match kind:
        case "user":
            return [user(text)]
        case "pin":
            return [user(text, labels={"pinned": "yes"})]
        case "system":
            return [pb.Message(role=pb.ROLE_SYSTEM, parts=[pb.Part(text=pb.TextPart(text=text))])]
        case "large":
            return [user(long(f"large{number}", 6_000)), assistant("noted")]
        case "calls":
            calls += [f"c{number}", f"d{number}"]
            return [assistant(text, "", f"c{number}", f"d{number}")]
        case "result" if calls:
            return [result(calls[-1], text)]
        case "late" if calls:
            return [result(calls[len(calls) // 2], text)]
        case _:
            return [assistant(text)]


@settings(max_examples=40, deadline=None)
@given(
    begins=st.booleans(),
    happened=st.lists(happening, min_size=4, max_size=40),
    compact_at=st.integers(0, 39),
    budgets=st.lists(st.integers(400, 6_000), min_size=1, max_size=3),
)
def test_a_session_read_anew_shows_the_same(
    begins: bool, happened: list[tuple[str, int, int]], compact_at: int, budgets: list[int]
) -> None:
    asyncio.run(_same(begins, happened, compact_at, budgets))


async def _same(
    begins: bool, happened: list[tuple[str, int, int]], compact_at: int, budgets: list[int]
) -> None:
    rows = Rows()
    warm = await Server(rows, **SMALL).open()
    calls: list[str] = []
    policy = pb.Message(role=pb.ROLE_SYSTEM, parts=[pb.Part(text=pb.TextPart(text="be kind"))])
    first = [policy, user("hello")] if begins else [user("hello")]
    await warm.context.ingest.run(TENANT, S1, incoming(*first), None)
    for number, (kind, choice, words) in enumerate(happened):
        if number == compact_at:
            await warm.compact(4_000)
        if kind == "rewind":
            await _rewound(warm, number, choice)
            continue
        messages = incoming(*said(kind, number, words, calls))
        await warm.context.ingest.run(TENANT, S1, messages, None)
    for budget in budgets:
        cold = await Server(rows, **SMALL).open()
        for tokens in (budget, *budgets):
            await same_as_cold(warm, cold, tokens)
        told = [
            [
                (one.entry.sequence, one.kind, one.rule, one.tokens)
                for one in at_once(explain(assembly))
            ]
            for assembly in (
                await warm.assemble(budget, whole=True),
                await cold.assemble(budget, whole=True),
            )
        ]
        assert told[0] == told[1]
        await cold.close()
    await warm.close()


async def _rewound(server: Server, number: int, back: int) -> None:
    change = Rewound(max(0, (await server.head()).last_sequence - back))
    await server.context.record_host_change.run(TENANT, S1, change, request(f"r{number}"))


async def test_a_session_stands_on_what_its_parents_parents_were(
    server: Server, other: Server
) -> None:
    """However they go on, are emptied or are summarized since."""
    s2, s3 = Ref(AGENT, "s2"), Ref(AGENT, "s3")
    await server.talk(1, 4)
    await server.compact()
    assert (await server.state()).compactions
    await server.context.bootstrap.run(TENANT, s2, Introduction(continues=S1))
    await server.ingest("b", ref=s2)
    await server.context.bootstrap.run(TENANT, s3, Introduction(continues=s2))
    await server.ingest("c", ref=s3)
    before = await server.shown(ref=s3)
    assert before[0].startswith("[Summary ")
    assert before[-2:] == ["b", "c"]
    await server.talk(5, 8)
    await server.compact(undo_to_generation=0)
    await server.compact(force=True)
    await server.context.reset_session.run(TENANT, s2, None, None)
    await server.ingest("another b", ref=s2)
    assert await other.shown(ref=s3) == before
    assert await other.shown(ref=s2) == ["another b"]
    await server.context.reset_session.run(TENANT, S1, None, None)
    cold = Ref(AGENT, "s4")
    await server.context.bootstrap.run(TENANT, cold, Introduction(continues=s3))
    assert await other.shown(ref=cold) == before


async def test_requests_between_summaries_are_shown_as_they_were(serve: Serve) -> None:
    """However far back they stand, and however much has come since."""
    warm = await serve()
    for turn in range(4):
        said = [user(long(f"request{turn}", 40)), *(assistant(long("did", 300)) for _ in range(8))]
        await warm.context.ingest.run(TENANT, S1, incoming(*said), None)
        await warm.compact(4_000)
        assert any(summary.asked_before for summary in (await warm.assemble()).view.summaries)
    said = [user("and now?"), *(assistant(long("did", 300)) for _ in range(30))]
    await warm.context.ingest.run(TENANT, S1, incoming(*said), None)
    for tokens in (400, 700, 1_000, 2_000, 3_000, 5_000):
        cold = await serve()
        await same_as_cold(warm, cold, tokens)
        assert (await warm.shown(tokens)) == (await cold.shown(tokens))


async def test_a_request_that_is_gone_leaves_no_room_to_what_was_evicted_for_it(
    serve: Serve,
) -> None:
    """Though no window holds it any more."""
    warm = await serve()
    said = [user(long("request", 250)), *(assistant(long("did", 60)) for _ in range(60))]
    await warm.context.ingest.run(TENANT, S1, incoming(*said), None)
    before = await warm.shown(900)
    for text in ("go on", "and on"):
        await warm.context.ingest.run(TENANT, S1, incoming(user(text)), None)
        cold = await serve()
        await same_as_cold(warm, cold, 900)
        assert not set(await cold.shown(900)) - {text, "go on", *before}


async def test_a_paste_that_is_the_newest_again_is_short_beside_its_summary(serve: Serve) -> None:
    server = await serve()
    said = [user("hello"), user(long("paste", 6_000)), assistant("noted")]
    more = [user(long("other", 6_000)), assistant("noted")]
    await server.context.ingest.run(TENANT, S1, incoming(*said, *more), None)
    await server.compact(4_000)
    await _rewound(server, 1, 2)
    assembly = await server.assemble(400)
    assert assembly.view.covering(1) is not None
    assert assembly.tokens <= 400
    await same_as_cold(server, await serve(), 400)


async def test_what_is_shown_shorter_leaves_room_that_a_window_holds(serve: Serve) -> None:
    """A question and an answer that alone exceed the budget take half of it each; they may be far
    from large."""
    warm = await serve()
    said = [user("hello"), user(long("paste", 6_000)), assistant("noted")]
    said += [user(long("asked", 378)), assistant(long("said", 360))]
    await warm.context.ingest.run(TENANT, S1, incoming(*said), None)
    raw = sum(atom.tokens for atom in (await warm.assemble()).view.atoms[-2:])
    # Of such a budget the window of a cold session reaches back to them, and hardly any further.
    shown = []
    for tokens in range(raw * 8 // 15 - 20, raw * 8 // 15 + 3):
        shown += await warm.shown(tokens)
        await same_as_cold(warm, await serve(), tokens)
    assert "noted" in shown
