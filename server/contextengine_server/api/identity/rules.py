"""Whose word is taken for who calls, apart from what verifies it, which takes long to load."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

SEPARATORS: Mapping[str, str] = {"uri": "/", "dns": ".", "common_name": ""}
"""What a name may be matched by, and what parts it: `*` and `{tenant}` stand for one part each."""


class CertificateRule(msgspec.Struct, frozen=True):
    """Certificates with a name of this pattern are of this tenant."""

    kind: str
    """One of SEPARATORS: which names are looked at."""
    pattern: str
    """The whole name: `{tenant}` is the tenant, `*` is anything, neither reaches beyond a part."""
    tenant: str = ""
    """Empty: what `{tenant}` stands for."""
    role: str = "runtime"


class IssuerRules(msgspec.Struct, frozen=True):
    """Whose tokens are trusted, and what their claims mean."""

    issuer: str
    """What `iss` must be, to the letter."""
    audiences: tuple[str, ...]
    """`aud` must have one of these."""
    algorithms: tuple[str, ...]
    """How tokens may be signed: of `keys.KINDS`."""
    keys_file: str = ""
    keys_url: str = ""
    """Where the public keys are: the one or the other."""
    leeway_s: float = 30.0
    """How far the issuer's clock may be from this one's."""
    refresh_s: float = 600.0
    """How often the keys are read again."""
    tenant_claim: str = "tenant"
    """A claim by name, or by JSON pointer (RFC 6901) where it begins with a slash."""
    tenants: tuple[str, ...] = ("**",)
    """Globs: the tenants that this issuer may name."""
    role_claim: str = "role"
    operator_roles: tuple[str, ...] = ("operator",)
    """Values of the role claim, a text with words or a list, that make an operator; all others
    make a runtime."""
    name_claim: str = "sub"
    """Who calls, for the log."""
