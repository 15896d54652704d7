"""Quotas on the wire: read and checked, and written."""

from __future__ import annotations

from contextengine_proto.v1 import quota_pb2 as pb
from contextengine_server.api.pipeline.auth import MAX_TENANT, named_tenant
from contextengine_server.commands.engines.quotas import TenantStanding
from contextengine_server.errors import ContradictoryFields, InvalidField
from contextengine_server.fairness.quota import KINDS, MOST, WEIGHTS, Quota
from contextengine_server.fairness.usage import TenantUse


def tenant_in(name: str) -> str:
    """The tenant of a request, checked."""
    if not name:
        raise InvalidField("tenant", "is required: whose quota it is")
    if named_tenant(name) is None:
        raise InvalidField("tenant", f"must be at most {MAX_TENANT} characters, all printable")
    return name


def quota_in(request: pb.SetQuotaRequest) -> Quota | None:
    """The quota to store; None: what is stored is removed."""
    given = request.quota
    fields = [field.name for field, _ in given.ListFields()]
    if request.clear:
        if request.HasField("quota"):
            raise ContradictoryFields(
                ["clear", "quota"], "remove what is stored or store a quota, not both"
            )
        return None
    if not fields:
        raise InvalidField(
            "quota", "sets nothing: set weight, calls, long_calls, streams or waits, or give clear"
        )
    least, most = WEIGHTS
    if given.HasField("weight") and not least <= given.weight <= most:
        raise InvalidField(
            "quota.weight",
            f"is {given.weight:g}, must be {least:g} to {most:,.0f}: what others weigh is 1",
        )
    for kind in KINDS:
        if given.HasField(kind) and not 1 <= (value := getattr(given, kind)) <= MOST:
            raise InvalidField(
                f"quota.{kind}",
                f"is {value}, must be 1 to {MOST:,}; leave it out for no limit but the server's",
            )
    return Quota(**{name: getattr(given, name) for name in fields})


def tenant_quota(standing: TenantStanding) -> pb.TenantQuota:
    """How a tenant stands."""
    return pb.TenantQuota(
        tenant=standing.tenant,
        stored=_quota(standing.stored) if standing.stored is not None else None,
        in_force=_quota(standing.in_force),
        usage=tenant_usage(standing.use),
    )


def tenant_usage(use: TenantUse) -> pb.TenantUsage:
    """What a tenant holds."""
    return pb.TenantUsage(
        calls=use.calls,
        waiting_calls=use.waiting_calls,
        long_calls=use.long_calls,
        streams=use.streams,
        waits=use.waits,
        bytes_in_flight=use.bytes_in_flight,
    )


def _quota(quota: Quota) -> pb.Quota:
    return pb.Quota(
        weight=quota.weight,
        calls=quota.calls,
        long_calls=quota.long_calls,
        streams=quota.streams,
        waits=quota.waits,
    )
