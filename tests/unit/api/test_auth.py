"""Where a server may listen, and which tokens are possible."""

from __future__ import annotations

import pytest

from contextengine_server.api.pipeline.auth import (
    Authenticator,
    ConfigurationError,
    TokenGrant,
    check_exposure,
    hash_token,
    is_local,
)

LOCAL = [
    *("127.0.0.1:50051", "127.3.2.1:1", "localhost:0", "[::1]:50051", "[::ffff:127.0.0.1]:1"),
    *("unix:/run/ce.sock", "unix:///run/ce.sock", "unix-abstract:ce"),
]
REMOTE = [
    "0.0.0.0:50051",
    "[::]:50051",
    "10.0.0.1:1",
    "example.org:50051",
    "localhost.example.org:1",
    "[fe80::1]:2",
]


@pytest.mark.parametrize("address", LOCAL)
def test_loopback_needs_nothing(address):
    assert is_local(address)
    check_exposure(address, tls=False, tokens=False, insecure=False)


@pytest.mark.parametrize("address", REMOTE)
@pytest.mark.parametrize(
    ("tls", "tokens", "said"),
    [
        (False, False, "TLS .* and bearer tokens"),
        (True, False, "bearer tokens"),
        (False, True, "TLS"),
    ],
)
def test_other_addresses_need_both(address, tls, tokens, said):
    with pytest.raises(ConfigurationError, match=f"refusing to listen.*{said}.*--insecure"):
        check_exposure(address, tls, tokens, insecure=False)
    check_exposure(address, tls, tokens, insecure=True)
    check_exposure(address, tls=True, tokens=True, insecure=False)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "50051",
        "localhost",
        ":50051",
        "::1:50051",
        "127.0.0.1:x",
        "127.0.0.1:65536",
        "127.0.0.1:-1",
    ],
)
def test_what_is_no_address_is_told_how_to_write_one(address):
    with pytest.raises(ConfigurationError, match="address"):
        check_exposure(address, tls=False, tokens=False, insecure=False)


@pytest.mark.parametrize(
    ("grant", "said"),
    [
        (TokenGrant("plain text", "acme"), "64 hexadecimal digits"),
        (TokenGrant("ab" * 31, "acme"), "64 hexadecimal digits"),
        (TokenGrant("ab" * 32, ""), "tenant is empty"),
        (TokenGrant("ab" * 32, "acme", "root"), "unknown role 'root'; use runtime or operator"),
        (TokenGrant(hash_token("known").upper(), "acme"), "given before"),
    ],
)
def test_a_grant_that_cannot_be_right_is_refused(grant, said):
    with pytest.raises(ConfigurationError, match=f"token 1: .*{said}"):
        Authenticator([TokenGrant(hash_token("known"), "acme"), grant])
