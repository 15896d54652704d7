"""GetStatus: how a session is, in the words of the wire."""

from __future__ import annotations

import orjson

from contextengine_proto.v1 import host_pb2, message_pb2
from contextengine_proto.v1 import lifecycle_pb2 as pb
from contextengine_server.api import replies
from contextengine_server.api.pipeline.auth import Caller
from contextengine_server.api.subagents import spawn_status
from contextengine_server.commands.lifecycle.get_status import SessionStatus, SummarizerState
from contextengine_server.context.budget import in_model
from contextengine_server.session.state import UsageFacts


def status_reply(status: SessionStatus, caller: Caller) -> pb.GetStatusResponse:
    """Everything that hosts and operators ask of a session. Tokens of the view are the model's."""
    head, state, view, engine = status.head, status.state, status.view, status.selected.engine
    said = pb.GetStatusResponse(
        session_id=status.scope.session,
        revision=head.revision,
        engine=replies.engine_info(engine, state.capabilities),
        engine_source=status.selected.source,
        message_count=head.message_count,
        last_sequence=head.last_sequence,
        message_tokens=head.message_tokens,
        summary_count=head.summary_count,
        max_depth=view.max_depth,
        view_tokens=in_model(view.tokens, status.target.factor),
        generation=head.generation,
        compaction_count=state.compactions,
        model=head.model,
        provider=head.provider,
        model_factor=state.model.factor,
        learned_factor=state.model.learned,
        estimate_method=status.method,
        session_key=head.session_key,
        current_for_key=status.current_for_key,
        ended=head.ended,
        pending_calls=view.pending_calls,
        abandoned_calls=view.abandoned_calls,
        live_child_count=status.live_children,
        disk_bytes=status.disk_bytes,
        engine_status_json=orjson.dumps(
            {
                "steps": view.steps,
                "window_from_step": view.window_from_step,
                "fingerprint": engine.fingerprint,
                "held": state.held,
            }
        ),
    )
    said.create_time.FromMilliseconds(head.created_ms)
    said.update_time.FromMilliseconds(head.updated_ms)
    budget = status.budget
    if budget is not None:
        said.window, said.window_assumed = budget.window, budget.assumed
        said.threshold_tokens = round(budget.available * engine.threshold)
        said.usage_percent = min(100.0, 100.0 * said.view_tokens / max(1, budget.available))
    _usage(said, state.usage)
    if status.failure is not None:
        said.engine_failure.CopyFrom(replies.failure(status.failure, caller))
    if head.parent_session:
        said.continues.CopyFrom(
            message_pb2.SessionRef(agent_id=head.scope.agent, session_id=head.parent_session)
        )
    if state.host:
        said.host.CopyFrom(host_pb2.HostInfo.FromString(bytes.fromhex(state.host)))
    if status.spawn is not None:
        spawn_status(said, status.spawn, status.parent_key)
    said.summarizers.CopyFrom(_summarizers(status.summarizers, status.now_ms))
    _jobs(said, status)
    return said


def _jobs(said: pb.GetStatusResponse, status: SessionStatus) -> None:
    for debt in status.jobs:
        kind = debt.kind.partition(":")[0]
        job = said.jobs.add(kind=kind, attempts=debt.attempts, last_error=debt.last_error)
        running = debt.lease_until_ms > status.now_ms
        job.state = "held" if debt.held else "running" if running else "waiting"
        job.queue_time.FromMilliseconds(debt.queued_ms)


def _summarizers(state: SummarizerState, now_ms: int) -> pb.SummarizerStatus:
    policy, guards = state.policy, state.guards
    said = pb.SummarizerStatus(
        breaker_state=guards.phase,
        breaker_failures=guards.failures,
        tokens_last_hour=guards.spent_hour,
        max_tokens_per_hour=policy.spend.per_hour,
        tokens_last_day=guards.spent_day,
        max_tokens_per_day=policy.spend.per_day,
        attached_harness_count=state.attached,
        open_job_count=state.open_jobs,
    )
    if guards.wait_ms:
        said.breaker_retry_time.FromMilliseconds(now_ms + guards.wait_ms)
    return said


def _usage(said: pb.GetStatusResponse, usage: UsageFacts) -> None:
    said.last_prompt_tokens = usage.last_prompt
    said.last_completion_tokens = usage.last_completion
    said.last_total_tokens = usage.last_total
    if usage.reports:
        total = said.total_usage
        total.input_tokens, total.output_tokens = usage.input_tokens, usage.output_tokens
        total.cache_read_tokens, total.cache_write_tokens = (
            usage.cache_read_tokens,
            usage.cache_write_tokens,
        )
        total.reasoning_tokens, total.cost_micro_usd = usage.reasoning_tokens, usage.cost_micro_usd
