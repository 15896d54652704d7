"""What a reply, watchers and counters tell of what was left out of an assembly, each token once."""

from __future__ import annotations

from contextengine_proto.v1 import message_pb2
from contextengine_server.api.replies import count, metrics
from contextengine_server.context.message import Form
from contextengine_server.context.plan import Reshaped, spared_by
from contextengine_server.context.work import at_once
from contextengine_server.session.assembly.assembly import AssembleCall
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.session.assembly.explanation import explain
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import (
    S1,
    SMALL,
    TENANT,
    Server,
    assistant,
    incoming,
    long,
    result,
    user,
)
from tests.unit.commands.turn.test_assemble import Writer

PRUNING = {
    "context_pruning.mode": "cache-ttl",
    "context_pruning.keep_last_assistants": 1,
    "context_pruning.soft_trim_ratio": 0,
    "context_pruning.hard_clear_ratio": 0,
    "context_pruning.min_prunable_tool_chars": 0,
}


async def say(server: Server, *messages: message_pb2.Message) -> None:
    await server.context.ingest.run(TENANT, S1, incoming(*messages), None)


async def ask(server: Server, tokens: int) -> None:
    call = AssembleCall(TENANT, S1, budget=BudgetSpec(message_tokens=tokens))
    await server.context.assemble.run(call, (TENANT, b"%d" % tokens), Writer())


def call(id: str, arguments: bytes, tool: str = "probe") -> message_pb2.Message:
    message = message_pb2.Message(role=message_pb2.ROLE_ASSISTANT)
    part = message.parts.add().tool_call
    part.call_id, part.name, part.arguments_json = id, tool, arguments
    return message


async def paused(server: Server) -> None:
    """A session with one long result, that goes on after an hour."""
    messages = [user("go"), assistant("", "", "c1"), result("c1", long("r", 900)), assistant("ok")]
    await say(server, *messages)
    for number, one in enumerate([assistant("ok"), user("and now")]):
        one.timestamp.seconds = 1_700_000_000 + 3_600 * number
        await say(server, one)


async def test_each_token_is_left_out_once(serve: Serve) -> None:
    """Comis reports the size of the whole context as what was masked."""
    server = await serve(**{**SMALL, **PRUNING})
    await paused(server)
    whole = await server.assemble(100_000)
    said = metrics(whole)
    [form] = [one for one in whole.plan.segments if isinstance(one, Reshaped)]
    assert said.tokens_masked == sum(tokens for _, tokens in spared_by(form, whole.view)) > 500
    assert said.tokens_loaded == whole.tokens + said.tokens_masked
    assert (said.tokens_evicted, dict(said.layer_tokens)) == (0, {})
    await say(server, *[assistant(long(f"a{number}", 300)) for number in range(12)], user("next"))
    some = await server.assemble(2_000)
    said = metrics(some)
    assert said.tokens_evicted > 1_000
    spared = said.tokens_masked + sum(said.layer_tokens.values())
    assert said.tokens_loaded == some.tokens + spared + said.tokens_evicted


async def test_what_is_shown_head_and_tail_is_not_masked(serve: Serve) -> None:
    server = await serve(**SMALL)
    await say(server, user("go"), assistant(long("a", 20_000)), assistant("b"), user("next"))
    made = await server.assemble(12_000)
    said = metrics(made)
    assert said.tokens_masked == 0
    bounded = said.layer_tokens["head-tail"]
    assert bounded > 1_000
    assert said.tokens_loaded == made.tokens + bounded + said.tokens_evicted
    assert {slot.form for one in made.plan.segments if isinstance(one, Reshaped)
            for slot in one.slots.values()} == {Form.HEAD_TAIL}  # fmt: skip


async def test_watchers_are_told_of_masks_once_a_list_begins_anew(serve: Serve) -> None:
    server = await serve(**{**SMALL, **PRUNING})
    await paused(server)
    await ask(server, 100_000)
    [told] = [event for event in server.events() if event.name == "context:masked"]
    assert (told.counts["messages"], told.revision) == (1, (await server.head()).revision)
    assert told.counts["tokens"] > 500
    await say(server, assistant("done"))
    await ask(server, 100_000)
    assert len([event for event in server.events() if event.name == "context:masked"]) == 1
    changes = server.core.meters.changes
    counted = {kind: counter.value for kind, counter in changes.items()}
    assert (counted["masked"], counted["evicted"], counted["overflow"]) == (1, 0, 0)


async def test_watchers_are_told_of_what_does_not_fit(serve: Serve) -> None:
    server = await serve(**SMALL)
    await server.talk(1, 12)
    await ask(server, 10)
    [told] = [event for event in server.events() if event.name == "context:overflow"]
    assert told.counts["tokens"] > told.counts["budget"] == 10
    assert told.revision == (await server.head()).revision
    assert told.attributes == {"engine": "dag", "recovery": "compact"}
    assert server.core.meters.changes["overflow"].value == 1


async def test_calls_that_were_made_before_are_told_as_they_come(serve: Serve) -> None:
    """Whatever the order of keys, as Comis has it; another value is another call."""
    server = await serve(**SMALL)
    await say(server, user("go"), call("c1", b'{"path": "a", "n": 1}'), result("c1", "x"))
    await say(server, call("c2", b'{"path": "b", "n": 1}'), result("c2", "x"))
    await say(server, call("c3", b'{"path": "a", "n": 1}', "other"), result("c3", "x"))

    def rereads() -> list[tuple[int, str]]:
        return [
            (event.counts["rereads"], event.attributes["tools"])
            for event in server.events()
            if event.name == "context:reread"
        ]

    assert rereads() == []
    await say(server, call("c4", b'{"n": 1, "path": "a"}'))
    assert rereads() == [(1, "probe")]
    assert server.core.meters.changes["reread"].value == 1
    made = await server.assemble(100_000, whole=True)
    said = at_once(count(at_once(explain(made))))
    assert said.reread_count == 1
    await say(server, result("c4", "x"))
    made = await server.assemble(100_000, whole=True)
    said = at_once(count(at_once(explain(made))))
    assert said.reread_count == 0  # the newest message is no longer the model's
    assert rereads() == [(1, "probe")]
    # A process that starts anew knows the calls that it reads.
    again = await serve(**SMALL)
    await again.assemble(100_000)
    await again.context.ingest.run(TENANT, S1, incoming(call("c5", b'{"n": 1, "path": "b"}')), None)
    assert [event.name for event in again.events()].count("context:reread") == 1


async def test_watchers_are_told_of_lists_that_begin_anew_or_do_not_fit(serve: Serve) -> None:
    server = await serve(**SMALL)

    def told() -> list[str]:
        return [event.attributes["verdict"] for event in server.events("context:budget_computed")]

    await say(server, user("a"))
    await ask(server, 100_000)
    await say(server, assistant("b"))
    await ask(server, 100_000)
    assert told() == ["fits"]
    await server.talk(1, 12)
    await ask(server, 10)
    await say(server, assistant("c"))
    await ask(server, 10)
    assert told() == ["fits", "over_budget", "over_budget"]
