"""No request is an engine's failure: whatever the session, the list, the prompt, the window and the
options, the answer is an assembly or a refusal with a reason of the caller's."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import annotated_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.errors import BudgetImpossible, InvalidField, SessionNotFound
from contextengine_server.plugins.engines import installed_engines
from contextengine_server.session.assembly.assembly import (
    FITS,
    OVER_BUDGET,
    AssembleCall,
    Prompt,
)
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.testing.engine.random_sessions import (
    RandomEvent,
    events,
    leading,
    messages_of,
)
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import S1, TENANT, Rows, Server, incoming, user

REGISTERED = {one.id: one for one in installed_engines().registrations}
REFUSALS = (BudgetImpossible, InvalidField)
"""What a request may be told of its budget."""


def options_of(model: type[BaseModel]) -> st.SearchStrategy[dict[str, Any]]:
    """Options within their ranges, the edges often."""
    fields: dict[str, st.SearchStrategy[Any]] = {}
    for name, field in model.model_fields.items():
        least = next((m.ge for m in field.metadata if isinstance(m, annotated_types.Ge)), None)
        most = next((m.le for m in field.metadata if isinstance(m, annotated_types.Le)), None)
        if isinstance(field.default, bool):
            fields[name] = st.booleans()
        elif isinstance(least, (int, float)) and isinstance(most, (int, float)):
            edges = st.sampled_from((least, most, field.default))
            within = (
                st.floats(least, most)
                if isinstance(least, float) or isinstance(most, float)
                else st.integers(int(least), int(most))
            )
            fields[name] = edges | within
    return st.fixed_dictionaries({}, optional=fields)


engines = st.sampled_from(sorted(REGISTERED)).flatmap(
    lambda name: options_of(REGISTERED[name].options).map(
        lambda options: (
            {f"engine.{name}.{key}": value for key, value in options.items()}
            | {"engine.default": name}
        )
    )
)
tokens = st.sampled_from((0, 1, 2, 10, 100, 700, 3_000, 12_000, 128_000, 10_000_000))
given_parts = st.none() | st.integers(0, 20_000)
budgets = st.builds(BudgetSpec, message_tokens=tokens) | st.builds(
    BudgetSpec,
    window=st.none() | tokens | st.integers(0, 100_000),
    system_prompt=st.sampled_from((0, 0, 500, 9_000)),
    output_reserve=given_parts,
    safety_margin=given_parts,
    rot_buffer=given_parts,
)
talks = st.tuples(leading, st.lists(events, max_size=8)).map(
    lambda parts: [row.message for row in messages_of([*parts[0], *parts[1]])]
)
"""Messages of up to about 20,000 tokens; often none at all."""
prompts = st.none() | st.builds(Prompt, st.just(()), st.sampled_from((1, 80, 5_000, 200_000)))


def padded(messages: list[pb.Message]) -> list[pb.Message]:
    """Messages as long as their texts say, up to 2,500 tokens each."""
    for message in messages:
        for part in message.parts:
            inner = part.tool_result.parts if part.WhichOneof("kind") == "tool_result" else [part]
            for one in inner:
                said = one.text.text
                if said.startswith("["):
                    one.text.text = said + " word" * min(2_500, int(said[1 : said.index("]")]))
    return messages


@given(engines, talks, st.none() | talks, st.booleans(), prompts, st.lists(budgets, min_size=1))
def test_no_request_fails_an_engine(
    chosen: dict[str, Any],
    stored: list[pb.Message],
    live: list[pb.Message] | None,
    store_new: bool,
    prompt: Prompt | None,
    asked: list[BudgetSpec],
) -> None:
    async def play() -> None:
        server = await Server(Rows(), **chosen).open()
        try:
            if stored:
                await server.context.ingest.run(TENANT, S1, incoming(*padded(stored)), None)
            brought = None if live is None else incoming(*padded([*stored, *live]))
            for at, spec in enumerate(asked[:3]):
                if at == 1:  # what was compacted meanwhile makes no difference
                    with suppress(SessionNotFound):
                        await server.compact()
                call = AssembleCall(
                    TENANT, S1, live=brought, store_new=store_new, prompt=prompt, budget=spec
                )
                try:
                    address = await server.core.addresses.find(TENANT, S1)
                    await server.core.assembler.assemble(call, address)
                except REFUSALS:
                    continue
        finally:
            await server.close()

    asyncio.run(play())


@pytest.mark.parametrize("name", sorted(REGISTERED))
async def test_a_prompt_above_the_budget_of_an_empty_session_is_over_budget(
    serve: Serve, name: str
) -> None:
    server = await serve(**{"engine.default": name})
    long = Prompt((), 80)
    lists: tuple[list[Any] | None, ...] = (None, [])
    for live in lists:
        over = await server.assemble(10, live=live, prompt=long)
        assert (over.outcome, over.tokens) == (OVER_BUDGET, 0)
        assert (await server.assemble(100, live=live, prompt=long)).outcome == FITS
    # An address without an agent as well: nothing is stored there, and nothing sent.
    call = AssembleCall(TENANT, S1, prompt=long, budget=BudgetSpec(message_tokens=10))
    assert (await server.core.assembler.assemble(call, None)).outcome == OVER_BUDGET


@pytest.mark.parametrize("name", sorted(REGISTERED))
async def test_a_late_result_behind_an_edited_message_fails_no_engine(
    serve: Serve, name: str
) -> None:
    """The list has an older message in another wording, so of what it has only a part is stored."""
    server = await serve(**{"engine.default": name})
    kinds = (("instructions", 1), ("instructions", 0), ("reasoned calls", 2), ("user", 0))
    events_of = [RandomEvent(kind, choice, 1, pinned=False) for kind, choice in kinds]
    stored = [row.message for row in messages_of(events_of)]
    late = [row.message for row in messages_of([RandomEvent("result", 0, 1, pinned=False)])]
    await server.context.ingest.run(TENANT, S1, incoming(*padded(stored)), None)
    brought = incoming(*padded([*stored, *late]))
    answer = await server.assemble(100_000, live=brought)
    assert answer.outcome == FITS


@pytest.mark.parametrize("name", sorted(REGISTERED))
async def test_the_result_of_a_call_under_the_id_of_a_message_without_one_fails_no_engine(
    serve: Serve, name: str
) -> None:
    server = await serve(**{"engine.default": name})
    said = [row.message for row in messages_of([RandomEvent("user", 1, 1, pinned=False)] * 2)]
    await server.context.ingest.run(TENANT, S1, incoming(*said), None)
    kinds = ("user", "calls", "result")
    events_of = [RandomEvent(kind, kind != "result", 1, pinned=False) for kind in kinds]
    brought = [row.message for row in messages_of(events_of)]
    assert brought[1].id == said[1].id != ""
    brought[2].id = ""
    for more in ([], [user("go on")], [user("go on")]):
        answer = await server.assemble(100_000, live=incoming(*brought, *more), store_new=True)
        assert answer.outcome == FITS
    # Nobody sees it, and once something behind it is known no list stores it again.
    assert not answer.stored


async def test_the_engine_that_stands_in_does_not_fail_either(serve: Serve) -> None:
    server = await serve(**{"engine.on_engine_failure": "legacy"})
    over = await server.assemble(10, prompt=Prompt((), 80))
    assert (over.outcome, over.engine.id) == (OVER_BUDGET, "dag")
    assert not server.core.selection.failures.of_tenant(TENANT)
