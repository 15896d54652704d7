"""Who may call, as the settings say it."""

from __future__ import annotations

from contextengine_server.api.identity.rules import CertificateRule, IssuerRules
from contextengine_server.api.pipeline.auth import TokenGrant
from contextengine_server.config.auth import AuthSettings


def tokens_of(auth: AuthSettings) -> tuple[TokenGrant, ...]:
    """The bearer tokens that are known."""
    return tuple(TokenGrant(one.sha256, one.tenant, one.role, one.name) for one in auth.tokens)


def issuers_of(auth: AuthSettings) -> tuple[IssuerRules, ...]:
    """Whose tokens are verified."""
    return tuple(
        IssuerRules(
            **one.model_dump(exclude={"leeway", "refresh"}),
            leeway_s=one.leeway.total_seconds(),
            refresh_s=one.refresh.total_seconds(),
        )
        for one in auth.jwt
    )


def certificates_of(auth: AuthSettings) -> tuple[CertificateRule, ...]:
    """Which client certificates name whom."""
    return tuple(CertificateRule(*one.name, one.tenant, one.role) for one in auth.certificates)
