"""What a sampled call shows in its trace: a child for each thing that takes time, with ids and
counts, and never text (docs/tracing.md)."""

from __future__ import annotations

import orjson
import pytest

from contextengine_server.commands.compaction.compact import CompactCall
from contextengine_server.recall.expansion import Wanted
from contextengine_server.recall.query import Query
from contextengine_server.session.assembly.assembly import AssembleCall
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.telemetry.tracing import Span, Value, under
from tests.unit.commands.house import AGENT, S1, TENANT, Server, spoken
from tests.unit.commands.turn.test_assemble import QUESTION, Writer

TRACE_ID = 7


class Sampled:
    """One sampled call: its own span, and those that ended within, in order."""

    def __init__(self) -> None:
        self.ended: list[Span] = []
        self.root = Span(self.ended.append, "rpc", "server", TRACE_ID)

    @property
    def names(self) -> list[str]:
        assert {span.trace_id for span in self.ended} <= {TRACE_ID}
        assert all(span.parent_id for span in self.ended)
        return [span.name for span in self.ended]

    def said(self, name: str) -> dict[str, Value]:
        """The attributes of the last span of this name."""
        return [span.attributes for span in self.ended if span.name == name][-1]


@pytest.fixture
def sampled() -> Sampled:
    return Sampled()


async def test_a_write(server: Server, sampled: Sampled) -> None:
    with under(sampled.root):
        await server.context.ingest.run(TENANT, S1, spoken("a", "b"), None)
    assert sampled.names == ["load", "commit"]
    assert sampled.root.attributes == {
        "contextengine.tenant": TENANT,
        "gen_ai.agent.id": AGENT,
        "gen_ai.conversation.id": S1.session,
    }
    assert sampled.said("load") == {"contextengine.load.source": "memory"}
    assert sampled.said("commit") == {
        "contextengine.commit.revision": 1,
        "contextengine.commit.messages": 2,
        "contextengine.commit.summaries": 0,
    }


async def test_an_assembly(server: Server, other: Server, sampled: Sampled) -> None:
    await server.ingest("a", "b", "c")
    call = AssembleCall(TENANT, S1, budget=BudgetSpec(message_tokens=9_000), trace=sampled.root)
    with under(sampled.root):
        await other.context.assemble.run(call, QUESTION, Writer())
    assert sampled.names == ["load", "plan", "laws"]
    assert sampled.said("load") == {"contextengine.load.source": "store"}
    tokens = (await server.assemble()).tokens
    assert sampled.said("plan") == {
        "contextengine.engine": "dag",
        "contextengine.plan.budget": 9_000,
        "contextengine.plan.tokens": tokens,
        "contextengine.plan.segments": 1,
    }


async def test_an_answer_that_was_at_hand(server: Server, sampled: Sampled) -> None:
    await server.ingest("a")
    call = AssembleCall(TENANT, S1, budget=BudgetSpec(message_tokens=9_000))
    for _ in range(2):
        await server.context.assemble.run(call, QUESTION, Writer())
    assert await server.context.assemble.again(QUESTION, sampled.root) == b"a."
    assert sampled.root.attributes == {"contextengine.reply.repeated": True}


async def test_a_compaction(server: Server, sampled: Sampled) -> None:
    await server.talk(1, 8)
    call = CompactCall(force=True, budget=BudgetSpec(message_tokens=2_000))
    with under(sampled.root):
        await server.context.compact.run(TENANT, S1, call, lambda done: b"", sampled.root)
    assert {"load", "compact", "summarize", "commit"} == set(sampled.names)
    made = len(await server.store.summaries((await server.head()).scope, retired=True))
    said = sampled.said("compact")
    assert said["contextengine.compaction.summaries"] == made > 0
    before, after = (said[f"contextengine.compaction.tokens_{at}"] for at in ("before", "after"))
    assert isinstance(before, int)
    assert isinstance(after, int)
    assert before > after > 0
    assert sampled.said("commit")["contextengine.commit.summaries"] == 1


async def test_recall(server: Server, sampled: Sampled) -> None:
    server.indexer.start()
    await server.ingest("a zebra", "b")
    arguments = orjson.dumps({"sequences": [1]})
    with under(sampled.root):
        await server.recall.search.run(TENANT, S1, Query("zebra"), 0, "")
        await server.recall.expand.run(TENANT, S1, Wanted(sequences=(1,)), "")
        await server.context.call_tool.run(TENANT, S1, "ctx_expand", arguments, "")
    assert [name for name in sampled.names if name != "load"] == ["search", "expand", "tool"]


async def test_no_text_of_a_message(server: Server, sampled: Sampled) -> None:
    server.indexer.start()
    with under(sampled.root):
        await server.ingest("a secret zebra")
        await server.assemble()
        await server.recall.search.run(TENANT, S1, Query("zebra"), 0, "")
    told = [value for span in (*sampled.ended, sampled.root) for value in span.attributes.values()]
    assert not any("zebra" in str(value) for value in told)
