"""Assembling without a scope: no agent is named, or its session is ignored."""

from __future__ import annotations

import structlog

from contextengine_server.context.prefix import PrefixCache
from contextengine_server.context.scope import Scope
from contextengine_server.memory.prompt import NO_MEMORY
from contextengine_server.memory.shown import ShownMemory
from contextengine_server.session.assembly.addition import remembering
from contextengine_server.session.assembly.assembly import Allowance, AssembleCall, Assembly
from contextengine_server.session.assembly.budget import BudgetDefaults, budget_of, target
from contextengine_server.session.assembly.live_view import listed
from contextengine_server.session.assembly.plan import PlanInput, Planner
from contextengine_server.session.encoding import Encoding
from contextengine_server.session.selection import Selection
from contextengine_server.session.session import Session

log = structlog.get_logger("contextengine.assemble")


async def without_scope(
    call: AssembleCall,
    encoding: Encoding,
    selection: Selection,
    budgets: BudgetDefaults,
    planner: Planner,
    memory: ShownMemory,
) -> Assembly:
    """No agent, no scope: nothing is read or stored, and what the caller sent is assembled
    under the laws."""
    log.warning("assemble without an agent: nothing was read or stored", tenant=call.tenant)
    scope = Scope(call.tenant, "", "")
    selected = await selection.engine_for(scope)
    messages = call.ingest if call.live is None else call.live
    view, mark = listed(scope, None, messages, {}, encoding.shaper)
    nowhere = Session(scope, encoding)
    aim = target(nowhere.head, nowhere.state, call.model, call.provider)
    allowance = Allowance(aim, budget_of(call.budget, aim, budgets))
    reason = "SESSION_IGNORED" if call.treatment else "INCOMPLETE_SCOPE"
    if call.memory is not NO_MEMORY:
        call = await remembering(memory, call, nowhere, selected.engine)
    subject = PlanInput(nowhere, view, allowance, PrefixCache(), (), mark, reason)
    try:
        return await planner.plan(call, subject, selected, locked=True)
    except Exception as error:
        return await planner.fall_back(call, subject, selected, error, locked=True, apart=True)
