"""Domain to wire: what a call answers. An assembly is written by joining frames behind the other
fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from contextengine_proto.v1 import assemble_pb2 as out
from contextengine_proto.v1 import budget_pb2, engine_info_pb2, lifecycle_pb2, message_pb2
from contextengine_server.api.messages import stored_message
from contextengine_server.api.pipeline.auth import Caller, CallerRole
from contextengine_server.commands.turn.assemble import ReplyFields
from contextengine_server.context import epoch as epochs
from contextengine_server.context.budget import ModelTokens, ReferenceTokens, in_model
from contextengine_server.context.message import Form, Role
from contextengine_server.context.plan import Reshaped, Summarized, spared_by
from contextengine_server.context.prefix import NO_STEP
from contextengine_server.context.work import Work, batches
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.host_capabilities import host_compacts, host_limits
from contextengine_server.session.assembly.assembly import OVER_BUDGET, Assembly
from contextengine_server.session.assembly.budget import Outside
from contextengine_server.session.assembly.explanation import Decision, Kind, explain
from contextengine_server.session.failures import Failure
from contextengine_server.session.model import Sent
from contextengine_server.slices import let_go
from contextengine_server.store.rows import SummaryRow
from contextengine_server.wire.slots import origin_sequence, summary_info

DEFERRAL = "tool-deferral"
"""What defers tools, among the layers that took tokens away."""


def engine_info(engine: Engine, capabilities: Sequence[str] = ()) -> engine_info_pb2.EngineInfo:
    """What an engine says of itself, to a host that can do this. No capabilities: not known."""
    keep = engine_info_pb2.HOST_AUTO_COMPACTION_KEEP
    disable = engine_info_pb2.HOST_AUTO_COMPACTION_DISABLE
    return engine_info_pb2.EngineInfo(
        id=engine.id,
        version=engine.version,
        name=engine.name,
        owns_compaction=engine.owns_compaction,
        host_auto_compaction=keep if host_compacts(engine, capabilities) else disable,
        tail_steps=engine.declared.tail_steps,
        forms=sorted(int(form) for form in engine.declared.forms),  # type: ignore[misc]
        compaction_threshold=engine.threshold,
        tools=engine.tools.names,
        turn_maintenance_mode="background" if engine.defers else "foreground",
        host_limits=[
            engine_info_pb2.HostLimit(capability=limit.capability, consequence=limit.consequence)
            for limit in host_limits(engine, capabilities)
        ],
    )


def failure(failed: Failure, caller: Caller) -> lifecycle_pb2.EngineFailure:
    """An engine's first failure: what it said, to operators alone."""
    said = lifecycle_pb2.EngineFailure(
        engine_id=failed.engine_id,
        operation=failed.operation,
        reason=failed.reason if caller.role is CallerRole.OPERATOR else failed.how,
        count=failed.count,
    )
    said.time.FromMilliseconds(failed.time_ms)
    return said


def budget_report(assembly: Assembly) -> budget_pb2.BudgetReport:
    """The budget in parts."""
    budget, factor = assembly.budget, assembly.budget.factor
    addition, outside = (
        in_model(assembly.addition_tokens, factor),
        in_model(assembly.prompt_tokens, factor),
    )
    preamble = round(assembly.preamble_tokens * factor)
    return budget_pb2.BudgetReport(
        window=budget.window,
        window_assumed=budget.assumed,
        window_source=budget.source,
        system_prompt=budget.system_prompt,
        tools=budget.tools,
        output_reserve=budget.output_reserve,
        safety_margin=budget.safety_margin,
        rot_buffer=budget.rot_buffer,
        available=budget.available,
        system_prompt_addition=addition,
        preamble=preamble,
        prompt=max(0, outside - preamble),
        messages=max(0, budget.available - addition - outside),
        cell=assembly.cell,
        model_factor=factor,
        estimate_method=assembly.method,
        utilization=assembly.view.view_tokens() * factor / max(1, budget.available),
        compaction_threshold=assembly.engine.threshold,
    )


