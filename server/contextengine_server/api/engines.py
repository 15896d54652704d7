"""Service Engines: which engines there are, which one serves whom, and how they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import orjson
from msgspec.structs import replace
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from contextengine_proto.v1 import engines_pb2 as pb
from contextengine_proto.v1 import message_pb2
from contextengine_server.api import replies
from contextengine_server.api.auth import authorize
from contextengine_server.api.call import Call
from contextengine_server.api.reading import ref_of, request_id
from contextengine_server.config.policy import GROUP, PolicySettings
from contextengine_server.context.scope import Scope
from contextengine_server.engines.catalogue import Refused
from contextengine_server.engines.registration import InvalidEngine, Registration
from contextengine_server.errors import ContradictoryFields, DomainError, EngineFailed, InvalidField
from contextengine_server.health.checks import (
    ERROR,
    OK,
    WARNING,
    Check,
    Doctor,
    healthy,
    integrity_checks,
)
from contextengine_server.health.integrity import examine, left_over
from contextengine_server.session.core import Address, SessionCore
from contextengine_server.session.policies import Options
from contextengine_server.store.errors import StoreUnavailable

MAX_OPTIONS_BYTES = 64 * 1024
UNREADABLE = Check(
    "session.integrity.unreadable",
    ERROR,
    "rows of the session cannot be read as they are stored",
    "Restore the database from a backup, unless the checks of the store say why it cannot be read"
    " at all.",
)


class EnginesService:
    """Thin: reads the request, asks the registry and the selection, writes the reply."""

    def __init__(self, core: SessionCore, doctor: Doctor, models: Sequence[str]) -> None:
        self.core = core
        self._doctor = doctor
        self._models = models
        """The endpoints that options may name, and `runtime` where harnesses are asked."""

    async def list(self, request: pb.EnginesListRequest, call: Call) -> pb.EnginesListResponse:
        """Lists the engines, the default first."""
        selection = self.core.selection
        ids = sorted(
            selection.registry.ids,
            key=lambda engine_id: (engine_id != selection.default, engine_id),
        )
        refused = selection.registry.refused
        served = await self._served(call.caller.tenant)
        return pb.EnginesListResponse(
            engines=[
                self._engine(selection.registry.registration(engine_id), served)
                for engine_id in ids
            ]
            + [_refused(one) for one in refused],
            default_engine_id=selection.default,
        )

    async def get(self, request: pb.EnginesGetRequest, call: Call) -> pb.EnginesGetResponse:
        """Answers one engine with its options."""
        selection = self.core.selection
        scope = await self._scope(call.caller.tenant, request.session, "session")
        selected = await self.core.select(scope)
        source = selected.source
        registration = selection.registry.registration(request.engine_id or selected.engine.id)
        values = selection.registry.options(registration.id)
        options_source = "configuration"
        if registration.id == selected.engine.id:
            values = selected.engine.options
            options_source = selected.options_source
        else:
            source = "request"
        policy, policy_source = selection.policy_settings(scope)
        return pb.EnginesGetResponse(
            engine=self._engine(registration, await self._served(call.caller.tenant)),
            options=[
                *_options_of(values, options_source),
                *_options_of(policy, policy_source, f"{GROUP}."),
            ],
            source=source,
        )

    async def doctor(self, request: pb.DoctorRequest, call: Call) -> pb.DoctorResponse:
        """Checks settings, store, engines and limits."""
        address = None
        if request.repair:
            authorize(call.caller, call.rpc.method)
            if not request.HasField("session"):
                raise InvalidField("session", "is required with repair: name the session to mend")
        if request.HasField("session"):
            address = await self.core.address(call.caller.tenant, ref_of(request.session))
        checks = await self._doctor()
        if address is not None:
            checks.append(await self._session_check(address))
            checks += await self._rows_checks(address, mend=request.repair)
        return pb.DoctorResponse(ok=healthy(checks), checks=[_check(check) for check in checks])

    async def assign(self, request: pb.AssignRequest, call: Call) -> pb.AssignResponse:
        """Chooses an engine or options for a tenant, an agent or a session. Operators only."""
        registry = self.core.selection.registry
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
        scope = await self._scope(call.caller.tenant, request.scope, "scope")
        given = _options(request.options_json)
        target, options = request.engine_id, Options({}, {})
        if not request.clear:
            target = target or (await self.core.selection.choose(scope, inherited=True)).engine_id
            options = self.core.selection.policies.parted(given, registry.model(target))
            try:
                registry.engine(target, registry.options(target, options.engine))
            except InvalidEngine as error:
                raise EngineFailed(
                    str(error), metadata={"engine": target, "operation": "load"}
                ) from error
            options = replace(options, engine=registry.named(target, options.engine))
            self._check_models(options)
        await self.core.selection.assign(scope, request.engine_id, target, options)
        selected = await self.core.select(scope)
        self.core.events.emit(
            "engine:assigned",
            *scope,
            attributes={"engine": selected.engine.id, "source": selected.source},
        )
        return pb.AssignResponse(
            engine=replies.engine_info(selected.engine), source=selected.source
        )

    def _check_models(self, options: Options) -> None:
        """Refuses a model that nobody could ask: summaries would fall through to the next in the
        chain without a word."""
        for option, model in PolicySettings.model_validate(options.policy).models_named():
            option = options.given.get(option, option)
            name = model.partition(":")[0]
            if name not in self._models:
                raise InvalidField(
                    "options_json",
                    f"{option}: names {name!r}, which is no configured endpoint: name one of"
                    f" {', '.join(self._models) or '(none)'}, or add it to summarizer.endpoints",
                )

    async def _scope(self, tenant: str, ref: message_pb2.SessionRef, field: str) -> Scope:
        """A tenant, one of its agents, or a session of that agent."""
        if ref.session_id or ref.session_key:
            return (await self.core.address(tenant, ref_of(ref, field))).scope
        request_id(ref.agent_id, f"{field}.agent_id")
        return Scope(tenant, ref.agent_id, "")

    async def _served(self, tenant: str) -> Counter[str]:
        """How many warm sessions of the tenant each engine serves."""
        served: Counter[str] = Counter()
        for session in self.core.warm.all():
            if session.scope.tenant == tenant and session.head is not None:
                with suppress(DomainError):
                    served[(await self.core.select(session.scope)).engine.id] += 1
        return served

    async def _rows_checks(self, address: Address, *, mend: bool) -> Sequence[Check]:
        """Whether the session's rows agree with each other; of a session that is not there, whether
        anything is left."""
        try:
            if await self.core.store.head(address.scope) is not None:
                return integrity_checks(await examine(self.core, address, mend=mend))
        except StoreUnavailable:
            return [UNREADABLE]
        left = await left_over(self.core, address.scope, mend=mend)
        return integrity_checks(left) if left.issues else []

    async def _session_check(self, address: Address) -> Check:
        try:
            selected = await self.core.select(address.scope)
        except DomainError as error:
            return Check(
                "session.engine", WARNING, error.text, "Assign one of the engines that exist."
            )
        return Check("session.engine", OK, f"{selected.engine.id}, chosen by {selected.source}")

    def _engine(self, registration: Registration, served: Counter[str]) -> pb.Engine:
        selection = self.core.selection
        said = pb.Engine(owner=registration.owner, available=True)
        try:
            engine = selection.registry.configured(registration.id)
            said.info.CopyFrom(replies.engine_info(engine))
        except InvalidEngine as error:
            said.info.id = registration.id
            said.available, said.unavailable_reason = False, str(error)
        failed = selection.failures.get(registration.id)
        if failed is not None:
            said.failure.CopyFrom(replies.failure(failed))
        said.session_count = served[registration.id]
        return said


def _refused(refused: Refused) -> pb.Engine:
    """An engine that is installed and cannot be chosen."""
    said = pb.Engine(owner=refused.owner, available=False, unavailable_reason=str(refused.why))
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
        raise InvalidField("options_json", f"is no JSON: {error}") from error
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
