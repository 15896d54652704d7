"""How requests go upstream: httpx2's client, over connections of aiohttp, whose parser is compiled.
A request and its reply cost a third so of what they cost over httpx2's own connections."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import lru_cache
from io import BytesIO
from urllib.request import getproxies

import aiohttp
import httpx2
from yarl import URL

CONNECT_S = 10.0
"""Seconds until upstream has taken a connection."""
IDLE_S = 5.0
"""Seconds that an idle connection is kept: providers close theirs later."""
AT_ONCE = 1024 * 1024
"""Bytes of a body that are handed over at once: more would hold up all others."""
MOST_HEADER = 64 * 1024
"""Bytes of the longest header of a reply."""
_TOLD = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
"""What aiohttp would say by itself where the client says nothing."""


def client(silent_s: float) -> httpx2.AsyncClient:
    """A client for any upstream, to be used in `async with`. silent_s: seconds that upstream may be
    silent."""
    timeout = httpx2.Timeout(silent_s, connect=min(CONNECT_S, silent_s))
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
    # Which way the environment has for a request, httpx2 knows.
    wire = None if getproxies() else Wire()
    return httpx2.AsyncClient(timeout=timeout, limits=limits, transport=wire)


@lru_cache(maxsize=128)
def _parsed(url: str) -> URL:
    return URL(url, encoded=True)


class Wire(httpx2.AsyncBaseTransport):
    """Connections that are kept and used again. Bytes of replies are not decoded."""

    def __init__(self) -> None:
        self._verified = httpx2.create_ssl_context()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Wire:
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_S, ssl=self._verified)
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_TOLD,
            max_line_size=MOST_HEADER,
            max_field_size=MOST_HEADER,
        )
        return self

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The reply as it begins. Raises httpx2.TransportError."""
        assert self._session is not None, "use it in `async with`"
        given = request.extensions.get("timeout", {})
        timeout = aiohttp.ClientTimeout(
            sock_connect=given.get("connect"), sock_read=given.get("read")
        )
        body = await request.aread()
        with _told(request):
            reply = await self._session.request(
                request.method,
                _parsed(str(request.url)),
                headers=[
                    (name.decode("latin-1"), value.decode("latin-1"))
                    for name, value in request.headers.raw
                ],
                data=BytesIO(body) if len(body) > AT_ONCE else body or None,
                allow_redirects=False,
                timeout=timeout,
            )
        return httpx2.Response(
            reply.status, headers=reply.raw_headers, stream=_Body(request, reply)
        )


class _Body(httpx2.AsyncByteStream):
    def __init__(self, request: httpx2.Request, reply: aiohttp.ClientResponse) -> None:
        self._request, self._reply = request, reply

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _told(self._request):
            async for chunk in self._reply.content.iter_any():
                yield chunk

    async def aclose(self) -> None:
        """Ends the connection where the reply is not at its end: the rest would come otherwise."""
        self._reply.close()


@contextmanager
def _told(request: httpx2.Request) -> Iterator[None]:
    """Errors as httpx2 knows them."""
    try:
        yield
    except aiohttp.ConnectionTimeoutError as error:
        raise httpx2.ConnectTimeout(str(error), request=request) from error
    except TimeoutError as error:
        raise httpx2.ReadTimeout(str(error), request=request) from error
    except aiohttp.ClientConnectorError as error:
        raise httpx2.ConnectError(str(error), request=request) from error
    except (aiohttp.ClientError, OSError) as error:
        raise httpx2.RemoteProtocolError(str(error), request=request) from error
