"""Service Engines: which engines there are, which one serves whom, and how they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
from msgspec import to_builtins
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from contextengine_proto.v1 import engines_pb2 as pb
from contextengine_proto.v1 import message_pb2
from contextengine_proto.v1 import quota_pb2 as quotas_pb
from contextengine_server.api import replies
from contextengine_server.api.messages import ref_of, request_id
from contextengine_server.api.pipeline.audit import quota_set
from contextengine_server.api.pipeline.auth import (
    Caller,
    CallerRole,
    authorize,
    authorize_owner,
)
from contextengine_server.api.pipeline.call import Call
from contextengine_server.api.quotas import quota_in, tenant_in, tenant_quota
from contextengine_server.api.requests import not_negative
from contextengine_server.commands.engines.list import EngineStatus
from contextengine_server.commands.engines.quotas import use_check
from contextengine_server.commands.engines.scope import scope_of
from contextengine_server.commands.services import EnginesCommands
from contextengine_server.config.policy import GROUP
from contextengine_server.context.scope import Scope
from contextengine_server.engines.catalogue import Refused
from contextengine_server.engines.patterns import SessionPattern, literal
from contextengine_server.errors import ContradictoryFields, InvalidField
from contextengine_server.health.checks import Check, for_runtimes, healthy
from contextengine_server.session.address import Addresses

MAX_OPTIONS_BYTES = 64 * 1024


class EnginesService:
    """Each method reads its request, runs the command of its name, and writes the reply."""

    def __init__(self, commands: EnginesCommands, addresses: Addresses) -> None:
        self._commands, self._addresses = commands, addresses

    async def list(self, request: pb.EnginesListRequest, call: Call) -> pb.EnginesListResponse:
        """Lists the engines, the default first."""
        found = await self._commands.list.run(call.caller.tenant)
        return pb.EnginesListResponse(
            engines=[
                *(_engine(status, call.caller) for status in found.engines),
                *(_refused(refused, call.caller) for refused in found.refused),
            ],
            default_engine_id=self._commands.list.selection.default,
        )

    async def get(self, request: pb.EnginesGetRequest, call: Call) -> pb.EnginesGetResponse:
        """Answers one engine with its options."""
        scope = await self._scope(call.caller.tenant, request.session, "session")
        found = await self._commands.get.run(scope, request.engine_id)
        return pb.EnginesGetResponse(
            engine=_engine(found.status, call.caller),
            options=[
                *_options_of(found.values, found.options_source),
                *_options_of(found.policy, found.policy_source, f"{GROUP}."),
            ],
            source=found.source,
        )

    async def doctor(self, request: pb.DoctorRequest, call: Call) -> pb.DoctorResponse:
        """Checks settings, store, engines and limits."""
        if request.repair:
            authorize(call.caller, call.rpc.method)
            if not request.HasField("session"):
                raise InvalidField("session", "is required with repair: name the session to mend")
        if request.clear_failures:
            authorize(call.caller, call.rpc.method)
        ref = ref_of(request.session) if request.HasField("session") else None
        operator = call.caller.role is CallerRole.OPERATOR
        checks = await self._commands.doctor.run(
            call.caller.tenant,
            ref,
            repair=request.repair,
            clear_failures=request.clear_failures,
            operator=operator,
        )
        use = [self._use_check(call.caller)]
        checks = [*checks, *(use if operator else for_runtimes(use))]
        return pb.DoctorResponse(ok=healthy(checks), checks=[_check(check) for check in checks])

    def _use_check(self, caller: Caller) -> Check:
        """What an operator's tenant holds; for the server's owner, the tenants that hold the
        most."""
        tenants = self._commands.tenants
        return use_check(tenants.all() if caller.owner else [tenants.standing(caller.tenant)])

    async def assign(self, request: pb.AssignRequest, call: Call) -> pb.AssignResponse:
        """Chooses an engine or options for a tenant, an agent, a session, or sessions by pattern.
        Operators only."""
        request_id(request.request_id)
        request_id(request.engine_id, "engine_id")
        made = [name for name in ("engine_id", "options_json") if getattr(request, name)]
        if request.clear and made:
            raise ContradictoryFields(
                ["clear", *made], "remove the assignment or make one, not both"
            )
        if not request.clear and not made:
            raise InvalidField(
                "engine_id", "is required, or options_json, or clear: say what to assign"
            )
        pattern = _pattern(request)
        scope = Scope(call.caller.tenant, "", "")
        if pattern is None:
            scope = await self._scope(call.caller.tenant, request.scope, "scope")
        selected = await self._commands.assign.run(
            scope,
            request.engine_id,
            _options(request.options_json),
            clear=request.clear,
            pattern=pattern,
        )
        return pb.AssignResponse(
            engine=replies.engine_info(selected.engine), source=selected.source
        )

    async def list_quotas(
        self, request: quotas_pb.ListQuotasRequest, call: Call
    ) -> quotas_pb.ListQuotasResponse:
        """Lists what tenants may hold and what they hold. Operators only; of other tenants than
        their own, the server's owner."""
        caller, tenants = call.caller, self._commands.tenants
        if not request.tenant and caller.owner:
            return quotas_pb.ListQuotasResponse(tenants=map(tenant_quota, tenants.all()))
        tenant = tenant_in(request.tenant or caller.tenant)
        if tenant != caller.tenant:
            authorize_owner(caller, call.rpc.method)
        return quotas_pb.ListQuotasResponse(tenants=[tenant_quota(tenants.standing(tenant))])

    async def set_quota(
        self, request: quotas_pb.SetQuotaRequest, call: Call
    ) -> quotas_pb.SetQuotaResponse:
        """Stores a quota of a tenant, or removes it. The server's owner only."""
        authorize_owner(call.caller, call.rpc.method)
        request_id(request.request_id)
        tenant, quota = tenant_in(request.tenant), quota_in(request)
        standing = await self._commands.tenants.put(tenant, quota)
        quota_set(call, tenant, {} if quota is None else to_builtins(quota))
        return quotas_pb.SetQuotaResponse(tenant=tenant_quota(standing))

    async def _scope(self, tenant: str, ref: message_pb2.SessionRef, field: str) -> Scope:
        """A tenant, one of its agents, or a session of that agent."""
        request_id(ref.agent_id, f"{field}.agent_id")
        return await scope_of(self._addresses, tenant, ref_of(ref, field))