def encode(assembly: Assembly, known_hash: bytes, known_epoch: str) -> ReplyFields:
    """The reply's fields, encoded; the frames of the items that the caller does not hold follow."""
    joined = assembly.joined
    # A hash is of what items say: an item held that has left the session would stand for another.
    now = assembly.epoch
    holds = known_hash and (known_epoch == now or epochs.has_same_rows(known_epoch, now))
    known = joined.length_of(known_hash) if holds else None
    reused = known or 0
    reply = out.AssembleResponse(
        outcome=assembly.outcome,  # type: ignore[arg-type]
        outcome_reason=assembly.outcome_reason,
        estimated_tokens=assembly.estimated,
        system_prompt_addition=assembly.addition,
        preamble=assembly.preamble,
        prompt_authority=out.PROMPT_AUTHORITY_ASSEMBLED,
        context_projection=out.ContextProjection(
            mode=projection_mode(assembly),
            epoch=assembly.epoch,
            fingerprint=assembly.engine.fingerprint,
        ),
        budget=budget_report(assembly),
        cache=out.CacheReport(
            reused_count=reused,
            total_count=joined.total,
            first_changed_index=reused,
            delta=known is not None,
            epoch_cause=int(epochs.cause(known_epoch, assembly.epoch)) if known_epoch else 0,  # type: ignore[arg-type]
            reused_tokens=joined.tokens_of(reused) if reused else 0,
        ),
        revision=assembly.view.revision,
        assembly_id=assembly_id(assembly),
        engine_id=assembly.engine.id,
        engine_version=assembly.engine.version,
        stored=map(stored_message, assembly.stored),
        metrics=metrics(assembly),
        visible_tools=assembly.tools,
        context_hash=joined.context_hash,
        cache_retention=assembly.cache_retention,  # type: ignore[arg-type]
        cache_breakpoints=assembly.breakpoints,
        suggested_max_output_tokens=assembly.longer_output or None,
    )
    if assembly.outcome == OVER_BUDGET:
        reply.biggest.extend(biggest(assembly))
    return ReplyFields(reply.SerializeToString(), reused, reply.cache.reused_tokens)


def explained(assembly: Assembly) -> Work[list[bytes]]:
    """What follows an encoded reply where the assembly is to be explained, in parts: protobuf reads
    parts of one message behind each other as the whole of it."""
    decisions = yield from explain(assembly)
    parts: list[bytes] = []
    for some in batches(decisions):
        parts.append(out.AssembleResponse(decisions=map(decision, some)).SerializeToString())
        yield
    counts = yield from count(decisions)
    parts.append(out.AssembleResponse(metrics=counts).SerializeToString())
    let_go(decisions)
    return parts


def projection_mode(assembly: Assembly) -> out.ContextProjection.Mode:
    """How a harness with threads of its own does best: once for a thread and epoch, where the
    engine cuts and compacts so that its epochs last. A list that is not the session's, and one that
    the host cuts itself, is another at every turn; and not every host can."""
    lasts = (
        assembly.engine.owns_compaction
        and not assembly.outcome_reason
        and assembly.bootstraps_threads
    )
    return (
        out.ContextProjection.MODE_THREAD_BOOTSTRAP
        if lasts
        else out.ContextProjection.MODE_PER_TURN
    )


_ID_VERSION = "a2"
MAX_DIGITS = 16
"""Of a number in an id: what a request may say."""
ANOTHER_MODEL = 4
"""In an id: it was made for another model than the session's."""


def assembly_id(assembly: Assembly) -> str:
    """Names an assembly and says what it was estimated at, so that nothing must be remembered of
    it."""
    asked = assembly.asked
    tokens = assembly.tokens + assembly.addition_tokens + assembly.rehydrated.tokens
    parts = (
        assembly.view.revision,
        tokens + assembly.prompt_tokens,
        asked.system_prompt + asked.tools,
        asked.system_counted + asked.tools_counted,
        ANOTHER_MODEL if assembly.another_model else asked.named,
        assembly.joined.context_hash.hex()[:16],
    )
    return ".".join((_ID_VERSION, *map(str, parts)))


def sent_in(name: str) -> Sent:
    """What an assembly's id says of it; of a name that is not one of ours, nothing."""
    version, *parts = name.split(".")
    numbers = parts[1:-1]
    if not all(number.isdecimal() and len(number) <= MAX_DIGITS for number in numbers):
        return Sent()
    match version, [int(number) for number in numbers]:
        case "a1", [tokens]:
            return Sent(ReferenceTokens(tokens))
        case "a2", [tokens, given, counted, named]:
            another = named == ANOTHER_MODEL
            outside = Outside(ModelTokens(given), ReferenceTokens(counted), 0 if another else named)
            return Sent(ReferenceTokens(tokens), outside, another)
    return Sent()


