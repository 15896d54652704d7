"""What a child may recall of its parent: the parent's rows as of the spawn, so many tokens of them,
for so long (docs/semantics.md#children)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.errors import BudgetSpent, FieldViolation, InvalidField, PermissionDenied
from contextengine_server.session.address import Address, Addresses, Ref, not_found
from contextengine_server.session.children import ChildSessions
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import SessionHead, Spawn
from contextengine_server.telemetry.meters import Meters


class GrantExpired(PermissionDenied):
    """The time of the grant is over."""


class RecallGrant(msgspec.Struct, frozen=True):
    """The parent as the child may see it."""

    spawn: Spawn
    head: SessionHead
    """The parent's, at the spawn's revision: recall reads no newer row through it."""

    @property
    def left(self) -> int:
        """The tokens that were left when this was asked."""
        return self.spawn.grant_tokens - self.spawn.used_tokens

    @property
    def depth(self) -> int:
        """How many levels of summaries may be opened at once."""
        return self.spawn.grant_depth


class Reach(msgspec.Struct, frozen=True):
    """What a call recalls: the session's own rows, or its parent's as far as a grant goes."""

    head: SessionHead
    grant: RecallGrant | None = None


class RecallGrants(msgspec.Struct, frozen=True):
    """Opens parents to their children."""

    addresses: Addresses
    store: Store
    children: ChildSessions
    meters: Meters
    clock_ms: Callable[[], int]

    async def reach(self, tenant: str, ref: Ref, token: str) -> Reach:
        """The session that a request names, or the parent that a spawn token opens to it. Raises
        SessionNotFound, and what `granted` does."""
        return await self.reach_of(await self.addresses.find(tenant, ref), token)

    async def reach_of(self, address: Address, token: str) -> Reach:
        """As `reach`, of a session that was found."""
        grant = await self.granted(address.scope, token)
        if grant is not None:
            return Reach(grant.head, grant)
        head = await self.store.head(address.scope)
        if head is None:
            raise not_found(address.scope)
        return Reach(head)

    async def spend(self, grant: RecallGrant, tokens: int) -> None:
        """Counts what is about to be answered. Raises BudgetSpent, after which nothing may be
        answered."""
        spawn = grant.spawn
        if not await self.store.spawns.spend(spawn.tenant, spawn.token, tokens):
            raise spent(spawn, tokens)
        self.meters.tokens_granted.value += tokens

    async def granted(self, scope: Scope, token: str) -> RecallGrant | None:
        """What a token opens besides the session's own rows; None without a token, and for a fork,
        whose view holds its parent's.

        Raises RowNotFound, SpawnEnded, PermissionDenied, BudgetSpent; InvalidField where the token
        is another session's."""
        if not token:
            return None
        spawn = await self.children.live(scope.tenant, token)
        if scope not in (spawn.child, spawn.parent):
            raise InvalidField(
                "spawn_token",
                "is another child's: give it with the session that it was prepared for",
            )
        if spawn.fork:
            return None
        if not spawn.grant_tokens:
            raise _denied("grants no recall of the parent: prepare the child with a grant")
        if spawn.grant_expire_ms and spawn.grant_expire_ms <= self.clock_ms():
            text = "granted recall of the parent until a time that has passed"
            raise GrantExpired(
                f"spawn_token: {text}", violations=[FieldViolation("spawn_token", text)]
            )
        if spawn.used_tokens >= spawn.grant_tokens:
            raise spent(spawn, 1)
        head = await self.store.head(spawn.parent)
        if head is None:
            raise not_found(spawn.parent)
        frozen = replace(head, revision=spawn.parent_revision, last_sequence=spawn.parent_sequence)
        return RecallGrant(spawn, frozen)


def spent(spawn: Spawn, tokens: int) -> BudgetSpent:
    """The error for more tokens than the grant has left."""
    used, cap = spawn.used_tokens, spawn.grant_tokens
    return BudgetSpent(
        f"spawn_token: {tokens} tokens more than the {used} that were read would exceed the grant"
        f" of {cap}: ask for less, or go on without the parent",
        violations=[FieldViolation("spawn_token", f"has {cap - used} tokens left")],
        metadata={"scope": "spawn", "used": str(used), "cap": str(cap)},
    )


def _denied(text: str) -> PermissionDenied:
    return PermissionDenied(
        f"spawn_token: {text}", violations=[FieldViolation("spawn_token", text)]
    )
