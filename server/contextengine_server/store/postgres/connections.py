"""Connections to the database: how they are made, lent, and given up, and what their failures
mean."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from random import random
from secrets import token_hex
from typing import Any, Concatenate, ParamSpec, TypeVar

import asyncpg
import structlog
from asyncpg.pool import PoolConnectionProxy

from contextengine_server.store.errors import StoreError, StoreUnavailable, StoreUncertain

from . import texts
from .options import PostgresOptions

log = structlog.get_logger("contextengine.store")

P = ParamSpec("P")
T = TypeVar("T")

Raw = asyncpg.Connection | PoolConnectionProxy

Names = Mapping[str, Any] | Sequence[Any]
"""Parameters by name or by place, as a statement has them."""

LOST = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
"""The connection ended: what it was doing may have been done."""
AGAIN = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
"""Nothing was done, and may work when it is tried again."""
FAILURES = (*LOST, asyncpg.PostgresError, TimeoutError)
_TRIES = 8
_PAUSE_S = 0.02
"""What is tried again waits so long at most the first time, then twice as long each time."""
_END = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE pid = :pid AND application_name = :name
"""
"""Waits up to 5 s, and answers whether it ended; nothing where it is gone."""
SETTINGS = {
    "jit": "off",
    # Plans must not change with what the statistics say of tables that are small today.
    "enable_seqscan": "off",
    "plan_cache_mode": "force_generic_plan",
    # Nobody waits for good: neither for another's lock, nor for a server that was stopped within a
    # transaction.
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "15s",
}
"""Of each connection."""


class Unreset(asyncpg.Connection):
    """A connection on which nothing is set that would have to be reset."""

    def get_reset_query(self) -> str:
        """None: it would cost a round trip at each release."""
        return ""


class Db:
    """A connection while it is lent, and statements of ours on it."""

    __slots__ = ("raw",)

    def __init__(self, raw: Raw) -> None:
        self.raw = raw

    async def rows(self, statement: str, names: Names = ()) -> list[asyncpg.Record]:
        """All that it answers."""
        found: list[asyncpg.Record] = await self.raw.fetch(*bound(statement, names))
        return found

    async def row(self, statement: str, names: Names = ()) -> asyncpg.Record | None:
        """The first row, or None."""
        return await self.raw.fetchrow(*bound(statement, names))

    async def value(self, statement: str, names: Names = ()) -> Any:
        """The first column of the first row, or None."""
        return await self.raw.fetchval(*bound(statement, names))

    async def met(self, statement: str, names: Names = ()) -> int:
        """How many rows it met."""
        done: str = await self.raw.execute(*bound(statement, names))
        return int(done.rpartition(" ")[2])


_CASTS = {"tokens": "bigint"}
"""Parameters whose type PostgreSQL would take from their first use, wrongly."""


@cache
def numbered(statement: str) -> tuple[str, tuple[str, ...] | None]:
    """A statement as PostgreSQL takes its parameters, and their names in order; None: they are
    bound by place."""
    order: list[str] = []

    def number(found: re.Match[str]) -> str:
        name = found[1]
        if name not in order:
            order.append(name)
        cast = f"::{_CASTS[name]}" if name in _CASTS else ""
        return f"${order.index(name) + 1}{cast}"

    if "?" in statement:
        at = iter(range(1, statement.count("?") + 1))
        return re.sub(r"\?", lambda _: f"${next(at)}", statement), None
    if "$1" in statement:
        return statement, None
    return re.sub(r"(?<!:):(\w+)", number, statement), tuple(order)


def bound(statement: str, names: Names) -> tuple[Any, ...]:
    """A statement and its parameters, as the driver takes them."""
    text, order = numbered(statement)
    if order is None:
        return (text, *names)
    assert isinstance(names, Mapping) or not order
    return (text, *(_given(names[name]) for name in order))  # type: ignore[call-overload]


def _given(value: Any) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], str):
        return texts.all_written(value)
    return value


