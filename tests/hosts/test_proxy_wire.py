"""The proxy's way upstream: what a provider gets is what was sent, what goes wrong is an error of
httpx2, and a connection is used again where its reply is at its end."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import httpx2
import pytest

from contextengine_proxy import wire
from contextengine_proxy.wire import Wire

Reads: TypeAlias = asyncio.StreamReader
Writes: TypeAlias = asyncio.StreamWriter


class Provider:
    """Takes requests as bytes, and answers each with the bytes that it is told."""

    def __init__(self, answer: Callable[[Writes], Awaitable[None]]) -> None:
        self.answer = answer
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.connections = 0

    async def serve(self, reads: Reads, writes: Writes) -> None:
        self.connections += 1
        try:
            while True:
                head = await reads.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                [size] = [
                    int(line.partition(b":")[2])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length:")
                ] or [0]
                self.bodies.append(await reads.readexactly(size))
                await self.answer(writes)
                await writes.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writes.close()


@asynccontextmanager
async def provided(
    answer: Callable[[Writes], Awaitable[None]],
) -> AsyncIterator[tuple[Provider, str]]:
    """A provider and its address."""
    provider = Provider(answer)
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0, limit=2**24)
    try:
        yield provider, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def saying(raw: bytes) -> Callable[[Writes], Awaitable[None]]:
    """Answers with these bytes."""

    async def answer(writes: Writes) -> None:
        writes.write(raw)

    return answer


def posted(base: str, body: bytes = b"{}", path: str = "/v1/x") -> httpx2.Request:
    headers = [(b"X-One", b"1"), (b"X-One", b"\xe9"), (b"accept-encoding", b"gzip")]
    return httpx2.Request("POST", f"{base}{path}", headers=headers, content=body)


async def whole(client: httpx2.AsyncClient, request: httpx2.Request) -> bytes:
    """The bytes of a reply."""
    reply = await client.send(request, stream=True)
    try:
        return b"".join([chunk async for chunk in reply.aiter_raw()])
    finally:
        await reply.aclose()


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nX-Two: a\r\nX-Two: b\r\n\r\nok"


@pytest.mark.parametrize("size", [0, 2, 3_000_000])
async def test_a_provider_gets_what_was_sent_and_nothing_else(size: int) -> None:
    body = bytes(range(256)) * (size // 256 + 1)
    body = body[:size]
    async with provided(saying(OK)) as (provider, base), wire.client(60) as client:
        reply = await client.send(posted(base, body, "/v1/a%2Fb?q=%7B%20+"), stream=True)
        assert [chunk async for chunk in reply.aiter_raw()] == [b"ok"]
        assert reply.status_code == 200
        assert reply.headers.raw == [(b"content-length", b"2"), (b"X-Two", b"a"), (b"X-Two", b"b")]
        await reply.aclose()
    first, *headers = provider.heads[0].removesuffix(b"\r\n\r\n").split(b"\r\n")
    assert first == b"POST /v1/a%2Fb?q=%7B%20+ HTTP/1.1"
    named = [header.partition(b":")[0].lower() for header in headers]
    assert sorted(named) == [b"accept-encoding", b"content-length", b"host", b"x-one", b"x-one"]
    assert b"X-One: \xe9" in headers or "X-One: é".encode() in headers
    assert provider.bodies == [body]


async def test_a_reply_stays_as_it_is_encoded() -> None:
    packed = gzip.compress(b"well " * 100)
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n"
    raw = head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed), packed)
    async with provided(saying(raw)) as (_, base), wire.client(60) as client:
        assert await whole(client, posted(base)) == packed


async def test_a_connection_is_used_again_where_its_reply_is_at_its_end() -> None:
    async with provided(saying(OK)) as (provider, base), wire.client(60) as client:
        for _ in range(3):
            await whole(client, posted(base))
        assert provider.connections == 1
        half = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"
        provider.answer = saying(half)
        reply = await client.send(posted(base), stream=True)
        await reply.aclose()
        provider.answer = saying(OK)
        assert await whole(client, posted(base)) == b"ok"
        assert provider.connections == 2


async def test_what_goes_wrong_is_an_error_of_httpx2() -> None:
    async def silent(writes: Writes) -> None:
        await asyncio.sleep(60)

    async def gone(writes: Writes) -> None:
        writes.close()

    async def odd(writes: Writes) -> None:
        writes.write(b"SSH-2.0-nothing of ours\r\n\r\n")

    async def broken(writes: Writes) -> None:
        writes.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
        await writes.drain()
        writes.close()

    async def stalled(writes: Writes) -> None:
        writes.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
        await writes.drain()
        await asyncio.sleep(60)

    for answer, patience, error in (
        (silent, 0.5, httpx2.ReadTimeout),
        (stalled, 0.5, httpx2.ReadTimeout),
        (gone, 60, httpx2.RemoteProtocolError),
        (odd, 60, httpx2.RemoteProtocolError),
        (broken, 60, httpx2.RemoteProtocolError),
    ):
        async with provided(answer) as (_, base), wire.client(patience) as client:
            with pytest.raises(error):
                await whole(client, posted(base))
    async with wire.client(5) as client:
        with pytest.raises(httpx2.ConnectError):
            await client.send(posted("http://127.0.0.1:1"), stream=True)
    async with provided(saying(OK)) as (_, base), wire.client(0.5) as client:
        with pytest.raises(httpx2.ConnectTimeout):  # no TLS is spoken there
            await client.send(posted(base.replace("http:", "https:")), stream=True)


async def test_where_the_environment_names_a_proxy_it_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    async with wire.client(60) as client:
        assert isinstance(client._transport, Wire)
    async with provided(saying(OK)) as (between, way):
        monkeypatch.setenv("http_proxy", way)
        async with wire.client(60) as client:
            assert await whole(client, posted("http://provider.invalid")) == b"ok"
    assert between.heads[0].startswith(b"POST http://provider.invalid/v1/x HTTP/1.1\r\n")
