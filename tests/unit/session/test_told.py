"""What a caller is told that asks for what cannot be: whole texts, with the field, what is wrong
with it, and what to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.context.budget import ImpossibleBudget, window_budget
from contextengine_server.context.scope import Scope
from contextengine_server.context.summary_text import SummaryFacts, render, verify
from contextengine_server.errors import (
    BudgetImpossible,
    ContradictoryFields,
    CorruptRow,
    FieldViolation,
    InvalidField,
    LostRace,
    RowNotFound,
    SessionHasDependents,
    SessionReplaced,
    SpawnEnded,
    TooLarge,
)
from contextengine_server.session.address import Addresses, Ref, not_found
from contextengine_server.session.assembly.assembly import AssembleCall
from contextengine_server.session.assembly.budget import (
    BudgetDefaults,
    BudgetModel,
    BudgetSpec,
    budget_of,
)
from contextengine_server.session.assembly.prompt import not_stored
from contextengine_server.session.assembly.treatment import Treatment
from contextengine_server.session.receipt import over_cap
from contextengine_server.session.state import SessionState
from tests.unit.commands.house import AGENT, S1, TENANT, Server, scope, spoken
from tests.unit.commands.subagents.test_prepare_subagent_spawn import CHILD, prepare

S2 = Ref(AGENT, "s2")


@pytest.mark.parametrize(
    ("ref", "field", "text"),
    [
        (Ref(""), "agent_id", "is required: it names the agent whose session this is"),
        (
            Ref(AGENT),
            "session_id",
            "is required, or session_key: one of the two names the session",
        ),
        (Ref("a" * 21, "s"), "agent_id", "is longer than 20 bytes: shorten it"),
        (Ref(AGENT, "é" * 11), "session_id", "is longer than 20 bytes: shorten it"),
        (Ref(AGENT, "s", "k" * 21), "session_key", "is longer than 20 bytes: shorten it"),
        (Ref(AGENT, "  "), "session_id", "is blank: nobody could tell it from none"),
        (Ref(AGENT, "s\x00"), "session_id", "holds a NUL character: remove it"),
    ],
)
async def test_a_name_that_names_nothing(server: Server, ref: Ref, field: str, text: str) -> None:
    addresses = Addresses(server.store, max_id_bytes=20)
    with pytest.raises(InvalidField) as refused:
        await addresses.find(TENANT, ref)
    (violation,) = refused.value.violations
    assert violation.field == f"{ref.field}.{field}"
    assert violation.description == text
    assert str(refused.value) == f"{ref.field}.{field}: {text}"
    for name in ("a" * 20, "é" * 10):
        assert (await addresses.find(TENANT, Ref(AGENT, name))).scope.session == name


def test_a_session_that_is_not_there() -> None:
    error = not_found(Scope("t", "main", "s9"))
    assert str(error) == (
        "there is no session 's9' of agent 'main': write to it first (Bootstrap or Ingest)"
    )
    assert error.metadata == {"agent_id": "main", "session_id": "s9"}


def test_a_prompt_that_is_not_stored() -> None:
    error = not_stored("m9")
    assert str(error) == (
        "current_message_id: no message 'm9' is stored in this session: ingest it or send `prompt`"
    )
    assert error.violations == (FieldViolation("current_message_id", "is not stored"),)


def test_a_tenant_that_takes_more_of_the_disk_than_it_may() -> None:
    error = over_cap(12_345_678, 1_000_000)
    assert isinstance(error, TooLarge)
    assert str(error) == (
        "the tenant's sessions take 12,345,678 bytes of the disk, at most 1,000,000 are allowed:"
        " delete sessions, or ask the operator for more (retention.caps)"
    )
    assert error.metadata == {"field": "retention.caps", "limit": "1000000", "used": "12345678"}


def test_windows_that_leave_nothing() -> None:
    with pytest.raises(ImpossibleBudget) as refused:
        window_budget(100, source="request", output_reserve=100)
    assert str(refused.value) == "output_reserve 100 is not below the window of 100 tokens"
    with pytest.raises(ImpossibleBudget) as refused:
        window_budget(
            100,
            source="request",
            system_prompt=40,
            tools=30,
            output_reserve=10,
            safety_margin=15,
            rot_buffer=5,
        )
    text = (
        "nothing is left of the window of 100 tokens: system prompt 40, tools 30, output reserve"
        " 10, safety margin 15, rot buffer 5"
    )
    assert str(refused.value) == text
    with pytest.raises(BudgetImpossible) as told:
        budget_of(
            BudgetSpec(
                window=100,
                system_prompt=40,
                tools=30,
                output_reserve=10,
                safety_margin=15,
                rot_buffer=5,
            ),
            AIM,
            BudgetDefaults(),
            "turn.budget",
        )
    assert str(told.value) == f"turn.budget.window: {text}: give a larger window or smaller parts"
    assert told.value.violations == (FieldViolation("turn.budget.window", text),)


def test_budgets_of_nothing() -> None:
    with pytest.raises(BudgetImpossible) as told:
        budget_of(BudgetSpec(message_tokens=0), AIM, BudgetDefaults())
    assert str(told.value) == (
        "budget.message_tokens: is 0, which leaves nothing for messages: give at least 1"
    )
    with pytest.raises(InvalidField) as wrong:
        budget_of(BudgetSpec(window=0), AIM, BudgetDefaults())
    assert str(wrong.value) == "budget.window.window: is 0: a window has at least one token"


def test_a_state_that_cannot_be_read() -> None:
    with pytest.raises(CorruptRow) as told:
        SessionState.decode(b"{")
    assert str(told.value) == (
        "the state of a session cannot be read (Input data was truncated): restore the database"
        " from a backup"
    )


AIM = BudgetModel("m", "p", 1.0, None, 0)
FACTS = SummaryFacts("s-1", 1, 20)
SHOWN = render(FACTS, "what was said")


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda text: text, None),
        (lambda text: "x" + text, "the header is not what the row says"),
        (lambda text: text + "x", "the footer is not what the row says"),
        (lambda text: text.split("\n")[0] + "\n", "the footer is not what the row says"),
        (
            lambda text: text.replace("<<<untrusted", "<<<trusted"),
            "the fence does not open behind the header",
        ),
        (
            lambda text: text.replace("untrusted>>>", "trusted>>>"),
            "the fence does not close before the footer",
        ),
        (lambda text: text.replace("said", "sad"), "the fence is not that of the body"),
        (
            lambda text: text.replace("said", text.split("<<<untrusted ")[1].split("\n")[0]),
            "the body holds the token of its fence",
        ),
    ],
)
def test_a_summary_that_is_not_shown_as_it_should_be(
    change: Callable[[str], str], wrong: str | None
) -> None:
    assert verify(FACTS, change(SHOWN)) == wrong


def test_a_summary_is_shown_whole() -> None:
    header, opening, body, closing, footer = SHOWN.split("\n")
    assert header == "[Summary s-1: depth=1, descendant_count=20, time=unknown, trust=untrusted]"
    fence = opening.removeprefix("<<<untrusted ")
    assert (body, closing) == ("what was said", f"{fence} untrusted>>>")
    assert footer == "[Expand for details about: its 20 messages]"
    with pytest.raises(ValueError, match="summary id") as refused:
        render(SummaryFacts("a b", 1, 20), "x")
    assert str(refused.value) == (
        "summary id 'a b' must be letters, digits and . _ : / -, at most 256 of them"
    )


async def test_a_token_that_is_over_or_not_known(server: Server) -> None:
    await server.ingest("a")
    token = (await prepare(server)).token
    children = server.core.children
    with pytest.raises(RowNotFound) as unknown:
        await children.live(TENANT, "spawn-none")
    text = "is not known: give PrepareSubagentSpawnResponse.spawn_token as it was"
    assert str(unknown.value) == f"spawn_token: {text}"
    assert unknown.value.violations == (FieldViolation("spawn_token", text),)
    assert (await children.live(TENANT, token)).token == token
    assert token.startswith("spawn-")
    server.clock.ms += 10**12
    with pytest.raises(SpawnEnded) as over:
        await children.live(TENANT, token)
    text = "is over (expired): prepare another child, or go on without it"
    assert str(over.value) == f"spawn_token: {text}"
    assert over.value.violations == (FieldViolation("spawn_token", text),)
    assert over.value.metadata == {"why": "expired"}
    (told,) = server.events("subagent:expired")
    assert told.attributes == {
        "parent_agent": AGENT,
        "parent_session": "s1",
        "reason": "expired",
    }


async def test_a_session_that_cannot_go_on_with_another(server: Server) -> None:
    await server.ingest("a")
    await server.ingest("b", ref=S2)
    with pytest.raises(ContradictoryFields) as refused:
        await server.context.bootstrap.run(TENANT, S1, Introduction(continues=S2))
    assert str(refused.value).endswith(
        "the session has messages of its own or continues another: only an empty session can"
        " continue one"
    )
    assert [one.field for one in refused.value.violations] == ["continues", "session"]


async def test_a_session_on_which_others_stand(server: Server) -> None:
    await server.ingest("a")
    await prepare(server, CHILD)
    with pytest.raises(SessionHasDependents) as refused:
        await server.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
    assert str(refused.value) == (
        "1 sessions stand on it: child: delete them first, or set cascade"
    )
    assert refused.value.metadata == {"sessions": "child"}


async def test_a_session_that_is_deleted_while_it_is_exported(
    server: Server, other: Server
) -> None:
    await server.ingest("a")

    async def gone() -> None:
        await other.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)

    server.store.before_read.append(gone)
    done = await server.sessions.export.run(TENANT, S1)
    with pytest.raises(SessionReplaced) as refused:
        await anext(done.messages())
    assert str(refused.value) == (
        "session 's1' was deleted while it was read: what was read of it is not the whole of"
        " anything"
    )
    assert refused.value.metadata == {"session_id": "s1"}


async def test_a_session_that_changes_faster_than_it_is_read(server: Server, other: Server) -> None:
    await other.ingest("a")
    last = 0

    async def anew() -> None:
        nonlocal last
        last += 1
        await other.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
        await other.ingest(f"a{last}")

    server.store.before_read += [anew] * 50
    with pytest.raises(LostRace) as refused:
        await server.shown()
    assert str(refused.value) == "session s1 changes faster than it can be read: send again"
    assert refused.value.retry_after_ms == 50
    server.store.before_read.clear()
    assert await server.shown() == [f"a{last}"]


async def test_what_has_no_owner_or_is_ignored_says_so(server: Server) -> None:
    for treatment, reason in (
        (Treatment.KEPT, "INCOMPLETE_SCOPE"),
        (Treatment.IGNORED, "SESSION_IGNORED"),
    ):
        call = AssembleCall(
            TENANT,
            Ref(""),
            treatment=treatment,
            ingest=spoken("x"),
            budget=BudgetSpec(message_tokens=100),
        )
        done = await server.core.assembler.assemble(call, None)
        assert (done.outcome_reason, done.joined.total) == (reason, 1)
    assert await server.store.head(scope()) is None
