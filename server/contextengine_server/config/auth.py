"""The settings of who may call."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from contextengine_server.config.addresses import is_loopback
from contextengine_server.config.group import Group
from contextengine_server.config.schema import Duration, Secret
from contextengine_server.config.server import SECOND


def _sha256(value: Any) -> Any:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise ValueError(
            "must be the SHA-256 of the token as 64 hexadecimal digits, never the token itself"
        )
    return value.lower()


class TokenSettings(Group):
    """A bearer token, stored as its hash: `printf %s "$TOKEN" | sha256sum`."""

    sha256: Annotated[str, Secret(), BeforeValidator(_sha256)] = Field(
        description=(
            "SHA-256 of the token, 64 hexadecimal digits. The token itself is stored nowhere."
        )
    )
    tenant: str = Field(
        min_length=1, max_length=256, description="The tenant that the caller acts for."
    )
    role: Literal["runtime", "operator"] = Field(
        "runtime", description="A runtime serves sessions; an operator may also assign engines."
    )
    name: str = Field("", max_length=256, description="Who holds it, for logs and doctor.")


Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]


class JwtSettings(Group):
    """An issuer of JSON Web Tokens."""

    issuer: str = Field(min_length=1, description="What `iss` of its tokens is, to the letter.")
    audiences: tuple[str, ...] = Field(
        min_length=1, description="What `aud` of a token must have one of: this server's names."
    )
    keys_file: str = Field("", description="Its public keys: a file with a JSON Web Key Set.")
    keys_url: str = Field(
        "",
        pattern=r"^$|^https?://[^/\s]",
        description="Or where they are had: https, or http on this machine. Read with a key that"
        " nobody knows, every `refresh` and at SIGHUP; while nothing answers the last ones hold.",
    )
    algorithms: tuple[Algorithm, ...] = Field(
        ("RS256", "ES256"), min_length=1, description="How tokens may be signed; no others are."
    )
    leeway: Duration = Field(
        timedelta(seconds=30),
        ge=timedelta(),
        le=timedelta(minutes=5),
        description="How far its clock may be from this server's.",
    )
    refresh: Duration = Field(
        timedelta(minutes=10), ge=SECOND, description="How often its keys are read again."
    )
    tenant_claim: str = Field(
        "tenant",
        min_length=1,
        description="The claim that names the tenant, one text. A claim within others by JSON"
        " pointer, such as /acme/tenant.",
    )
    tenants: tuple[str, ...] = Field(
        ("**",), min_length=1, description="Globs: the tenants that the issuer may name."
    )
    role_claim: str = Field(
        "role", min_length=1, description="The claim that names roles: a list, or one text's words."
    )
    operator_roles: tuple[str, ...] = Field(
        ("operator",), description="The roles that make an operator; all others make a runtime."
    )
    name_claim: str = Field(
        "sub", min_length=1, description="The claim that says who calls, for the log."
    )

    @model_validator(mode="after")
    def _has_keys(self) -> JwtSettings:
        if bool(self.keys_file) == bool(self.keys_url):
            raise ValueError("give keys_file or keys_url, and one of them only")
        plain = re.match(r"http://([^/]+)", self.keys_url)
        if plain and not is_loopback(_with_port(plain.group(1))):
            raise ValueError("keys_url must be https: who can change the keys can be any tenant")
        return self


def _with_port(host: str) -> str:
    return host if re.search(r":\d+$", host) else f"{host}:80"


class CertificateSettings(Group):
    """Client certificates that name a tenant. `*` and `{tenant}` stand for one part of a name:
    within slashes of a URI, dots of a DNS name."""

    uri: str = Field(
        "", description="A URI of the certificate, such as spiffe://acme.example/agents/{tenant}."
    )
    dns: str = Field("", description="Or a DNS name of it, such as {tenant}.agents.example.")
    common_name: str = Field("", description="Or the common name of its subject.")
    tenant: str = Field(
        "",
        max_length=256,
        description="The tenant, where the name has no {tenant} in it.",
    )
    role: Literal["runtime", "operator"] = Field("runtime", description="As for a token.")

    @model_validator(mode="after")
    def _one_name(self) -> CertificateSettings:
        names = [name for name in (self.uri, self.dns, self.common_name) if name]
        if len(names) != 1:
            raise ValueError("give one of uri, dns and common_name")
        if names[0].count("{tenant}") != (0 if self.tenant else 1):
            raise ValueError("name the tenant once: by {tenant} in the name, or by tenant")
        return self

    @property
    def name(self) -> tuple[str, str]:
        """Which name is looked at, and its pattern."""
        for kind in ("uri", "dns"):
            if pattern := getattr(self, kind):
                return kind, pattern
        return "common_name", self.common_name


class AuthSettings(Group):
    """Who may call. Without any of these every caller is tenant `default`, and only loopback is
    served. A bearer token that is sent decides, whatever certificate is shown beside it."""

    tokens: tuple[TokenSettings, ...] = Field(
        (), description="The bearer tokens that are accepted."
    )
    jwt: tuple[JwtSettings, ...] = Field(
        (), description="The issuers whose JSON Web Tokens are accepted as bearer tokens."
    )
    certificates: tuple[CertificateSettings, ...] = Field(
        (),
        description="Whose client certificates name which tenant; the first that fits holds. Needs"
        " `server.tls.client_ca_file`.",
    )
    owners: tuple[Annotated[str, Field(min_length=1, max_length=256)], ...] = Field(
        (),
        description="Tenants whose operators own the server: they see what every tenant holds and"
        " set quotas. By the exact name; let no issuer and no certificate name one of them that"
        " you would not trust with all tenants. Without credentials every caller owns it.",
    )

    @property
    def enabled(self) -> bool:
        """True where callers are known by credentials."""
        return bool(self.tokens or self.jwt or self.certificates)

    @property
    def told(self) -> str:
        """Who is known, in words."""
        known = [
            f"{len(self.tokens)} tokens" if self.tokens else "",
            f"tokens of {len(self.jwt)} issuers" if self.jwt else "",
            f"certificates by {len(self.certificates)} rules" if self.certificates else "",
        ]
        return ", ".join(filter(None, known))

    @model_validator(mode="after")
    def _distinct(self) -> AuthSettings:
        first: dict[str, int] = {}
        for index, token in enumerate(self.tokens):
            if (other := first.setdefault(token.sha256, index)) != index:
                raise ValueError(
                    f"tokens[{other}] and tokens[{index}] are the same token; a token has one"
                    " tenant and role"
                )
        issuers = [one.issuer for one in self.jwt]
        if len({*issuers}) != len(issuers):
            raise ValueError("jwt: an issuer is given twice; each has one entry")
        return self