def metrics(assembly: Assembly) -> out.AssembleMetrics:
    """Counts that cost nothing to know."""
    view, compacted, messages = assembly.view, 0, 0
    loaded = view.view_tokens()
    spared: dict[Form, int] = {}
    for segment in assembly.plan.segments:
        if isinstance(segment, Reshaped):
            for form, tokens in spared_by(segment, view):
                spared[form] = spared.get(form, 0) + tokens
        if isinstance(segment, Summarized):  # what a summary that is not shown covers is evicted
            compacted += segment.summary.covered_tokens
            messages += segment.summary.message_count
    masked = spared.get(Form.PLACEHOLDER, 0)
    layers: dict[str, int] = {}
    for form, tokens in spared.items():
        if form is not Form.PLACEHOLDER:
            layers[form.name.lower().replace("_", "-")] = tokens
    if assembly.deferred_tokens:
        layers[DEFERRAL] = assembly.deferred_tokens
    back, again = assembly.rehydrated, None
    if back.tokens or back.stripped:
        again = out.AssembleMetrics.Rehydrated(
            sections=back.sections, files=back.files, tokens=back.tokens, stripped=back.stripped
        )
    return out.AssembleMetrics(
        rehydrated=again,
        tokens_loaded=loaded,
        tokens_evicted=max(0, loaded - assembly.tokens - sum(spared.values())),
        tokens_masked=masked,
        tokens_compacted=compacted,
        budget_utilization=(
            assembly.tokens + assembly.addition_tokens + assembly.prompt_tokens + back.tokens
        )
        / max(1, assembly.budget.reference),
        session_depth=view.message_count,
        messages_compacted=messages,
        layer_tokens=layers or None,
    )


def count(decisions: Sequence[Decision]) -> Work[out.AssembleMetrics]:
    """Counts that the decisions tell."""
    newest = decisions[-1].entry.traits if decisions else None
    answered = newest is not None and newest.role == Role.ASSISTANT
    evicted = synthetic = results = 0
    before: set[bytes] = set()
    for item in decisions:
        traits = item.entry.traits
        evicted += item.kind is Kind.EVICTED
        synthetic += item.synthetic_count
        results += len(traits.results)
        if answered and traits is not newest:
            before.update(traits.asked)
        yield
    return out.AssembleMetrics(
        messages_evicted=evicted,
        synthetic_results=synthetic,
        session_tool_results=results,
        reread_count=sum(asked in before for asked in newest.asked) if newest and answered else 0,
    )


def decision(item: Decision) -> out.Decision:
    """One decision."""
    said = out.Decision(
        sequence=item.entry.sequence if item.entry.live_index < 0 else 0,
        kind=int(item.kind),  # type: ignore[arg-type]
        rule=item.rule,
        tokens=item.tokens,
        summary_id=item.summary_id,
        synthetic_count=item.synthetic_count,
        id=item.entry.id,
        role=item.entry.traits.role,  # type: ignore[arg-type]
        form=int(item.form),  # type: ignore[arg-type]
    )
    if item.item_index is not None:
        said.item_index = item.item_index
    return said


def biggest(assembly: Assembly) -> Iterator[out.BigItem]:
    """The biggest items of a list that exceeds its budget, largest first, and why each cannot
    go."""
    for placed in assembly.joined.largest:
        slot = placed.slot
        if slot.synthetic:
            origin = message_pb2.Origin(synthetic="no result was recorded")
        elif placed.step == NO_STEP:
            origin = out.AssembleResponse.FromString(slot.frame).items[0].origin
        else:
            origin = message_pb2.Origin.FromString(origin_sequence(max(0, slot.sequence)))
        rule = _why(assembly, placed.step)
        yield out.BigItem(index=placed.index, origin=origin, tokens=slot.tokens, rule=rule)


def _why(assembly: Assembly, step: int) -> str:
    view = assembly.view
    if step == NO_STEP:
        return "never evicted"
    if step < view.leading:
        return "leading"
    if step in view.pinned:
        return "pinned"
    if step == view.user_step:
        return "last user message"
    if step == view.steps - 1:
        return "pending" if view.atoms[-1].pending else "last step"
    return "never evicted"


def summary(row: SummaryRow) -> message_pb2.SummaryInfo:
    """What a summary's row says."""
    return summary_info(row)
