"""Who may call, over what, and what the server says of itself to everyone."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from msgspec import structs

from contextengine_proto.v1 import (
    assemble_pb2,
    context_engine_pb2_grpc,
    engines_pb2,
    engines_pb2_grpc,
    lifecycle_pb2,
)
from contextengine_server.api.pipeline import contract
from contextengine_server.api.pipeline.auth import (
    Caller,
    CallerRole,
    ConfigurationError,
    TokenGrant,
    hash_token,
)
from contextengine_server.api.pipeline.certificates import TlsFiles
from contextengine_server.api.pipeline.server import Server, ServerOptions
from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.telemetry.tracing import Tracer
from tests.integration.api_infra.house import Seen, failure, house, servicers
from tests.transports import TESTED

TOKENS = (
    TokenGrant(hash_token("a runtime's token"), "acme"),
    TokenGrant(hash_token("an operator's token"), "acme", "operator"),
)
UNIX_SOCKETS = TESTED == "grpcio"

GUARDED = ServerOptions(address="127.0.0.1:0", tokens=TOKENS)
REQUEST = assemble_pb2.AssembleRequest()


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


async def test_without_credentials_the_caller_is_the_operator_of_the_default_tenant():
    async with house() as h:
        await h.engine.Assemble(REQUEST, metadata=(("x-note", "seen"),))
        call = h.seen.calls[0]
        assert call.caller == Caller("default", CallerRole.OPERATOR, owner=True)
        assert ("x-note", "seen") in call.metadata


async def test_a_token_names_tenant_and_role():
    async with house(options=GUARDED) as h:
        await h.engine.Assemble(REQUEST, metadata=bearer("a runtime's token"))
        await h.engine.Assemble(REQUEST, metadata=bearer("an operator's token"))
        await h.engine.Assemble(REQUEST, metadata=(("authorization", "bearer a runtime's token"),))
    assert [call.caller for call in h.seen.calls] == [
        Caller("acme", CallerRole.RUNTIME),
        Caller("acme", CallerRole.OPERATOR),
        Caller("acme", CallerRole.RUNTIME),
    ]


@pytest.mark.parametrize(
    "metadata",
    [(), bearer("a guess"), bearer(""), (("authorization", "Basic YTpi"),), bearer("x" * 4_000)],
    ids=["missing", "wrong", "empty", "basic", "long"],
)
async def test_without_a_known_token_nobody_gets_in(metadata):
    async with house(options=GUARDED) as h:
        failed = await failure(h.engine.Assemble(REQUEST, metadata=metadata))
        unserved = await failure(h.raw("Projection/Project", metadata=metadata))
    assert (failed.code, failed.reason) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
    assert unserved.reason == "UNAUTHENTICATED"
    assert "guess" not in failed.text
    assert not h.seen.calls


@pytest.mark.parametrize("rpc", contract.rpcs(), ids=lambda rpc: rpc.attribute)
async def test_a_stranger_is_turned_away_before_there_is_a_body(rpc):
    """However large: a server whose strangers send it 40 bodies of 60 MB has none of them."""
    async with house(options=GUARDED) as h:
        path = f"/{rpc.method}"
        if rpc.streams_out:
            call = h.channel.stream_stream(path)(metadata=bearer("a guess"))
            failed = await failure(call.read())
        else:
            failed = await failure(h.channel.stream_unary(path)(metadata=bearer("a guess")))
    assert (failed.code, failed.reason) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")


async def test_only_an_operator_assigns():
    async with house(options=GUARDED) as h:
        engines = engines_pb2_grpc.EnginesStub(h.channel)
        request = engines_pb2.AssignRequest()
        failed = await failure(engines.Assign(request, metadata=bearer("a runtime's token")))
        await engines.Assign(request, metadata=bearer("an operator's token"))
        await engines.List(engines_pb2.EnginesListRequest(), metadata=bearer("a runtime's token"))
    assert (failed.code, failed.reason) == (grpc.StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED")
    assert failed.metadata == {"required_role": "operator", "role": "runtime"}


async def test_health_asks_for_no_token_and_takes_no_place():
    options = ServerOptions(address="127.0.0.1:0", tokens=TOKENS, max_concurrent_rpcs=1)

    async def forever(request, call):
        await asyncio.Event().wait()

    async with house(forever, options=options) as h:
        running = h.engine.Assemble(REQUEST, metadata=bearer("a runtime's token"))
        await asyncio.wait_for(h.seen.started.wait(), 30)
        reply = await h.health.Check(health_pb2.HealthCheckRequest())
        running.cancel()
    assert reply.status == health_pb2.HealthCheckResponse.SERVING


async def test_reflection_lists_the_services_and_knows_their_files():
    async with house() as h:
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(h.channel)
        asked = [
            reflection_pb2.ServerReflectionRequest(list_services=""),
            reflection_pb2.ServerReflectionRequest(
                file_containing_symbol="contextengine.v1.Recall"
            ),
            reflection_pb2.ServerReflectionRequest(
                file_containing_symbol="contextengine.v1.Recall.Search"
            ),
            reflection_pb2.ServerReflectionRequest(
                file_containing_symbol="contextengine.v1.Recall.Nothing"
            ),
        ]
        listed, file, of_rpc, none = [
            reply async for reply in stub.ServerReflectionInfo(iter(asked))
        ]
    names = {service.name for service in listed.list_services_response.service}
    assert names == {
        *contract.services(),
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    assert file.file_descriptor_response.file_descriptor_proto
    assert of_rpc.file_descriptor_response == file.file_descriptor_response
    assert none.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


def openssl(*arguments: str | Path) -> str:
    done = subprocess.run(
        ["openssl", *arguments], check=True, capture_output=True, text=True, timeout=120
    )
    return done.stdout


def self_signed(folder: Path) -> TlsFiles:
    """A self-signed certificate for 127.0.0.1, and its key."""
    openssl(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-days", "2"),
        *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        *("-keyout", folder / "key.pem", "-out", folder / "cert.pem"),
    )
    return TlsFiles(folder / "cert.pem", folder / "key.pem")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return self_signed(tmp_path_factory.mktemp("tls"))


async def test_tls_from_files(certificate):
    options = ServerOptions(address="127.0.0.1:0", tls=certificate, tokens=TOKENS)
    trust = grpc.ssl_channel_credentials(certificate.certificate.read_bytes())
    async with house(options=options, credentials=trust, host="localhost") as h:
        reply = await h.engine.GetStatus(
            lifecycle_pb2.GetStatusRequest(), metadata=bearer("a runtime's token")
        )
        assert reply.revision == 7
        async with grpc.aio.insecure_channel(f"127.0.0.1:{h.port}") as plain:
            status: Any = context_engine_pb2_grpc.ContextEngineStub(plain)
            call = status.GetStatus(lifecycle_pb2.GetStatusRequest(), timeout=5)
            assert (await failure(call)).code in (
                grpc.StatusCode.UNAVAILABLE,
                grpc.StatusCode.DEADLINE_EXCEEDED,
            )


async def test_a_client_shows_its_certificate_where_an_authority_is_set(certificate):
    own, key = certificate.certificate.read_bytes(), certificate.key.read_bytes()
    tls = TlsFiles(
        certificate.certificate, certificate.key, client_authority=certificate.certificate
    )
    options = ServerOptions(address="127.0.0.1:0", tls=tls, tokens=TOKENS)
    shown = grpc.ssl_channel_credentials(own, key, own)
    async with house(options=options, credentials=shown, host="localhost") as h:
        request = lifecycle_pb2.GetStatusRequest()
        reply = await h.engine.GetStatus(request, metadata=bearer("a runtime's token"))
        assert reply.revision == 7
        hidden = grpc.ssl_channel_credentials(own)
        async with grpc.aio.secure_channel(f"localhost:{h.port}", hidden) as nameless:
            status: Any = context_engine_pb2_grpc.ContextEngineStub(nameless)
            call = status.GetStatus(request, metadata=bearer("a runtime's token"), timeout=5)
            assert (await failure(call)).code in (
                grpc.StatusCode.UNAVAILABLE,
                grpc.StatusCode.DEADLINE_EXCEEDED,
            )


async def test_other_tokens_are_known_from_the_next_call_on():
    new = TokenGrant(hash_token("a new token"), "acme")
    request = lifecycle_pb2.GetStatusRequest()
    async with house(options=GUARDED) as h:
        early = await failure(h.engine.GetStatus(request, metadata=bearer("a new token")))
        assert early.code is grpc.StatusCode.UNAUTHENTICATED
        h.server.reload(structs.replace(GUARDED, tokens=(new,)))
        assert await h.engine.GetStatus(request, metadata=bearer("a new token"))
        gone = await failure(h.engine.GetStatus(request, metadata=bearer("a runtime's token")))
        assert gone.code is grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(ConfigurationError, match="needs a restart"):
            h.server.reload(structs.replace(GUARDED, tokens=()))
        wrong = TokenGrant("not a hash", "acme")
        with pytest.raises(ConfigurationError, match="64 hexadecimal digits"):
            h.server.reload(structs.replace(GUARDED, tokens=(wrong,)))
        assert await h.engine.GetStatus(request, metadata=bearer("a new token"))


async def test_another_certificate_is_shown_to_the_next_connection(certificate, tmp_path):
    def shown(port: int) -> str:
        return ssl.get_server_certificate(("127.0.0.1", port), timeout=30).strip()

    options = ServerOptions(address="127.0.0.1:0", tls=certificate, tokens=TOKENS)
    trust = grpc.ssl_channel_credentials(certificate.certificate.read_bytes())
    request, who = lifecycle_pb2.GetStatusRequest(), bearer("a runtime's token")
    other = self_signed(tmp_path)
    async with house(options=options, credentials=trust, host="localhost") as h:
        assert await h.engine.GetStatus(request, metadata=who)
        assert await asyncio.to_thread(shown, h.port) == certificate.certificate.read_text().strip()
        h.server.reload(structs.replace(options, tls=other))
        for _ in range(2):
            assert await asyncio.to_thread(shown, h.port) == other.certificate.read_text().strip()
        assert await h.engine.GetStatus(request, metadata=who), "an open connection goes on"
        other.key.write_text("nonsense")
        for wrong, why in ((other, "not a PEM file"), (None, "needs a restart")):
            with pytest.raises(ConfigurationError, match=why):
                h.server.reload(structs.replace(options, tls=wrong))
        assert await asyncio.to_thread(shown, h.port) == other.certificate.read_text().strip()


async def start(options: ServerOptions) -> None:
    server = Server(options, servicers(Seen()), tracer=Tracer(), metrics=Metrics())
    try:
        await server.start()
    finally:
        await server.drain(0)


@pytest.mark.parametrize(
    ("certificate_text", "key_text", "said"),
    [
        (None, "key", "cert.pem: cannot be read: No such file"),
        ("cert", None, "key.pem: cannot be read: No such file"),
        ("", "key", "cert.pem: is not a PEM file"),
        (
            "cert",
            "-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----\n",
            "cannot be used",
        ),
        ("cert", "other", "does not belong to the certificate"),
        ("cert", "encrypted", "is encrypted"),
    ],
)
async def test_a_bad_certificate_is_named(certificate, tmp_path, certificate_text, key_text, said):
    texts = {
        "cert": certificate.certificate.read_text(),
        "key": certificate.key.read_text(),
        "other": openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
        "encrypted": openssl("pkcs8", "-topk8", "-in", certificate.key, "-passout", "pass:locked"),
    }
    for name, text in (("cert.pem", certificate_text), ("key.pem", key_text)):
        if text is not None:
            (tmp_path / name).write_text(texts.get(text, text))
    tls = TlsFiles(tmp_path / "cert.pem", tmp_path / "key.pem")
    with pytest.raises(ConfigurationError) as raised:
        await start(ServerOptions(address="127.0.0.1:0", tls=tls))
    assert said in str(raised.value)
    assert str(tmp_path) in str(raised.value)


async def test_an_address_that_cannot_be_had_is_named_with_the_cause(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(
            ConfigurationError, match=f"cannot listen on {address}: the port is in use"
        ):
            await start(ServerOptions(address=address))
    with pytest.raises(ConfigurationError, match="no interface of this machine"):
        await start(ServerOptions(address="192.0.2.7:0", insecure=True))


async def test_a_socket_whose_folder_is_missing_is_named_with_the_cause(tmp_path):
    said = "No such file" if UNIX_SOCKETS else "serves no Unix sockets"
    with pytest.raises(ConfigurationError, match=said):
        await start(ServerOptions(address=f"unix:{tmp_path}/missing/socket"))


async def test_two_servers_never_share_a_port():
    async with house() as h:
        with pytest.raises(ConfigurationError, match="in use"):
            await start(ServerOptions(address=f"127.0.0.1:{h.port}"))


@pytest.mark.skipif(not UNIX_SOCKETS, reason="this transport serves no Unix sockets")
async def test_a_unix_socket_serves_and_is_not_taken_from_its_server(tmp_path):
    options = ServerOptions(address=f"unix:{tmp_path}/s")
    async with house(options=options) as h:
        assert h.port == 0
        assert (await h.engine.GetStatus(lifecycle_pb2.GetStatusRequest())).revision == 7
        with pytest.raises(ConfigurationError, match="another process listens there"):
            await start(options)
    (tmp_path / "file").write_text("not a socket")
    with pytest.raises(ConfigurationError, match="is not a socket"):
        await start(ServerOptions(address=f"unix:{tmp_path}/file"))
