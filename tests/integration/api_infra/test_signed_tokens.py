"""Callers by JSON Web Tokens: what is accepted, what is not, and how keys change under a server."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import Any

import grpc
import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from msgspec import structs
from structlog.testing import capture_logs

from contextengine_proto.v1 import assemble_pb2, engines_pb2, engines_pb2_grpc, sessions_pb2
from contextengine_server.api.identity import keys as keys_module
from contextengine_server.api.identity.issuers import Issuers
from contextengine_server.api.identity.keys import PAUSE_S, Keys, UnusableKeys
from contextengine_server.api.identity.rules import IssuerRules
from contextengine_server.api.pipeline import call as call_module
from contextengine_server.api.pipeline import contract
from contextengine_server.api.pipeline.auth import (
    CallerRole,
    ConfigurationError,
    TokenGrant,
    hash_token,
)
from contextengine_server.api.pipeline.server import ServerOptions
from contextengine_server.errors import Unauthenticated
from tests.integration.api_infra.house import House, failure, house
from tests.integration.api_infra.issuing import (
    AUDIENCE,
    ISSUER,
    bearer,
    claims,
    ec_key,
    ed_key,
    endpoint,
    key_set,
    published,
    rsa_key,
    signed,
)

REQUEST = assemble_pb2.AssembleRequest()
PATIENCE_S = 60


@pytest.fixture
def keys_file(tmp_path: Path) -> Path:
    path = tmp_path / "keys.json"
    path.write_text(key_set(published("one", rsa_key("one")), published("two", ec_key("two"))))
    return path


def publish(path: Path, *keys: Mapping[str, Any]) -> None:
    path.write_text(key_set(*keys))


def trusting(keys_file: Path, **more: Any) -> ServerOptions:
    rules = IssuerRules(ISSUER, (AUDIENCE,), ("RS256", "ES256"), keys_file=str(keys_file), **more)
    return ServerOptions(address="127.0.0.1:0", issuers=(rules,))


def at(url: str, **more: Any) -> ServerOptions:
    rules = IssuerRules(ISSUER, (AUDIENCE,), ("RS256",), keys_url=url, **more)
    return ServerOptions(address="127.0.0.1:0", issuers=(rules,))


def keys_of(h: House) -> Keys:
    """The keys of the one issuer."""
    assert h.server._issuers is not None
    [(_, keys)] = h.server._issuers._issuers.values()
    return keys


async def accepted(h: House, metadata: Any) -> bool:
    """Whether a call is served. The transport refuses by itself what is too large for it."""
    call = h.engine.Assemble(REQUEST, metadata=metadata)
    code = await call.code()
    assert code in (
        grpc.StatusCode.OK,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    )
    return code is grpc.StatusCode.OK


async def test_claims_name_tenant_role_and_caller(keys_file: Path) -> None:
    options = trusting(keys_file, role_claim="/realm/roles", tenants=("acme", "beta-*"))
    async with house(options=options) as h:
        await h.engine.Assemble(REQUEST, metadata=signed())
        await h.engine.Assemble(
            REQUEST,
            metadata=signed(
                ec_key("two"),
                algorithm="ES256",
                kid="two",
                tenant="beta-1",
                aud=["other", AUDIENCE],
                realm={"roles": ["reader", "operator"]},
            ),
        )
        await h.engine.Assemble(REQUEST, metadata=signed(realm={"roles": ["reader", 7]}))
        assert not await accepted(h, signed(tenant="gamma"))
        engines: Any = engines_pb2_grpc.EnginesStub(h.channel)
        failed = await failure(engines.Assign(engines_pb2.AssignRequest(), metadata=signed()))
        assert failed.reason == "PERMISSION_DENIED"
    found = [(c.caller.tenant, c.caller.role, c.caller.token) for c in h.seen.calls]
    assert found == [
        ("acme", CallerRole.RUNTIME, "worker-7"),
        ("beta-1", CallerRole.OPERATOR, "worker-7"),
        ("acme", CallerRole.RUNTIME, "worker-7"),
    ]


async def test_tokens_of_both_kinds_are_known_side_by_side(keys_file: Path) -> None:
    grants = (TokenGrant(hash_token("an opaque one"), "other"),)
    async with house(options=structs.replace(trusting(keys_file), tokens=grants)) as h:
        await h.engine.Assemble(REQUEST, metadata=bearer("an opaque one"))
        await h.engine.Assemble(REQUEST, metadata=signed())
        assert not await accepted(h, bearer("a guess"))
        assert not await accepted(h, ())
    assert [call.caller.tenant for call in h.seen.calls] == ["other", "acme"]


def unsigned(header: dict[str, Any], body: dict[str, Any], signature: bytes = b"") -> Any:
    parts = (json.dumps(header).encode(), json.dumps(body).encode(), signature)
    return bearer(".".join(base64.urlsafe_b64encode(p).decode().rstrip("=") for p in parts))


def confused() -> Any:
    """Signed by HMAC with what everybody knows: the public key."""
    import hashlib
    import hmac

    public = (
        rsa_key("one").public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    parts = ({"alg": "HS256", "typ": "JWT", "kid": "one"}, claims())
    text = b".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=") for p in parts)
    mac = base64.urlsafe_b64encode(hmac.digest(public, text, hashlib.sha256)).rstrip(b"=")
    return bearer((text + b"." + mac).decode())


def tampered() -> Any:
    [(_, value)] = signed()
    header, _, signature = value.removeprefix("Bearer ").split(".")
    body = base64.urlsafe_b64encode(json.dumps(claims(tenant="other")).encode()).rstrip(b"=")
    return bearer(f"{header}.{body.decode()}.{signature}")


def with_header(**header: Any) -> Any:
    token = jwt.encode(claims(), rsa_key("theirs"), "RS256", headers={"kid": "theirs", **header})
    return bearer(token)


THEIRS = published("theirs", rsa_key("theirs"))
NOW = int(time())

ATTACKS: dict[str, Any] = {
    "expired": lambda: signed(exp=NOW - 60),
    "without an end": lambda: signed(exp=None),
    "an end that is no number": lambda: signed(exp="never"),
    "not valid yet": lambda: signed(nbf=NOW + 3600),
    "another issuer": lambda: signed(iss="https://evil.example/"),
    "an issuer in a list": lambda: unsigned({"alg": "RS256"}, claims(iss=[ISSUER]), b"x"),
    "no issuer": lambda: signed(iss=None),
    "another audience": lambda: signed(aud="another"),
    "no audience": lambda: signed(aud=None),
    "an empty audience": lambda: signed(aud=[]),
    "alg none": lambda: unsigned({"alg": "none", "kid": "one"}, claims()),
    "alg None": lambda: unsigned({"alg": "None", "kid": "one"}, claims()),
    "alg missing": lambda: unsigned({"kid": "one"}, claims(), b"x"),
    "alg a list": lambda: unsigned({"alg": ["RS256"], "kid": "one"}, claims(), b"x"),
    "HMAC with the public key": confused,
    "an algorithm that is not allowed": lambda: signed(algorithm="PS256"),
    "a key of another kind": lambda: signed(kid="two"),
    "another's key": lambda: signed(rsa_key("theirs")),
    "a key that it brings along": lambda: with_header(kid="one", jwk=THEIRS),
    "a place of keys": lambda: with_header(
        jku="http://127.0.0.1:9/keys", x5u="http://127.0.0.1:9/"
    ),
    "a critical header": lambda: signed_with(crit=["x"], x=1),
    "a body changed": tampered,
    "kid a path": lambda: signed(rsa_key("theirs"), kid="../../../../dev/null"),
    "kid a query": lambda: signed(rsa_key("theirs"), kid="one' OR '1'='1"),
    "kid empty": lambda: signed(rsa_key("theirs"), kid=""),
    "kid a number": lambda: unsigned({"alg": "RS256", "kid": 1}, claims(), b"x"),
    "no kid, two keys of which one fits": lambda: signed(rsa_key("theirs"), kid=None),
    "huge": lambda: signed(more="x" * 6_000),
    "too long for any": lambda: bearer("a." + "x" * 7_000 + ".c"),
    "deep": lambda: unsigned({"alg": "RS256", "kid": "one"}, nested(400), b"x"),
    "dots": lambda: bearer(".."),
    "no base64": lambda: bearer("a!.b!.c!"),
    "tenant missing": lambda: signed(tenant=None),
    "tenant empty": lambda: signed(tenant=""),
    "tenant a list": lambda: signed(tenant=["acme"]),
    "tenant an object": lambda: signed(tenant={"id": "acme"}),
    "tenant a number": lambda: signed(tenant=7),
    "tenant with a line": lambda: signed(tenant="acme\nother"),
    "tenant with a zero byte": lambda: signed(tenant="acme\0"),
    "tenant too long": lambda: signed(tenant="x" * 257),
}
FITTING = {"huge"}
"""What is only large, and right."""


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = claims()
    for _ in range(depth):
        found = {"a": found}
    return found


def signed_with(**header: Any) -> Any:
    return bearer(jwt.encode(claims(), rsa_key("one"), "RS256", headers={"kid": "one", **header}))


@pytest.mark.parametrize("name", ATTACKS)
async def test_a_token_that_is_not_right_lets_nobody_in(name: str, keys_file: Path) -> None:
    metadata = ATTACKS[name]()
    token = metadata[0][1].removeprefix("Bearer ")
    with capture_logs() as logs:
        async with house(options=trusting(keys_file)) as h:
            reached = await accepted(h, metadata)
    assert reached is (name in FITTING)
    assert bool(h.seen.calls) is reached
    assert token.rpartition(".")[2][:20] == "" or token not in str(logs)


@pytest.mark.parametrize("rpc", contract.rpcs(), ids=lambda rpc: rpc.attribute)
async def test_a_key_that_nobody_knows_is_asked_for_before_there_is_a_body(
    rpc: contract.Rpc, keys_file: Path
) -> None:
    async with house(options=trusting(keys_file)) as h:
        keys = keys_of(h)
        keys._asked = -PAUSE_S  # so that it is read again for this one
        path, who = f"/{rpc.method}", signed(rsa_key("theirs"), kid="theirs")
        if rpc.streams_out:
            failed = await failure(h.channel.stream_stream(path)(metadata=who).read())
        else:
            failed = await failure(h.channel.stream_unary(path)(metadata=who))
    assert (failed.code, failed.reason) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
    assert "does not publish" in failed.text


async def test_a_new_key_is_found_by_who_names_it_and_an_old_one_goes() -> None:
    with endpoint(key_set(published("one", rsa_key("one")))) as here:
        async with house(options=at(here.url, refresh_s=3600.0)) as h:
            assert await accepted(h, signed())
            here.text = key_set(published("next", rsa_key("next")))
            keys = keys_of(h)
            keys._asked = -PAUSE_S
            fresh = signed(rsa_key("next"), kid="next")
            assert all(await asyncio.gather(*(accepted(h, fresh) for _ in range(20))))
            assert here.asked == 2, "one reading for all who ask"
            assert not await accepted(h, signed()), "its key is published no more"


async def test_every_rpc_is_served_to_who_had_to_be_asked_for(keys_file: Path) -> None:
    """A call whose key is found late is answered like any other."""
    async with house(options=trusting(keys_file)) as h:
        keys = keys_of(h)

        def forget() -> Any:
            keys.known, keys._text, keys._asked = {}, b"", -PAUSE_S
            return signed()

        await h.engine.Assemble(REQUEST, metadata=forget())
        parts = [
            part
            async for part in h.sessions.Export(sessions_pb2.ExportRequest(), metadata=forget())
        ]
        assert len(parts) == 3
        sent = [sessions_pb2.ImportRequest() for _ in range(4)]
        stored = await h.sessions.Import(iter(sent), metadata=forget())
        assert stored.stored_count == 4


async def test_guesses_of_keys_do_not_load_the_issuer() -> None:
    with endpoint(key_set(published("one", rsa_key("one")))) as here:
        async with house(options=at(here.url, refresh_s=3600.0)) as h:
            assert await accepted(h, signed())
            for number in range(30):
                assert not await accepted(h, signed(rsa_key("theirs"), kid=f"guess {number}"))
    assert here.asked == 1


@pytest.mark.parametrize("broken", ["down", "empty", "nonsense", "moved", "error"])
async def test_an_endpoint_that_is_out_of_order_keeps_the_last_keys(broken: str) -> None:
    with endpoint(key_set(published("one", rsa_key("one")))) as here:
        async with house(options=at(here.url)) as h:
            assert await accepted(h, signed())
            keys = keys_of(h)
            here.text = {"empty": key_set(), "nonsense": "<html>"}.get(broken, here.text)
            here.status = {"moved": 302, "error": 503}.get(broken, 200)
            if broken == "down":
                here.url = ""
                keys._read = keys_module.keys_at("http://127.0.0.1:1/keys")._read
            with capture_logs() as logs:
                await keys.refresh()
            assert [line["event"] for line in logs] == ["keys_not_read"]
            assert await accepted(h, signed(sub="another"))


async def test_a_server_starts_before_its_issuer_and_serves_once_that_answers() -> None:
    with endpoint("not yet") as here:
        async with house(options=at(here.url)) as h:
            assert not await accepted(h, signed())
            here.text = key_set(published("one", rsa_key("one")))
            keys = keys_of(h)
            keys._asked = -PAUSE_S
            assert await accepted(h, signed())


async def test_keys_are_read_again_at_intervals(keys_file: Path) -> None:
    async with house(options=trusting(keys_file, refresh_s=0.01)) as h:
        assert not await accepted(h, signed(rsa_key("next"), kid="next"))
        publish(keys_file, published("next", rsa_key("next")))
        async with asyncio.timeout(PATIENCE_S):
            while not await accepted(h, signed(rsa_key("next"), kid="next")):
                await asyncio.sleep(0.05)


async def test_keys_and_rules_are_read_again_when_told(keys_file: Path) -> None:
    options = trusting(keys_file)
    async with house(options=options) as h:
        assert await accepted(h, signed())
        publish(keys_file, published("next", rsa_key("next")))
        h.server.reload(options)
        assert await accepted(h, signed(rsa_key("next"), kid="next"))
        assert not await accepted(h, signed())
        publish(keys_file)
        with pytest.raises(ConfigurationError, match="holds no public key"):
            h.server.reload(options)
        assert await accepted(h, signed(rsa_key("next"), kid="next")), "those it has hold"


async def test_a_file_without_keys_keeps_the_server_from_starting(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    for text, said in (
        (None, "cannot be read: No such file"),
        ("[]", "is not a JSON Web Key Set"),
        (key_set({"kty": "oct", "k": "c2VjcmV0", "kid": "one"}), "no public key"),
        (key_set(published("one", rsa_key("short", 1024))), "no public key"),
        (key_set(published("one", rsa_key("one"), use="enc")), "no public key"),
    ):
        if text is not None:
            path.write_text(text)
        with pytest.raises(ConfigurationError, match=said):
            async with house(options=trusting(path)):
                pass


async def test_a_stream_ends_when_its_token_does(
    keys_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later_s = 0
    monkeypatch.setattr(call_module, "time", lambda: time() + later_s)
    monkeypatch.setattr(call_module, "_MOST_S", 0.01)
    async with house(options=trusting(keys_file)) as h:
        watch = h.sessions.Watch(sessions_pb2.WatchRequest(), metadata=signed(exp=NOW + 100_000))
        assert await watch.read() is not grpc.aio.EOF
        assert not h.seen.finished.is_set()
        later_s = 200_000
        failed = await failure(watch.read())
        assert (failed.code, failed.reason) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
        assert "expired: resume it with new ones" in failed.text
        async with asyncio.timeout(PATIENCE_S):
            await h.seen.finished.wait()


async def test_a_stream_ends_when_its_credentials_are_taken_back(keys_file: Path) -> None:
    """At once when told, and not those of callers who are who they were."""
    grants = (TokenGrant(hash_token("kept"), "acme"), TokenGrant(hash_token("moved"), "acme"))
    options = structs.replace(trusting(keys_file), tokens=grants)
    moved = (grants[0], structs.replace(grants[1], tenant="other"))
    async with house(options=options) as h:
        calls = {
            name: h.sessions.Watch(sessions_pb2.WatchRequest(), metadata=who)
            for name, who in (
                ("kept", bearer("kept")),
                ("moved", bearer("moved")),
                ("signed", signed()),
            )
        }
        for call in calls.values():
            assert await call.read() is not grpc.aio.EOF
        publish(keys_file, published("next", rsa_key("next")))
        h.server.reload(structs.replace(options, tokens=moved))
        for name in ("moved", "signed"):
            failed = await failure(calls[name].read())
            assert failed.reason == "UNAUTHENTICATED"
            assert "call again with others" in failed.text
        assert not calls["kept"].done()
        calls["kept"].cancel()


def test_the_algorithms_have_keys_of_their_own() -> None:
    found = keys_module.parsed(
        key_set(
            published("r", rsa_key("one")),
            published("p", rsa_key("one"), alg="PS256"),
            published("e", ec_key("two")),
            published("d", ed_key("three")),
            {"kty": "OKP", "crv": "X25519", "x": "AA", "kid": "x"},
        ).encode()
    )
    assert {kid: set(keys) for kid, keys in found.items()} == {
        "r": {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"},
        "p": {"PS256"},
        "e": {"ES256"},
        "d": {"EdDSA"},
    }


def test_of_a_private_key_the_public_half_is_held() -> None:
    private = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(rsa_key("one")))
    found = keys_module.parsed(key_set({**private, "kid": "one"}).encode())
    assert not hasattr(found["one"]["RS256"].key, "private_numbers")


async def test_a_token_that_names_no_key_has_the_only_one() -> None:
    async def read() -> bytes:
        return b""

    keys = Keys("here", read)
    keys.take(key_set(published("a", rsa_key("one")), published("b", ec_key("two"))).encode())
    assert keys.find(None, "RS256") is not None
    assert keys.find(None, "PS512") is not None
    assert keys.find(None, "EdDSA") is None
    keys.take(key_set(published("a", rsa_key("one")), published("b", rsa_key("next"))).encode())
    assert keys.find(None, "RS256") is None
    with pytest.raises(UnusableKeys):
        keys.take(b"null")
    assert keys.find("a", "RS256") is not None


async def test_an_issuer_cannot_sign_for_another(tmp_path: Path) -> None:
    rules = []
    for name in ("one", "theirs"):
        path = tmp_path / f"{name}.json"
        path.write_text(key_set(published("same", rsa_key(name))))
        issuer = f"https://{name}.example/"
        rules.append(IssuerRules(issuer, (AUDIENCE,), ("RS256",), keys_file=str(path)))
    issuers = Issuers(rules)

    def token(key: str, iss: str) -> str:
        made = claims(iss=f"https://{iss}.example/")
        return jwt.encode(made, rsa_key(key), "RS256", headers={"kid": "same"})

    for name in ("one", "theirs"):
        assert issuers.caller(token(name, name)) is not None
    for key, iss in (("one", "theirs"), ("theirs", "one")):
        with pytest.raises(Unauthenticated, match="signature"):
            issuers.caller(token(key, iss))
