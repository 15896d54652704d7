"""An issuer of JSON Web Tokens, and the keys that it publishes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from time import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

ISSUER, AUDIENCE = "https://issuer.example/", "contextengine"


@cache
def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """A key that a name always means."""
    return rsa.generate_private_key(65537, bits)


@cache
def ec_key(name: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def ed_key(name: str) -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def published(kid: str, key: Any, **more: Any) -> dict[str, Any]:
    """A key as an issuer publishes it."""
    algorithm: Any
    if isinstance(key, rsa.RSAPrivateKey):
        algorithm = jwt.algorithms.RSAAlgorithm
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        algorithm = jwt.algorithms.ECAlgorithm
    else:
        algorithm = jwt.algorithms.OKPAlgorithm
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": kid, "use": "sig", **more}


def key_set(*keys: Mapping[str, Any]) -> str:
    return json.dumps({"keys": list(keys)})


def claims(**more: Any) -> dict[str, Any]:
    """What a lawful token claims; None leaves one out."""
    said = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "worker-7",
        "exp": int(time()) + 600,
        "tenant": "acme",
        **more,
    }
    return {name: value for name, value in said.items() if value is not None}


def signed(
    key: Any = None, *, algorithm: str = "RS256", kid: Any = "one", **more: Any
) -> tuple[tuple[str, str], ...]:
    """The metadata with a token of these claims."""
    headers = {} if kid is None else {"kid": kid}
    return bearer(jwt.encode(claims(**more), key or rsa_key("one"), algorithm, headers=headers))


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


class Published:
    """An endpoint with a key set; it counts who asks, and can be down or answer something else."""

    def __init__(self) -> None:
        self.text, self.status, self.asked, self.url = "", 200, 0, ""


@contextmanager
def endpoint(text: str) -> Iterator[Published]:
    here = Published()
    here.text = text

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            here.asked += 1
            self.send_response(here.status)
            if here.status == 302:
                self.send_header("location", f"{here.url}/elsewhere")
            self.end_headers()
            self.wfile.write(here.text.encode())

        def log_message(self, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    here.url = f"http://127.0.0.1:{server.server_port}/keys"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield here
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
