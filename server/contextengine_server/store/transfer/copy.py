"""The copy itself: what is still to be copied, and what must not be written over.

Each group of sessions and each table is one transaction of the target, with a note of what was
copied, and is read back before it ends. So a copy that was cut off goes on where it was, and one
that is made again copies what has changed since.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

import msgspec

from contextengine_server.store.errors import StoreRefused

from .side import CopySource, CopyTarget, Key, Lives
from .tables import COMMIT, INCARNATION, LAST, OF_SESSIONS, REVISION, WHOLE, Digest, Row, whose

_SESSIONS = 100
_MESSAGES = 2_000
"""What a group holds at most, but for a session that has more by itself."""
_SOURCE = "source"
_SHOWN = 3

Told = Callable[[int], None]
"""Told of as many sessions that are done."""


class Transferred(msgspec.Struct):
    """What was done."""

    sessions: int = 0
    unchanged: int = 0
    """Sessions that an earlier run had copied."""
    erased: int = 0
    """Sessions that the source has no longer."""
    rows: int = 0
    """Of all tables, as they were read back."""


class Copy:
    """One run. `name` says which source it is, so that a copy of another is not taken for it."""

    def __init__(self, source: CopySource, target: CopyTarget, name: str, told: Told) -> None:
        self._from, self._to, self._name, self._told = source, target, name, told
        self.done = Transferred()

    async def run(self, *, replace: bool) -> Transferred:
        """Makes the target what the source is. Raises StoreRefused where the target holds anything
        else, and nothing is changed then; `replace`: that is erased first."""
        foreign = await self._foreign()
        if foreign and not replace:
            raise StoreRefused(
                f"{'; '.join(foreign)}. Name an empty database, or say --replace to erase what it"
                " holds"
            )
        async with self._to.transaction():
            if foreign:
                await self._to.empty()
            await self._to.note(_SOURCE, self._name)
        await self._erase_gone()
        async for page in self._from.heads():
            for group in _groups(page):
                await self._sessions(group)
        for table in WHOLE:
            await self._table(table)
        return self.done

    async def _foreign(self) -> list[str]:
        """What the target holds that this copy did not bring, in words."""
        said = []
        noted, count = await self._to.mark(_SOURCE), 0
        shown: list[str] = []
        if noted and noted != self._name:
            said.append(f"the target is a copy of {noted}")
        async for page in self._to.heads():
            for head in page:
                if await self._to.mark(_part(whose(head))) != _state(head):
                    count += 1
                    if len(shown) < _SHOWN:
                        shown.append("/".join(whose(head)))
        if count:
            what = "session" if count == 1 else "sessions"
            said.append(
                f"the target holds {count:,} {what} that this copy did not bring, or that were"
                f" written to since: {', '.join(shown)}"
            )
        for table in WHOLE:
            found = await _whole(self._to, table)
            if found.rows and await self._to.mark(f"*{table}") != found.said():
                said.append(f"table {table} of the target holds {found.rows:,} rows of another's")
        return said

    async def _erase_gone(self) -> None:
        gone: dict[Key, str] = {}
        async for page in self._to.heads():
            for head in page:
                now = await self._from.head(whose(head))
                if now is None or _life(now) != _life(head):
                    gone[whose(head)] = _life(head)
        for key, life in gone.items():
            async with self._to.transaction():
                await self._erase({key: life})
                await self._to.forget({key: life})
                await self._to.note(_part(key), "")
            self.done.erased += 1

    async def _erase(self, lives: Lives) -> None:
        for table in OF_SESSIONS:
            await self._to.erase(table, lives)

    async def _sessions(self, group: Sequence[Row]) -> None:
        heads = [head for head in group if await self._to.mark(_part(whose(head))) != _state(head)]
        self.done.unchanged += len(group) - len(heads)
        if heads:
            lives = {whose(head): _life(head) for head in heads}
            read = {key: Digest() for key in lives}
            async with self._to.transaction():
                await self._erase(lives)
                for table in OF_SESSIONS:
                    async for rows in self._from.rows(table, lives):
                        _share(read, table, rows)
                        await self._to.insert(table, rows, lives)
                written = await digests(self._to, lives)
                for key, digest in read.items():
                    if digest.said() != written[key].said():
                        raise _unlike("/".join(key))
                    self.done.rows += digest.rows
                for head in heads:
                    await self._to.note(_part(whose(head)), _state(head))
            self.done.sessions += len(heads)
        self._told(len(group))

    async def _table(self, table: str) -> None:
        read = await _whole(self._from, table)
        mark = f"*{table}"
        if await self._to.mark(mark) != read.said():
            async with self._to.transaction():
                await self._to.erase(table, None)
                async for rows in self._from.rows(table, None):
                    await self._to.insert(table, rows, {})
                if (await _whole(self._to, table)).said() != read.said():
                    raise _unlike(f"table {table}")
                await self._to.note(mark, read.said())
        self.done.rows += read.rows


async def digests(side: CopySource, lives: Lives) -> dict[Key, Digest]:
    """Of all rows of some sessions, by session."""
    found = {key: Digest() for key in lives}
    for table in OF_SESSIONS:
        async for rows in side.rows(table, lives):
            _share(found, table, rows)
    return found


async def differences(one: CopySource, other: CopySource, told: Told) -> list[str]:
    """What is not the same in two stores, in words: every row of every session and table is read.
    Empty: they are equal."""
    said = []
    async for page in one.heads():
        for group in _groups(page):
            lives = {whose(head): _life(head) for head in group}
            mine, theirs = await digests(one, lives), await digests(other, lives)
            said += [
                f"session {'/'.join(key)}: {mine[key].rows:,} rows, and {theirs[key].rows:,}"
                for key in lives
                if mine[key].said() != theirs[key].said()
            ]
            told(len(group))
    async for page in other.heads():
        for head in page:
            if await one.head(whose(head)) is None:
                said.append(f"session {'/'.join(whose(head))}: only in the second")
    for table in WHOLE:
        first, second = await _whole(one, table), await _whole(other, table)
        if first.said() != second.said():
            said.append(f"table {table}: {first.rows:,} rows, and {second.rows:,}")
    return said


async def _whole(side: CopySource, table: str) -> Digest:
    digest = Digest()
    async for rows in side.rows(table, None):
        digest.add(table, rows)
    return digest


def _share(found: dict[Key, Digest], table: str, rows: Sequence[Row]) -> None:
    for row in rows:
        found[whose(row)].add(table, (row,))


def _groups(heads: Sequence[Row]) -> Iterator[list[Row]]:
    group: list[Row] = []
    messages = 0
    for head in heads:
        if group and (len(group) == _SESSIONS or messages + head[LAST] > _MESSAGES):
            yield group
            group, messages = [], 0
        group.append(head)
        messages += head[LAST]
    if group:
        yield group


def _part(key: Key) -> str:
    return json.dumps(key)


def _life(head: Row) -> str:
    return str(head[INCARNATION])


def _state(head: Row) -> str:
    """What names the state of a session."""
    return f"{_life(head)} {head[REVISION]} {head[COMMIT].hex()}"


def _unlike(what: str) -> StoreRefused:
    return StoreRefused(
        f"{what} does not read back as it was written, and was not committed: run `contextengine"
        " doctor --deep` on the source, then copy again"
    )
