"""GetStatus: how a session is."""

from __future__ import annotations

import orjson

from contextengine_proto.v1 import host_pb2, message_pb2
from contextengine_proto.v1 import lifecycle_pb2 as pb
from contextengine_server.api import replies
from contextengine_server.api.subagents import spawn_status
from contextengine_server.context.scope import Scope
from contextengine_server.engines.contract import Engine
from contextengine_server.errors import BudgetImpossible
from contextengine_server.runtime.guard_states import StoredStates
from contextengine_server.session.budget import BudgetSpec, budget_of, target
from contextengine_server.session.core import SessionCore
from contextengine_server.session.state import UsageFacts


async def status_of(core: SessionCore, scope: Scope) -> pb.GetStatusResponse:
    """Everything that hosts and operators ask of a session."""
    selected = await core.select(scope)
    debts = await core.store.debts(scope)
    async with core.session(scope) as session:
        head, state, view = core.require(session), session.state, session.view
        aim = target(session, "", "")
        engine = selected.engine
        said = pb.GetStatusResponse(
            session_id=scope.session,
            revision=head.revision,
            engine=replies.engine_info(engine),
            engine_source=selected.source,
            message_count=head.message_count,
            last_sequence=head.last_sequence,
            message_tokens=head.message_tokens,
            summary_count=head.summary_count,
            max_depth=max((s.depth for s in session.live_summaries), default=0),
            view_tokens=round(view.view_tokens() * aim.factor),
            generation=head.generation,
            compaction_count=state.compactions,
            model=head.model,
            provider=head.provider,
            model_factor=state.model.factor,
            learned_factor=state.model.learned,
            estimate_method=core.counter.method,
            session_key=head.session_key,
            ended=head.ended,
            pending_calls=len(view.atoms[-1].open) if view.atoms and view.atoms[-1].pending else 0,
            abandoned_calls=sum(map(len, view.abandoned.values())),
            engine_status_json=orjson.dumps(
                {
                    "steps": view.steps,
                    "window_from_step": view.base,
                    "fingerprint": engine.fingerprint,
                    "held": state.held,
                }
            ),
        )
        said.create_time.FromMilliseconds(head.created_ms)
        said.update_time.FromMilliseconds(head.updated_ms)
        try:
            budget = budget_of(BudgetSpec(), aim, core.defaults)
        except BudgetImpossible:
            budget = None
        if budget is not None:
            said.window, said.window_assumed = budget.window, budget.assumed
            said.threshold_tokens = round(budget.available * engine.threshold)
            said.usage_percent = min(100.0, 100.0 * said.view_tokens / max(1, budget.available))
        _usage(said, state.usage)
        failed = core.selection.failures.get(selected.chosen or engine.id)
        if failed is not None:
            said.engine_failure.CopyFrom(replies.failure(failed))
        if head.session_key:
            current = await core.store.current_session(scope.tenant, scope.agent, head.session_key)
            said.current_for_key = current == scope.session
        if head.parent_session:
            said.continues.CopyFrom(
                message_pb2.SessionRef(agent_id=scope.agent, session_id=head.parent_session)
            )
        if state.host:
            said.host.CopyFrom(host_pb2.HostInfo.FromString(bytes.fromhex(state.host)))
        now = core.clock_ms()
        await spawn_status(said, core, scope)
        said.summarizers.CopyFrom(await _summarizers(core, scope, engine))
        for debt in debts:
            kind = debt.kind.partition(":")[0]
            job = said.jobs.add(kind=kind, attempts=debt.attempts, last_error=debt.last_error)
            job.state = (
                "held" if debt.held else "running" if debt.lease_until_ms > now else "waiting"
            )
            job.queue_time.FromMilliseconds(debt.queued_ms)
        return said


async def _summarizers(core: SessionCore, scope: Scope, engine: Engine) -> pb.SummarizerStatus:
    policy = core.selection.policy(scope)
    now = core.clock_ms()
    guards = (await StoredStates(core.store.guards).state(scope.tenant)).status(policy, now)
    said = pb.SummarizerStatus(
        breaker_state=guards.phase,
        breaker_failures=guards.failures,
        tokens_last_hour=guards.spent_hour,
        max_tokens_per_hour=policy.spend.per_hour,
        tokens_last_day=guards.spent_day,
        max_tokens_per_day=policy.spend.per_day,
        attached_harness_count=core.attached(scope.tenant),
        open_job_count=await core.store.model_leases.open_count(scope.tenant),
    )
    if guards.wait_ms:
        said.breaker_retry_time.FromMilliseconds(now + guards.wait_ms)
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
