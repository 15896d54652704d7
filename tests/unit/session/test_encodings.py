"""A session keeps the encoding that it began with, in counts too, whatever the server is configured
for later."""

from __future__ import annotations

import pytest

from contextengine_server.commands.turn.after_turn import Turn
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.context.scope import Scope
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.assembly import AssembleCall, Prompt
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.tokens import MESSAGE_TOKENS, TokenCounter
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import AGENT, S1, TENANT, Server, scope, spoken

OLD, NEW = "o200k_base", "cl100k_base"
S2 = Ref(AGENT, "s2")
TEXT = "Привет, мир: contexte engagé 你好世界 " * 8
"""A text that the two encodings count differently."""


def tokens(encoding: str, text: str = TEXT) -> int:
    return TokenCounter(encoding).count_text(text)


@pytest.fixture
async def before(server: Server) -> Server:
    """The server as it was, with a session."""
    assert server.counter.encoding == OLD
    await server.context.ingest.run(TENANT, S1, spoken(f"a {TEXT}"), None)
    return server


@pytest.fixture
async def after(before: Server, serve: Serve) -> Server:
    """The server that is configured for another encoding."""
    return await serve(**{"tokens.encoding": NEW})


def test_the_text_tells_the_encodings_apart() -> None:
    assert tokens(OLD) != tokens(NEW)


async def test_what_is_ingested_is_counted_as_before(after: Server) -> None:
    await after.context.ingest.run(TENANT, S1, spoken(f"b {TEXT}"), None)
    counts = [row.tokens for row in await after.store.messages(scope())]
    assert counts == [MESSAGE_TOKENS + tokens(OLD, f"{name} {TEXT}") for name in "ab"]
    head = await after.head()
    assert head.message_tokens == sum(counts)
    assert (await after.state()).encoding == OLD


async def test_a_warm_session_as_well(after: Server) -> None:
    await after.assemble()
    await after.context.after_turn.run(TENANT, S1, Turn(spoken(f"b {TEXT}"), budget=BudgetSpec()))
    rows = await after.store.messages(scope())
    assert rows[1].tokens == MESSAGE_TOKENS + tokens(OLD, f"b {TEXT}")


async def test_new_sessions_use_the_new_one(after: Server) -> None:
    await after.context.ingest.run(TENANT, S2, spoken(f"a {TEXT}"), None)
    (row,) = await after.store.messages(scope(S2))
    assert row.tokens == MESSAGE_TOKENS + tokens(NEW, f"a {TEXT}")
    assert (await after.state(S2)).encoding == NEW


async def test_an_old_server_counts_a_new_session_in_its_own(after: Server, before: Server) -> None:
    await after.context.ingest.run(TENANT, S2, spoken(f"a {TEXT}"), None)
    await before.context.ingest.run(TENANT, S2, spoken(f"b {TEXT}"), None)
    _, row = await before.store.messages(scope(S2))
    assert row.tokens == MESSAGE_TOKENS + tokens(NEW, f"b {TEXT}")


async def test_estimates_name_the_sessions_encoding(after: Server) -> None:
    assert (await after.assemble()).method == f"tiktoken:{OLD}"
    assert (await after.context.get_status.run(TENANT, S1, 0)).method == f"tiktoken:{OLD}"
    await after.ingest("a", ref=S2)
    assert (await after.assemble(ref=S2)).method == f"tiktoken:{NEW}"


@pytest.mark.parametrize("warm", [False, True])
async def test_the_prompt_is_counted_as_the_session_is(after: Server, warm: bool) -> None:
    if warm:
        await after.assemble()
    made = await after.assemble(prompt=Prompt((TEXT,), MESSAGE_TOKENS))
    assert made.prompt_tokens == MESSAGE_TOKENS + tokens(OLD)


async def test_the_texts_of_a_budget_are_counted_as_the_session_is(after: Server) -> None:
    spec = BudgetSpec(window=100_000, system_texts=(TEXT,), tool_texts=(TEXT, TEXT))
    address = await after.core.addresses.find(TENANT, S1)
    call = AssembleCall(TENANT, S1, budget=spec)
    made = await after.core.assembler.assemble(call, address)
    assert (made.budget.system_prompt, made.budget.tools) == (tokens(OLD), 2 * tokens(OLD))


