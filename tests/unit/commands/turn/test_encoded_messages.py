"""Base64 in texts counts and is shown as what it is (docs/semantics.md#encoded-bytes), and no user
message that is pinned wedges its session."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.plan import segment_slots
from contextengine_server.session.assembly.assembly import DEGRADED, FITS, Assembly
from contextengine_server.testing.oracle.bounded import dishonest
from contextengine_server.wire.slots import item_of
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import (
    S1,
    TENANT,
    Rows,
    Server,
    assistant,
    incoming,
    result,
    scope,
    texts_of,
    user,
)

DATA = b"\x89PNG\r\n\x1a\n\x00" + b"".join(sha256(b"%d" % at).digest() for at in range(3_000))
RUN = b64encode(DATA).decode()
URI = f"data:image/png;base64,{RUN}"


def frames(made: Assembly) -> list[bytes]:
    segments = made.plan.segments
    return [slot.frame for segment in segments for slot in segment_slots(segment, made.view)]


def items(made: Assembly) -> list[pb.Item]:
    return [item_of(frame) for frame in frames(made)]


async def store(server: Server, *messages: pb.Message) -> None:
    await server.context.ingest.run(TENANT, S1, incoming(*messages), None)


@pytest.mark.parametrize("engine", ["dag", "legacy"])
async def test_every_engine_shows_a_picture_as_what_it_is(serve: Serve, engine: str) -> None:
    server = await serve(**{"engine.default": engine})
    call = assistant("", "c", "shot")
    said = (user(f"see {URI} there", "u"), call, result("shot", f"taken:\n{RUN}\n", "r"))
    await store(server, *said)
    made = await server.assemble(2_000)
    assert made.outcome == FITS
    digest = sha256(DATA).hexdigest()[:16]
    told = f"[image/png, {len(DATA):,} bytes, sha256 {digest}: left out here; expand sequence"
    assert texts_of(made)[0] == f"see {told} 1 to read it] there"
    shown = items(made)
    assert shown[2].message.parts[0].tool_result.parts[0].text.text.startswith(f"taken:\n{told} 3")
    assert [dishonest(shown[at], said[at]) for at in (0, 2)] == [None, None]
    assert made.tokens < 400


async def test_it_is_the_same_from_a_cold_store_and_all_of_it_is_kept(serve: Serve) -> None:
    server = await serve()
    log = "a line of a log\n" * 4_000
    await store(server, user(f"{RUN} and\n{log}", "u"), assistant("ok", "a"), user("go", "g"))
    cold = await serve()
    for budget in (8_000, 50_000):
        warm, read = await server.assemble(budget), await cold.assemble(budget)
        assert frames(warm) == frames(read)
        assert (warm.epoch, warm.tokens) == (read.epoch, read.tokens)
        assert RUN not in texts_of(warm)[0]
    stored = await server.store.messages(scope(), 1, 2)
    assert RUN in pb.Message.FromString(stored[0].body).parts[0].text.text


async def test_what_must_be_verbatim_is(serve: Serve) -> None:
    server = await serve()
    pinned = user(f"keep {RUN}", "p")
    pinned.labels["pinned"] = "true"
    system = pb.Message(role=pb.ROLE_SYSTEM, id="s")
    system.parts.add().text.text = f"rules {RUN}"
    await store(server, system, pinned, user("go", "u"))
    made = await server.assemble(900_000)
    assert [RUN in text for text in texts_of(made)] == [True, True, False]


@given(st.integers(0, 3), st.integers(400, 20_000), st.booleans(), st.booleans())
def test_a_pinned_paste_never_wedges_a_session(
    later: int, budget: int, sealed: bool, encoded: bool
) -> None:
    """Of whatever size and whenever asked: what must stay fits, and says what is left out."""

    async def play() -> None:
        server = await Server(Rows()).open()
        try:
            text = f"{RUN}\n" if encoded else "".join(f"{at} all is well\n" for at in range(4_000))
            paste = user(text, "paste")
            if sealed:
                paste.parts.add().reasoning.signature = b"signed"
            else:
                paste.labels["pinned"] = "true"
            await store(server, paste)
            for turn in range(later):
                await store(server, assistant("ok", f"a{turn}"), user("go on", f"u{turn}"))
            made = await server.assemble(budget)
            assert made.outcome in (FITS, DEGRADED)
            assert made.tokens <= made.cell
            first = items(made)[0]
            if first.message.id == "paste" and first.message != paste:
                assert dishonest(first, paste) is None
                assert first.message.parts[1:] == paste.parts[1:]
                # What is no longer the newest and not pinned is bounded like any other.
                if not encoded and not (sealed and later):
                    assert made.outcome_reason == "PROMPT_BOUNDED"
        finally:
            await server.close()

    asyncio.run(play())
