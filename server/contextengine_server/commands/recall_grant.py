"""What a child may recall of its parent: the parent's rows as of the spawn, so many tokens of them,
for so long (contract §7)."""

from __future__ import annotations

from dataclasses import replace

from contextengine_server.commands.spawns import live
from contextengine_server.context.scope import Scope
from contextengine_server.context.value import value
from contextengine_server.errors import BudgetSpent, InvalidField, PermissionDenied, Violation
from contextengine_server.session.core import SessionCore, not_found
from contextengine_server.store.rows import SessionHead, Spawn


@value
class Granted:
    """The parent as the child may see it."""

    core: SessionCore
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

    async def spend(self, tokens: int) -> None:
        """Counts what is about to be answered. Raises BudgetSpent, after which nothing may be
        answered."""
        if not await self.core.store.spawns.spend(self.spawn.tenant, self.spawn.token, tokens):
            raise spent(self.spawn, tokens)
        self.core.meters.tokens_granted.value += tokens


async def granted(core: SessionCore, scope: Scope, token: str) -> Granted | None:
    """What a token opens besides the session's own rows; None without a token, and for a fork,
    whose view holds its parent's.

    Raises RowNotFound, SpawnEnded, PermissionDenied, BudgetSpent; InvalidField where the token is
    another session's."""
    if not token:
        return None
    spawn = await live(core, scope.tenant, token)
    if scope not in (spawn.child, spawn.parent):
        raise InvalidField(
            "spawn_token", "is another child's: give it with the session that it was prepared for"
        )
    if spawn.fork:
        return None
    if not spawn.grant_tokens:
        raise _denied("grants no recall of the parent: prepare the child with a grant")
    if spawn.grant_expire_ms and spawn.grant_expire_ms <= core.clock_ms():
        raise _denied("granted recall of the parent until a time that has passed")
    if spawn.used_tokens >= spawn.grant_tokens:
        raise spent(spawn, 1)
    head = await core.store.head(spawn.parent)
    if head is None:
        raise not_found(spawn.parent)
    frozen = replace(head, revision=spawn.parent_revision, last_sequence=spawn.parent_sequence)
    return Granted(core, spawn, frozen)


def spent(spawn: Spawn, tokens: int) -> BudgetSpent:
    """The error for more tokens than the grant has left."""
    used, cap = spawn.used_tokens, spawn.grant_tokens
    return BudgetSpent(
        f"spawn_token: {tokens} tokens more than the {used} that were read would exceed the grant"
        f" of {cap}: ask for less, or go on without the parent",
        violations=[Violation("spawn_token", f"has {cap - used} tokens left")],
        metadata={"scope": "spawn", "used": str(used), "cap": str(cap)},
    )


def _denied(text: str) -> PermissionDenied:
    return PermissionDenied(f"spawn_token: {text}", violations=[Violation("spawn_token", text)])
