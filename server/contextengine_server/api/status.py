"""GetStatus: how a session is, in the words of the wire."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from msgspec import structs

from contextengine_proto.v1 import host_pb2, message_pb2
from contextengine_proto.v1 import lifecycle_pb2 as pb
from contextengine_server.api import replies
from contextengine_server.api.pipeline.auth import Caller
from contextengine_server.api.subagents import spawn_status
from contextengine_server.commands.compaction.should_compact import awaits_usage
from contextengine_server.commands.lifecycle.get_status import SessionStatus, SummarizerState
from contextengine_server.compaction.model_failure import goes_by_attempts
from contextengine_server.context.budget import in_model
from contextengine_server.session.state import SessionState, Spending, UsageFacts
from contextengine_server.session.usage.guard import GuardUse, spent_in_turn
from contextengine_server.store.rows import Costs

_SUMS = Costs.__struct_fields__[3:]


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
        last_message_id=state.view.last_id,
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
        engine_status_json=_engine_status(status),
    )
    said.create_time.FromMilliseconds(head.created_ms)
    said.update_time.FromMilliseconds(head.updated_ms)
    budget = status.budget
    if budget is not None:
        said.window, said.window_assumed = budget.window, budget.assumed
        said.threshold_tokens = in_model(status.limit, status.target.factor)
        said.usage_percent = min(100.0, 100.0 * said.view_tokens / max(1, budget.available))
    _usage(said, state.usage)
    said.cost.CopyFrom(_session_cost(state.usage))
    _costs_apart(said, state)
    _agent_costs(said, status.costs, status.scope.agent)
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
    if status.guarded is not None:
        said.token_guard.CopyFrom(_guard(status.guarded))
    return said


def _engine_status(status: SessionStatus) -> bytes:
    """What the engine adds; of one that waits after failures also how its compactions went, by the
    names that hosts of Hermes read."""
    view, state, engine = status.view, status.state, status.selected.engine
    said: dict[str, object] = status.facts | {
        "steps": view.steps,
        "window_from_step": view.window_from_step,
        "fingerprint": engine.fingerprint,
        "held": state.held,
        "failures_in_a_row": view.faults,
    }
    if goes_by_attempts(engine):
        went, failed = state.attempts, state.attempts.cooling(status.now_ms)
        said |= {
            "compression_count": state.compactions,
            "blocked": status.blocked,
            "awaiting_real_usage_after_compression": awaits_usage(state),
            "compression_failure_cooldown_seconds": failed,
            "last_summary_error": went.failure or "",
            "last_compress_aborted": bool(failed) and went.aborts,
            "last_summary_fallback_used": went.dropped > 0,
            "last_summary_dropped_count": went.dropped,
            "ineffective_compression_count": went.strikes,
            "compression_fallback_streak": went.fallbacks,
        }
    return orjson.dumps(said)


def _guard(use: GuardUse) -> pb.TokenGuardStatus:
    caps = use.caps
    return pb.TokenGuardStatus(
        execution_tokens=use.execution,
        max_execution_tokens=caps.per_execution,
        tokens_last_hour=use.hour,
        max_tokens_per_hour=caps.per_hour,
        tokens_last_day=use.day,
        max_tokens_per_day=caps.per_day,
    )


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


def _session_cost(usage: UsageFacts) -> pb.CostReport:
    """What a session's calls cost."""
    return _report(
        Costs(
            "",
            "",
            "",
            usage.reports,
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.priced_micro_usd,
            usage.saved_micro_usd,
            usage.unpriced,
        )
    )


def _costs_apart(said: pb.GetStatusResponse, state: SessionState) -> None:
    """What calls of a session cost, of its newest execution and by channel."""
    usage = state.usage
    if spent_in_turn(state):
        said.execution_cost.CopyFrom(_report(_costs_of(usage.execution)))
    dearest = sorted(usage.channels.items(), key=lambda one: (-one[1].cost_micro_usd, one[0]))
    for channel, spent in dearest:
        cost = _report(_costs_of(spent))
        said.cost_by_channel.append(pb.ChannelCost(channel_type=channel, cost=cost))


def _costs_of(spent: Spending) -> Costs:
    return Costs("", "", "", **structs.asdict(spent))


def _agent_costs(said: pb.GetStatusResponse, costs: Sequence[Costs], agent: str) -> None:
    """What the calls of an agent cost, and those of its tenant, whose agents these are."""
    own = [one for one in costs if one.agent == agent]
    said.agent_cost.CopyFrom(_report(_together(own)))
    said.tenant_cost.CopyFrom(_report(_together(costs)))
    dearest = sorted(own, key=lambda one: (-one.cost_micro_usd, one.provider, one.model))
    said.agent_cost_by_model.extend(map(_report, dearest))


def _together(costs: Sequence[Costs]) -> Costs:
    sums = {name: sum(getattr(one, name) for one in costs) for name in _SUMS}
    return Costs("", "", "", **sums)


def _report(costs: Costs) -> pb.CostReport:
    prompt = costs.input_tokens + costs.cache_read_tokens + costs.cache_write_tokens
    return pb.CostReport(
        provider=costs.provider,
        model=costs.model,
        call_count=_wired(costs.calls),
        unpriced_call_count=_wired(costs.unpriced),
        usage=message_pb2.Usage(
            input_tokens=_wired(costs.input_tokens),
            output_tokens=_wired(costs.output_tokens),
            cache_read_tokens=_wired(costs.cache_read_tokens),
            cache_write_tokens=_wired(costs.cache_write_tokens),
        ),
        cost_micro_usd=_wired(costs.cost_micro_usd),
        saved_micro_usd=_wired(costs.saved_micro_usd),
        cache_hit_share=costs.cache_read_tokens / max(1, prompt),
    )


def _wired(number: int) -> int:
    """A sum as the wire's integers hold it."""
    return max(-(2**63), min(number, 2**63 - 1))
