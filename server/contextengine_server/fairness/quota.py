"""What each tenant may hold at once, and its weight where tenants share: as settings say, and rows
that an operator writes while the server runs.

A quota is what the service as a whole grants. Where several servers share a store, each gives out
its part: `TenantQuotas.here`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from .share import Share

WEIGHTS = 0.01, 1_000.0
"""The least and the largest weight."""
MOST = 1_000_000
"""The largest quota."""

KINDS = ("calls", "long_calls", "streams", "waits")
"""What a quota limits, by the names of its fields."""

_KNOWN = 4_096
"""Tenants whose quotas are worked out already."""


class Quota(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of one tenant: calls that wait or are worked on; calls that take as long as a model or their
    client takes; streams that last; reads that wait for a revision. None: not said here, and in the
    end no limit but the server's."""

    weight: float | None = None
    calls: int | None = None
    long_calls: int | None = None
    streams: int | None = None
    waits: int | None = None

    def over(self, other: Quota) -> Quota:
        """What is said here, and else what the other says."""
        return Quota(
            **{
                name: mine if mine is not None else getattr(other, name)
                for name in self.__struct_fields__
                if (mine := getattr(self, name)) is not None or getattr(other, name) is not None
            }
        )

    def most(self, kind: str) -> int | None:
        """How many of a kind; None: no limit."""
        most: int | None = getattr(self, kind)
        return most

    def part(self, share: Share) -> Quota:
        """What a server with this share gives out of it."""
        limited = {kind: most for kind in KINDS if (most := self.most(kind)) is not None}
        return Quota(self.weight, **{kind: share.of(most) for kind, most in limited.items()})


class QuotaRule(msgspec.Struct, frozen=True):
    """The quota of the tenants that a pattern names."""

    tenant: str
    quota: Quota


class TenantQuotas:
    """The quotas of all tenants. Of the rules the first that names a tenant is its own; a row goes
    over it, field by field."""

    def __init__(
        self, rules: Sequence[QuotaRule] = (), matches: Callable[[str, str], bool] = str.__eq__
    ) -> None:
        self._rules, self._matches = rules, matches
        self.rows: Mapping[str, Quota] = {}
        self._share = Share()
        self._known: dict[str, Quota] = {}
        self._here: dict[str, Quota] = {}
        self._watching: list[Callable[[], None]] = []

    def here(self, tenant: str) -> Quota:
        """What this server gives out to a tenant."""
        here = self._here.get(tenant)
        if here is None:
            whole = self.of(tenant)  # forgets both where too many are known
            here = self._here[tenant] = whole.part(self._share)
        return here

    def of(self, tenant: str) -> Quota:
        """What a tenant may hold, of all servers together."""
        known = self._known.get(tenant)
        if known is None:
            if len(self._known) >= _KNOWN:
                self._forget()
            known = self._known[tenant] = self.rows.get(tenant, Quota()).over(
                self.configured(tenant)
            )
        return known

    def weight(self, tenant: str) -> float:
        """What a tenant weighs; 1 where nothing is said."""
        weight = self.of(tenant).weight
        return 1.0 if weight is None else weight

    def configured(self, tenant: str) -> Quota:
        """What the settings say."""
        return next(
            (rule.quota for rule in self._rules if self._matches(rule.tenant, tenant)), Quota()
        )

    @property
    def of_calls(self) -> bool:
        """True where the calls of some tenant are limited."""
        limited = (*self.rows.values(), *(rule.quota for rule in self._rules))
        return any(quota.calls is not None for quota in limited)

    def replace(self, rows: Mapping[str, Quota]) -> None:
        """These are the rows now, all of them. In force with the next call."""
        self.rows = dict(rows)
        self._forget()
        for told in self._watching:
            told()

    @property
    def servers(self) -> int:
        """How many servers share the store."""
        return self._share.servers

    def shared(self, place: int, servers: int) -> None:
        """This is one of so many servers now. In force with the next call; what is held stays."""
        share = Share(place, servers)
        if share != self._share:
            self._share = share
            self._here.clear()

    def _forget(self) -> None:
        self._known.clear()
        self._here.clear()

    def watch(self, told: Callable[[], None]) -> None:
        """From now on, tells when the rows are others."""
        self._watching.append(told)