class Connections:
    """The pool, and what its failures mean. Use it on one event loop."""

    def __init__(self, options: PostgresOptions) -> None:
        self.options = options
        self._pool: asyncpg.Pool | None = None
        self._name = f"contextengine {token_hex(4)}"
        """What the database calls our connections."""
        self._lost: set[int] = set()
        """The processes behind connections that ended while they were used."""
        self._failing = False
        """Whether the last use met a failure."""
        self.failure = ""
        """Why the last use failed; empty where it did not."""

    async def open(self) -> None:
        """Makes the pool, with no connection yet."""
        self._pool = await asyncpg.create_pool(
            self.options.dsn,
            min_size=0,
            max_size=self.options.pool,
            max_inactive_connection_lifetime=300,
            connection_class=Unreset,
            **self._how(),
        )

    def _how(self) -> dict[str, Any]:
        return {
            "timeout": self.options.wait_s,
            # A pooler refuses to start with settings that it does not know.
            "server_settings": {
                "application_name": self._name,
                **(SETTINGS if self.options.prepared else {}),
            },
            "statement_cache_size": 1000 if self.options.prepared else 0,
            "max_cached_statement_lifetime": 0,
            "init": _prepare,
        }

    async def connect(self) -> asyncpg.Connection:
        """A connection beside the pool, which whoever asked for it closes."""
        how = self._how()
        del how["init"]
        made = await asyncpg.connect(self.options.dsn, connection_class=Unreset, **how)
        await _prepare(made)
        return made

    async def close(self) -> None:
        """Waits for what is under way, then closes every connection. Safe twice."""
        pool, self._pool = self._pool, None
        if pool is not None:
            try:
                async with asyncio.timeout(self.options.wait_s):
                    await pool.close()
            except FAILURES:
                pool.terminate()

    @property
    def is_open(self) -> bool:
        return self._pool is not None

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[Db]:
        """A connection of the pool. Raises StoreUnavailable, also where none gets free in time."""
        pool = self._pool
        if pool is None:
            raise StoreUnavailable("the store is closed")
        try:
            raw = await pool.acquire(timeout=self.options.wait_s)
        except TimeoutError:
            if pool.get_size() >= self.options.pool and pool.get_idle_size() == 0:
                raise StoreUnavailable(
                    f"no connection was free for {self.options.wait_s:g} s: all"
                    f" {self.options.pool} are in use (store.url: pool=N)"
                ) from None
            raise
        try:
            yield Db(raw)
        finally:
            await pool.release(raw)

    async def read(
        self,
        work: Callable[Concatenate[Db, P], Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Reads. What meets a connection that ended is tried on another, once. Raises
        StoreUnavailable."""
        for last in (False, True):
            try:
                async with self.lent() as db:
                    answer = await work(db, *args, **kwargs)
                self.works()
                return answer
            except LOST as error:
                if last or self._pool is None:
                    raise self.broken(error) from None
            except FAILURES as error:
                raise self.broken(error) from None
        raise AssertionError("unreachable")

    async def write(self, work: Callable[[Db], Awaitable[T]]) -> T:
        """Does work in one transaction, again where it met others or a connection that had ended.
        Raises what it raises, StoreUnavailable, and StoreUncertain."""
        lost = 0
        for tried in range(_TRIES):
            try:
                answer = await self._transact(work)
                self.works()
                return answer
            except AGAIN as error:
                if tried == _TRIES - 1:
                    raise self.broken(error) from None
                await asyncio.sleep(_PAUSE_S * 2**tried * random())
            except LOST as error:
                lost += 1
                if lost > 1 or self._pool is None:
                    raise self.broken(error) from None
            except FAILURES as error:
                raise self.broken(error) from None
        raise AssertionError("unreachable")

    async def _transact(self, work: Callable[[Db], Awaitable[T]]) -> T:
        async with self.lent() as db:
            with self.watched(db.raw):
                transaction = db.raw.transaction()
                await transaction.start()
                try:
                    answer = await work(db)
                except BaseException:
                    with suppress(*FAILURES):
                        await transaction.rollback()
                    raise
                try:
                    await transaction.commit()
                except (*LOST, TimeoutError) as error:
                    raise StoreUncertain(
                        f"{self.broken(error)}: it was lost while a change was committed"
                    ) from error
                return answer

    @contextmanager
    def watched(self, raw: Raw) -> Iterator[None]:
        """Notes a connection that ends while it is used: what it was doing may go on without us."""
        pid = raw.get_server_pid()
        try:
            yield
        except (*LOST, StoreUncertain):
            self._lost.add(pid)
            raise

    async def end_lost(self, db: Db) -> None:
        """Ends whatever connections that were lost are still doing, and waits until it is over, so
        that nothing of theirs is written from now on."""
        for pid in list(self._lost):
            if await db.value(_END, {"pid": pid, "name": self._name}) is False:
                raise StoreUnavailable(f"the database does not end its process {pid}")
            self._lost.discard(pid)

    def works(self) -> None:
        """A use went well."""
        if self._failing:
            self._failing, self.failure = False, ""
            log.warning("store_can_be_used_again")

    def broken(self, error: BaseException) -> StoreError:
        """What a failure of the database is for whoever asked."""
        if isinstance(error, asyncpg.DataError):
            return StoreError(f"the database takes no such value: {error}")
        why = _why(error)
        self.failure = why
        if not self._failing:  # once: every worker meets it, again and again
            self._failing = True
            log.error("store_cannot_be_used", why=why)
        return StoreUnavailable(f"the database cannot be used now: {why}")


def _why(error: BaseException) -> str:
    """A failure in words, without what a statement held."""
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    said = str(error).partition("\n")[0]
    return said or type(error).__name__


async def _prepare(raw: asyncpg.Connection) -> None:
    await raw.set_type_codec(
        "text", schema="pg_catalog", encoder=texts.written, decoder=texts.read, format="text"
    )
