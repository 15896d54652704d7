"""What a receiver of OTLP sees of a running service: one trace an rpc, from the caller's span to
the store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from contextengine import types as t
from contextengine.messages import assistant, user
from contextengine_proto.v1 import assemble_pb2, lifecycle_pb2
from tests.integration.harness import House, ref
from tests.tracing.receiver import SERVER, Receiver, Seen, traced

TRACE_ID, SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TALK = "The build went on. " * 60
"""Some 240 tokens."""
EAGER = {
    "engine.dag.freshTailTurns": 1,
    "engine.dag.contextThreshold": 0.1,
    "budget.default_window": 32_000,
}
"""A window of which a few long messages are more than a tenth."""
PATIENCE_S = 60


def caused(sampled: bool = True, *more: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """What a caller with a span of its own sends along."""
    return (("traceparent", f"00-{TRACE_ID}-{SPAN_ID}-{'01' if sampled else '00'}"), *more)


def talk(pairs: int) -> list[t.Message]:
    return [said for _ in range(pairs) for said in (user(TALK), assistant(TALK))]


async def idle(house: House) -> None:
    """Waits until nothing is owed any more."""
    async with asyncio.timeout(PATIENCE_S):
        while (await house.app.core.store.counts())["debts"]:
            await asyncio.sleep(0.02)


async def test_a_step_is_one_trace_from_the_callers_span_to_the_store(tmp_path: Path) -> None:
    async with traced(tmp_path, ratio=0.0) as (house, seen):
        request = assemble_pb2.AssembleRequest(
            session=ref(), ingest=[user("Go on.")], request_id="one"
        )
        metadata = caused(True, ("tracestate", "vendor=abc"))
        await house.stub.Assemble(request, metadata=metadata)
        for _ in range(3):
            await house.stub.Assemble(
                assemble_pb2.AssembleRequest(session=ref()), metadata=metadata
            )
        await house.stop()
    first, second, _, again = seen.named("Assemble")
    assert (first.trace_id, first.parent_id, first.raw.kind) == (TRACE_ID, SPAN_ID, SERVER)
    assert seen.names(first) == ["load", "commit", "plan", "laws", "reply"]
    assert seen.names(second) == ["load", "plan", "laws", "reply"]
    assert seen.names(again) == []
    assert again.attributes["contextengine.reply.repeated"] is True
    assert {span.trace_id for span in seen} == {TRACE_ID}
    assert {span.raw.trace_state for span in seen} == {"vendor=abc"}
    known = first.attributes
    assert {key: known[key] for key in known if not key.startswith("network")} == {
        "rpc.system.name": "grpc",
        "rpc.method": "contextengine.v1.ContextEngine/Assemble",
        "rpc.response.status_code": "OK",
        "contextengine.tenant": "default",
        "gen_ai.agent.id": "agent",
        "gen_ai.conversation.id": "s1",
    }
    load, commit, plan, _, reply = seen.below(first)
    assert load.attributes == {"contextengine.load.source": "memory"}
    assert commit.attributes == {
        "contextengine.commit.revision": 1,
        "contextengine.commit.messages": 1,
        "contextengine.commit.summaries": 0,
    }
    assert plan.attributes["contextengine.engine"] == "dag"
    assert (
        plan.attributes["contextengine.plan.tokens"] < plan.attributes["contextengine.plan.budget"]
    )
    assert reply.attributes["contextengine.outcome"] == "OUTCOME_FITS"
    assert reply.attributes["contextengine.reply.items"] == 1


async def test_what_is_read_from_the_store_says_so(tmp_path: Path) -> None:
    async with traced(tmp_path) as (house, seen):
        await house.client.ingest(ref(), user("Go on."))
        house.forget()
        await house.client.assemble(session=ref())
        await house.stop()
    (assemble,) = seen.named("Assemble")
    assert seen.below(assemble)[0].attributes == {"contextengine.load.source": "store"}


Writing = Callable[[Any], Awaitable[Any]]
WRITING: dict[str, Writing] = {
    "Bootstrap": lambda stub: stub.Bootstrap(
        lifecycle_pb2.BootstrapRequest(session=ref("new"), history=[user("Hello")], request_id="a")
    ),
    "Ingest": lambda stub: stub.Ingest(
        lifecycle_pb2.IngestRequest(session=ref(), message=user("one"))
    ),
    "IngestBatch": lambda stub: stub.IngestBatch(
        lifecycle_pb2.IngestBatchRequest(session=ref(), messages=[user("two"), assistant("three")])
    ),
    "AfterTurn": lambda stub: stub.AfterTurn(
        lifecycle_pb2.AfterTurnRequest(session=ref(), messages=[assistant("four")])
    ),
    "RecordHostChange": lambda stub: stub.RecordHostChange(
        lifecycle_pb2.RecordHostChangeRequest(
            session=ref(), change_id="c1", rewind={"after_sequence": 1}
        )
    ),
    "UpdateModel": lambda stub: stub.UpdateModel(
        lifecycle_pb2.UpdateModelRequest(session=ref(), model="gpt-5", window=50_000)
    ),
    "ResetSession": lambda stub: stub.ResetSession(
        lifecycle_pb2.ResetSessionRequest(session=ref(), request_id="r1")
    ),
    "EndSession": lambda stub: stub.EndSession(
        lifecycle_pb2.EndSessionRequest(session=ref(), request_id="e1")
    ),
}


async def test_whatever_writes_reaches_the_store_in_its_own_trace(tmp_path: Path) -> None:
    async with traced(tmp_path) as (house, seen):
        for write in WRITING.values():
            await write(house.stub)
        await house.stop()
    for name in WRITING:
        (span,) = seen.named(name)
        assert "commit" in seen.names(span), name
        assert span.parent_id == ""


async def test_a_failed_call_says_how_and_no_more(tmp_path: Path) -> None:
    async with traced(tmp_path) as (house, seen):
        with pytest.raises(grpc.RpcError):
            await house.stub.GetStatus(lifecycle_pb2.GetStatusRequest(session=ref("nobody")))
        await house.stop()
    (failed,) = seen.named("GetStatus")
    assert failed.attributes["rpc.response.status_code"] == "NOT_FOUND"
    assert failed.attributes["error.type"] == "NOT_FOUND"


async def compacting(house: House, metadata: tuple[tuple[str, str], ...]) -> None:
    """A turn that makes a compaction due, and that compaction."""
    await house.client.ingest_batch(ref(), talk(6))
    request = lifecycle_pb2.AfterTurnRequest(session=ref(), messages=[user("And now?")])
    assert (await house.stub.AfterTurn(request, metadata=metadata)).compaction_queued
    await idle(house)


async def test_background_work_is_a_trace_of_its_own_linked_to_the_turn(tmp_path: Path) -> None:
    async with traced(tmp_path, ratio=0.0, **EAGER) as (house, seen):
        await compacting(house, caused())
        await house.stop()
    (turn,) = seen.named("AfterTurn")
    assert turn.attributes["contextengine.compaction.queued"] is True
    job = root(seen)
    assert job.links == [(TRACE_ID, turn.span_id)]
    assert job.trace_id != TRACE_ID
    assert job.attributes["gen_ai.conversation.id"] == "s1"
    assert job.attributes["contextengine.compaction.summaries"] >= 1
    assert (
        job.attributes["contextengine.compaction.tokens_after"]
        < job.attributes["contextengine.compaction.tokens_before"]
    )
    assert seen.names(job)[:5] == ["load", "load", "summarize", "load", "commit"]
    commits = [span for span in seen.below(job) if span.name == "commit"]
    assert commits[0].attributes["contextengine.commit.summaries"] == 1


def root(seen: Receiver) -> Seen:
    """The one piece of background work."""
    (job,) = [span for span in seen.named("compact") if not span.parent_id]
    return job


async def test_who_decides_against_a_trace_decides_for_what_it_causes(tmp_path: Path) -> None:
    async with traced(tmp_path, ratio=1.0, **EAGER) as (house, seen):
        await compacting(house, caused(sampled=False))
        await house.stop()
    assert [span.name for span in seen if not span.parent_id] == [
        "contextengine.v1.ContextEngine/IngestBatch"
    ]


@pytest.mark.parametrize(("parent_based", "traced_rpcs"), [(True, ["01"]), (False, ["00", "01"])])
async def test_whether_callers_decide_is_a_setting(
    tmp_path: Path, parent_based: bool, traced_rpcs: list[str]
) -> None:
    settings = {"telemetry.traces.parent_based": parent_based}
    async with traced(tmp_path, ratio=1.0, **settings) as (house, seen):
        for flag in ("00", "01"):
            parent = (("traceparent", f"00-{TRACE_ID}-{SPAN_ID[:-2]}{flag}-{flag}"),)
            await house.stub.Assemble(
                assemble_pb2.AssembleRequest(session=ref(flag)), metadata=parent
            )
        await house.stop()
    assert [span.parent_id[-2:] for span in seen.named("Assemble")] == traced_rpcs


async def test_a_compaction_after_a_restart_is_linked_to_what_caused_it_before(
    tmp_path: Path,
) -> None:
    async with traced(tmp_path, ratio=0.0, **EAGER) as (house, seen):
        await house.client.ingest_batch(ref(), talk(6))
        # Nobody works it off in this life: what is owed is a row.
        await house.app.background.stop()
        request = lifecycle_pb2.AfterTurnRequest(session=ref(), messages=[user("And now?")])
        assert (await house.stub.AfterTurn(request, metadata=caused())).compaction_queued
        await house.restart()
        await idle(house)
        await house.stop()
    (turn,) = seen.named("AfterTurn")
    assert root(seen).links == [(TRACE_ID, turn.span_id)]
    assert "commit" in seen.names(root(seen))


async def test_a_compaction_that_a_turn_waits_for_is_in_its_trace(tmp_path: Path) -> None:
    async with traced(tmp_path, **EAGER, **{"engine.dag.deferCompaction": False}) as (house, seen):
        await house.client.ingest_batch(ref(), talk(6))
        await house.stub.AfterTurn(
            lifecycle_pb2.AfterTurnRequest(session=ref(), messages=[user("And now?")])
        )
        await house.stop()
    (turn,) = seen.named("AfterTurn")
    (compact,) = [span for span in seen.below(turn) if span.name == "compact"]
    assert {"summarize", "commit"} <= set(seen.names(compact))


async def test_the_resource_says_who_sends(tmp_path: Path) -> None:
    async with traced(tmp_path) as (house, seen):
        await house.stub.Assemble(assemble_pb2.AssembleRequest(session=ref()))
        await house.stop()
    (resource,) = seen.requests[0].resource_spans
    said = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
    assert said["service.name"] == "contextengine"
    assert said["service.version"]
