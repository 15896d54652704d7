"""The blocking Python client is what the asyncio client says."""

from __future__ import annotations

import pytest

from scripts import gen_sync

SOURCES = {
    name: (gen_sync.ROOT / gen_sync.PACKAGE / f"{name}.py").read_text(encoding="utf-8")
    for name in gen_sync.MODULES.keys() - gen_sync.BY_HAND
}


def test_the_committed_code_is_current() -> None:
    for name, text in gen_sync.blocking(SOURCES).items():
        path = gen_sync.ROOT / gen_sync.PACKAGE / f"{name}.py"
        assert path.read_text(encoding="utf-8") == text, "run `make sync`"


def test_a_change_reaches_the_blocking_client() -> None:
    more = '''

class _Later(AsyncSession):
    """See `AsyncStream`."""

    async def later(self, stream: AsyncStream[t.ExportResponse]) -> None:
        async with stream:
            async for reply in stream:
                await self.ingest(reply.message)
'''
    changed = SOURCES | {"aio_session": SOURCES["aio_session"] + more}
    generated = gen_sync.blocking(changed)["session"]
    assert generated.endswith('''

class _Later(Session):
    """See `Stream`."""

    def later(self, stream: Stream[t.ExportResponse]) -> None:
        with stream:
            for reply in stream:
                self.ingest(reply.message)
''')


def test_nothing_of_asyncio_is_left() -> None:
    for name, text in gen_sync.blocking(SOURCES).items():
        first, _, body = text.partition("from __future__")
        assert first.startswith("# Generated from aio"), name
        for word in ("async", "await", "Async", "aio", "event loop"):
            assert word not in body, f"{name}: {word}"


def test_a_phrase_that_nobody_says_is_named() -> None:
    changed = SOURCES | {"aio_transport": SOURCES["aio_transport"].replace("are awaited", "wait")}
    with pytest.raises(LookupError, match="A connection whose calls are awaited"):
        gen_sync.blocking(changed)


def test_a_class_without_a_name_is_named() -> None:
    changed = SOURCES | {"aio": SOURCES["aio"] + "\n\nclass AsyncMemory(_Service):\n    pass\n"}
    with pytest.raises(LookupError, match="AsyncMemory"):
        gen_sync.blocking(changed)