async def test_messages_of_a_list_are_counted_as_the_session_is(after: Server) -> None:
    live = spoken(f"a {TEXT}", f"b {TEXT}")
    made = await after.assemble(live=live)
    assert made.tokens == sum(MESSAGE_TOKENS + tokens(OLD, f"{name} {TEXT}") for name in "ab")


async def test_summaries_are_counted_as_the_session_is(after: Server, before: Server) -> None:
    """Both servers make the same summary of it, at the same cost."""
    after.summarizer.says = before.summarizer.says = f"What was said: {TEXT}"
    await after.talk(1, 6)
    assert (await after.compact(4_000, propose_only=True)).done.summaries
    proposed = await after.compact(4_000, propose_only=True)
    same = await before.compact(4_000, propose_only=True)
    assert [row.tokens for row in proposed.done.summaries] == [
        row.tokens for row in same.done.summaries
    ]
    await after.compact(4_000)
    assert (await after.assemble()).tokens == (await before.assemble()).tokens


async def test_what_goes_on_with_a_session_keeps_its_encoding(after: Server) -> None:
    await after.context.bootstrap.run(TENANT, S2, Introduction(continues=S1), spoken(f"b {TEXT}"))
    assert (await after.state(S2)).encoding == OLD
    (row,) = await after.store.messages(scope(S2))
    assert row.tokens == MESSAGE_TOKENS + tokens(OLD, f"b {TEXT}")


async def test_a_session_made_again_uses_the_new_one(after: Server) -> None:
    await after.assemble()
    await after.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
    await after.context.ingest.run(TENANT, S1, spoken(f"a {TEXT}"), None)
    (row,) = await after.store.messages(scope())
    assert row.tokens == MESSAGE_TOKENS + tokens(NEW, f"a {TEXT}")


async def test_a_session_that_an_old_server_makes_first(after: Server, before: Server) -> None:
    """What was counted for a new session is counted again in the encoding that it began with."""
    after.store.before_commit = [lambda: before.context.ingest.run(TENANT, S2, spoken("a"), None)]
    await after.context.ingest.run(TENANT, S2, spoken(f"b {TEXT}"), None)
    _, row = await after.store.messages(scope(S2))
    assert (await after.state(S2)).encoding == OLD
    assert row.tokens == MESSAGE_TOKENS + tokens(OLD, f"b {TEXT}")


async def test_long_texts_are_counted_as_short_ones_are(server: Server) -> None:
    long = "a line of many words\n" * 2_000
    spec = BudgetSpec(window=100_000, system_texts=(long, "short"))
    address = await server.core.addresses.find(TENANT, S1)
    call = AssembleCall(TENANT, S1, budget=spec, prompt=Prompt((long,), MESSAGE_TOKENS))
    made = await server.core.assembler.assemble(call, address)
    counted = server.counter.count_text
    assert made.budget.system_prompt == counted(long) + counted("short")
    assert made.prompt_tokens == MESSAGE_TOKENS + counted(long)


@pytest.mark.parametrize("name", ["system_texts", "tool_texts"])
async def test_texts_of_one_kind_alone_are_counted(server: Server, name: str) -> None:
    spec = BudgetSpec(window=100_000, **{name: (TEXT,)})  # type: ignore[arg-type]
    address = await server.core.addresses.find(TENANT, S1)
    made = await server.core.assembler.assemble(AssembleCall(TENANT, S1, budget=spec), address)
    found = made.budget.system_prompt, made.budget.tools
    wanted = server.counter.count_text(TEXT)
    assert found == ((wanted, 0) if name == "system_texts" else (0, wanted))


async def test_a_session_in_memory_says_its_encoding_without_a_look_at_the_store(
    after: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = after.core.sessions
    assert (await sessions.encoding_of(scope())).name == OLD
    assert (await sessions.encoding_of(scope(S2))).name == NEW
    await after.shown()

    async def unasked(scope: Scope) -> None:
        raise AssertionError("the store was asked")

    monkeypatch.setattr(after.store, "head", unasked)
    assert (await sessions.encoding_of(scope())).name == OLD