def _pattern(request: pb.AssignRequest) -> SessionPattern | None:
    """The sessions that are meant by pattern. A key alone is one as well: what is assigned to it
    holds for every session that comes to stand under it."""
    given = request.scope
    if not request.HasField("match"):
        if not given.session_key or given.session_id:
            return None
        ref = ref_of(given, "scope")
        if not ref.agent:
            raise InvalidField(
                "scope.agent_id", "is required: it names the agent whose key this is"
            )
        request_id(ref.agent, "scope.agent_id")
        request_id(ref.key, "scope.session_key")
        return SessionPattern(agent=literal(ref.agent), key=literal(ref.key))
    if request.HasField("scope"):
        raise ContradictoryFields(["scope", "match"], "name a scope, or sessions by pattern")
    match = request.match
    for name in ("agent_id", "session_id", "session_key", "model"):
        request_id(getattr(match, name), f"match.{name}")
    pattern = SessionPattern(
        match.agent_id,
        match.session_id,
        match.session_key,
        match.model,
        not_negative(match.min_window, "match.min_window")
        if match.HasField("min_window")
        else None,
        not_negative(match.max_window, "match.max_window")
        if match.HasField("max_window")
        else None,
    )
    if pattern.empty:
        raise InvalidField("match", "names nothing: give a pattern, or leave it out for the tenant")
    if match.HasField("max_window") and match.max_window < match.min_window:
        raise InvalidField(
            "match.max_window",
            f"is {match.max_window}, below min_window {match.min_window}: no window is meant",
        )
    return pattern


def _engine(status: EngineStatus, caller: Caller) -> pb.Engine:
    said = pb.Engine(owner=status.registration.owner, available=status.engine is not None)
    if status.engine is not None:
        said.info.CopyFrom(replies.engine_info(status.engine))
    else:
        said.info.id = status.registration.id
        said.unavailable_reason = _reason(status.unavailable, caller)
    if status.failure is not None:
        said.failure.CopyFrom(replies.failure(status.failure, caller))
    said.session_count = status.sessions
    return said


def _reason(why: str, caller: Caller) -> str:
    """Why an engine cannot serve, which may name files of the host: for operators."""
    return why if caller.role is CallerRole.OPERATOR else "its operator can see why"


def _refused(refused: Refused, caller: Caller) -> pb.Engine:
    """An engine that is installed and cannot be chosen."""
    said = pb.Engine(owner=refused.owner, available=False)
    said.unavailable_reason = _reason(str(refused.why), caller)
    said.info.id = refused.id
    return said


def _options(raw: bytes) -> dict[str, Any]:
    if len(raw) > MAX_OPTIONS_BYTES:
        raise InvalidField(
            "options_json",
            f"is longer than {MAX_OPTIONS_BYTES} bytes: options are a few numbers and words",
        )
    if not raw:
        return {}
    try:
        options = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidField("options_json", f"is not valid JSON: {error}") from error
    if not isinstance(options, dict):
        raise InvalidField(
            "options_json", "must be a JSON object: names of options with their values"
        )
    return options


def _options_of(
    values: BaseModel, source: str, prefix: str = ""
) -> Iterator[pb.EnginesGetResponse.Option]:
    """Every option of a model, those of groups within it as one value."""
    for name, value in values:
        yield _option(prefix + name, type(values).model_fields[name], value, source)


def _option(name: str, info: FieldInfo, value: object, source: str) -> pb.EnginesGetResponse.Option:
    said = pb.EnginesGetResponse.Option(
        name=info.alias or name,
        description=info.description or "",
        type=type(value).__name__,
        default_json=_json(info.default),
        value_json=_json(value),
        source="default" if value == info.default else source,
    )
    for limit in info.metadata:
        if getattr(limit, "ge", None) is not None:
            said.minimum_json = orjson.dumps(limit.ge)
        if getattr(limit, "le", None) is not None:
            said.maximum_json = orjson.dumps(limit.le)
    return said


_STATUS = {
    "ok": pb.DoctorResponse.STATUS_OK,
    "warning": pb.DoctorResponse.STATUS_WARNING,
    "error": pb.DoctorResponse.STATUS_ERROR,
}


def _check(check: Check) -> pb.DoctorResponse.Check:
    return pb.DoctorResponse.Check(
        name=check.name, status=_STATUS[check.status], found=check.found, advice=check.advice
    )


def _json(value: object) -> bytes:
    """A value of an option; of a group of options, their published names and values."""
    return orjson.dumps(
        value.model_dump(mode="json", by_alias=True) if isinstance(value, BaseModel) else value
    )
