"""Callers by client certificates: which of their names are tenants, and which credential counts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import time
from typing import Any

import grpc
import pytest
from msgspec import structs

from contextengine_proto.v1 import (
    assemble_pb2,
    context_engine_pb2_grpc,
    engines_pb2,
    engines_pb2_grpc,
    sessions_pb2,
)
from contextengine_server.api.identity.client_certificates import ClientCertificates
from contextengine_server.api.identity.rules import CertificateRule
from contextengine_server.api.pipeline import auth, contract
from contextengine_server.api.pipeline.auth import (
    CallerRole,
    ConfigurationError,
    TokenGrant,
    hash_token,
)
from contextengine_server.api.pipeline.certificates import TlsFiles
from contextengine_server.api.pipeline.server import Server, ServerOptions
from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.telemetry.tracing import Tracer
from tests.integration.api_infra.certifying import DAY, Authority
from tests.integration.api_infra.house import House, Seen, failure, house, servicers
from tests.integration.api_infra.issuing import bearer

REQUEST = assemble_pb2.AssembleRequest()
RULES = (
    CertificateRule("uri", "spiffe://acme.example/operators/*", "acme", "operator"),
    CertificateRule("uri", "spiffe://agents.example/{tenant}/*"),
    CertificateRule("dns", "{tenant}.agents.example"),
    CertificateRule("common_name", "robot {tenant}"),
)
GRANTS = (TokenGrant(hash_token("a token"), "by-token", "runtime", "a token's name"),)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def options(authority: Authority, tmp_path: Path) -> ServerOptions:
    tls = TlsFiles(*authority.server(tmp_path))
    return ServerOptions(address="127.0.0.1:0", tls=tls, tokens=GRANTS, certificates=RULES)


@asynccontextmanager
async def showing(
    options: ServerOptions, authority: Authority, certificate: tuple[bytes, bytes]
) -> AsyncIterator[House]:
    """A server, and a channel that shows a certificate."""
    pem, key = certificate
    shown = grpc.ssl_channel_credentials(authority.pem, key, pem)
    async with house(options=options, credentials=shown, host="localhost") as h:
        yield h


@pytest.mark.parametrize(
    ("names", "tenant", "role", "name"),
    [
        (
            {"uris": ["spiffe://agents.example/acme/worker"]},
            "acme",
            CallerRole.RUNTIME,
            "spiffe://agents.example/acme/worker",
        ),
        (
            {"uris": ["spiffe://acme.example/operators/eve"]},
            "acme",
            CallerRole.OPERATOR,
            "spiffe://acme.example/operators/eve",
        ),
        (
            {"dns": ["beta.agents.example"]},
            "beta",
            CallerRole.RUNTIME,
            "beta.agents.example",
        ),
        ({"common_names": ["robot gamma"]}, "gamma", CallerRole.RUNTIME, "robot gamma"),
        (
            {"common_names": ["robot gamma"], "dns": ["delta.agents.example"]},
            "delta",
            CallerRole.RUNTIME,
            "delta.agents.example",
        ),
    ],
)
async def test_a_name_in_a_certificate_is_a_tenant(
    options: ServerOptions,
    authority: Authority,
    names: dict[str, Any],
    tenant: str,
    role: CallerRole,
    name: str,
) -> None:
    async with showing(options, authority, authority.certify(**names)) as h:
        for _ in range(2):
            await h.engine.Assemble(REQUEST)
        engines: Any = engines_pb2_grpc.EnginesStub(h.channel)
        assigning = engines.Assign(engines_pb2.AssignRequest())
        if role is CallerRole.OPERATOR:
            await assigning
        else:
            assert (await failure(assigning)).reason == "PERMISSION_DENIED"
    found = {(c.caller.tenant, c.caller.role, c.caller.token) for c in h.seen.calls}
    assert found == {(tenant, role, name)}


@pytest.mark.parametrize(
    "names",
    [
        {},
        {"common_names": ["somebody"]},
        {"common_names": ["a robot acme"]},
        {"common_names": ["robot acme\x01"]},
        {"common_names": ["robot acme", "robot beta"]},
        {"uris": ["spiffe://evil.example/agents.example/acme/worker"]},
        {"uris": ["spiffe://agents.example/acme"]},
        {"uris": ["spiffe://agents.example/acme/beta/worker"]},
        {"uris": ["spiffe://agents.example//worker"]},
        {"uris": ["spiffe://agents.example/acme/a", "spiffe://agents.example/beta/b"]},
        {"uris": ["beta.agents.example"]},
        {"dns": ["a.beta.agents.example"]},
        {"dns": ["beta.agents.example.evil.example"]},
        {"dns": ["betaXagents.example"]},
    ],
)
async def test_a_certificate_that_names_no_tenant_lets_nobody_in(
    options: ServerOptions, authority: Authority, names: dict[str, Any]
) -> None:
    async with showing(options, authority, authority.certify(**names)) as h:
        failed = await failure(h.engine.Assemble(REQUEST))
        assert (failed.code, failed.reason) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
        await h.engine.Assemble(REQUEST, metadata=bearer("a token"))
    [call] = h.seen.calls
    assert (call.caller.tenant, call.caller.token) == ("by-token", "a token's name")


@pytest.mark.parametrize("rpc", contract.rpcs(), ids=lambda rpc: rpc.attribute)
async def test_who_is_not_named_is_turned_away_before_there_is_a_body(
    options: ServerOptions, authority: Authority, rpc: contract.Rpc
) -> None:
    async with showing(options, authority, authority.certify(["nobody"])) as h:
        path = f"/{rpc.method}"
        if rpc.streams_out:
            failed = await failure(h.channel.stream_stream(path)().read())
        else:
            failed = await failure(h.channel.stream_unary(path)())
    assert failed.reason == "UNAUTHENTICATED"


async def test_a_token_that_is_sent_decides(options: ServerOptions, authority: Authority) -> None:
    """One that is refused too: a certificate beside it is no second try."""
    async with showing(options, authority, authority.certify(["robot acme"])) as h:
        await h.engine.Assemble(REQUEST, metadata=bearer("a token"))
        await h.engine.Assemble(REQUEST)
        failed = await failure(h.engine.Assemble(REQUEST, metadata=bearer("a guess")))
        assert failed.reason == "UNAUTHENTICATED"
    assert [call.caller.tenant for call in h.seen.calls] == ["by-token", "acme"]


async def test_who_is_certified_by_another_does_not_get_in(
    options: ServerOptions, authority: Authority
) -> None:
    other = Authority("authority")
    for stranger in (other.certify(["robot acme"]), authority.certify(["robot acme"], life=-DAY)):
        async with showing(options, authority, stranger) as h:
            call = h.engine.Assemble(REQUEST, timeout=5)
            assert (await failure(call)).code in (
                grpc.StatusCode.UNAVAILABLE,
                grpc.StatusCode.DEADLINE_EXCEEDED,
            )
        assert not h.seen.calls


async def test_a_certificate_that_expires_on_an_open_connection_holds_no_more(
    options: ServerOptions, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with showing(options, authority, authority.certify(["robot acme"])) as h:
        await h.engine.Assemble(REQUEST)
        monkeypatch.setattr(auth, "time", lambda: time() + 11 * DAY.total_seconds())
        failed = await failure(h.engine.Assemble(REQUEST))
        assert failed.reason == "UNAUTHENTICATED"
        assert "expired" in failed.text


async def test_calls_and_streams_of_every_kind_are_served(
    options: ServerOptions, authority: Authority
) -> None:
    async with showing(options, authority, authority.certify(["robot acme"])) as h:
        parts = [part async for part in h.sessions.Export(sessions_pb2.ExportRequest())]
        assert len(parts) == 3
        sent = [sessions_pb2.ImportRequest() for _ in range(3)]
        assert (await h.sessions.Import(iter(sent))).stored_count == 3
        watch = h.sessions.Watch(sessions_pb2.WatchRequest())
        assert await watch.read() is not grpc.aio.EOF
        taken = structs.replace(options, certificates=RULES[:-1])
        h.server.reload(taken)
        assert "hold no more" in (await failure(watch.read())).text
        assert (await failure(h.engine.Assemble(REQUEST))).reason == "UNAUTHENTICATED"


async def test_other_authorities_of_clients_hold_from_the_next_connection_on(
    options: ServerOptions, authority: Authority, tmp_path: Path
) -> None:
    other = Authority("another")
    async with showing(options, authority, authority.certify(["robot acme"])) as h:
        await h.engine.Assemble(REQUEST)
        (tmp_path / "ca.pem").write_bytes(other.pem)
        h.server.reload(options)
        pem, key = other.certify(["robot beta"])
        shown = grpc.ssl_channel_credentials(authority.pem, key, pem)
        async with grpc.aio.secure_channel(f"localhost:{h.port}", shown) as channel:
            engine: Any = context_engine_pb2_grpc.ContextEngineStub(channel)
            await engine.Assemble(REQUEST)
    assert [call.caller.tenant for call in h.seen.calls] == ["acme", "beta"]


def test_rules_need_an_authority_and_one_tenant(options: ServerOptions) -> None:
    assert options.tls is not None
    alone = structs.replace(options.tls, client_authority=None)
    for wrong in (structs.replace(options, tls=None), structs.replace(options, tls=alone)):
        with pytest.raises(ConfigurationError, match="client_ca_file"):
            Server(wrong, servicers(Seen()), tracer=Tracer(), metrics=Metrics())
    for rule in (
        CertificateRule("uri", "spiffe://x/{tenant}", "acme"),
        CertificateRule("uri", "spiffe://x/y"),
        CertificateRule("uri", "spiffe://{tenant}/{tenant}"),
    ):
        with pytest.raises(ConfigurationError, match="name the tenant once"):
            ClientCertificates([rule])
