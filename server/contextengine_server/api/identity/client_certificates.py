"""Who calls by a client's certificate, which the transport has verified: rules say which names in
it are which tenant's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cachetools import LRUCache
from cryptography import x509

from contextengine_server.api.identity.rules import SEPARATORS, CertificateRule
from contextengine_server.api.pipeline.auth import (
    Caller,
    CallerRole,
    ConfigurationError,
    named_tenant,
)
from contextengine_server.errors import Unauthenticated

_TENANT = "{tenant}"
_REMEMBERED = 1024


class ClientCertificates:
    """Answers whom a certificate names. Raises ConfigurationError for rules that cannot be
    right."""

    def __init__(self, rules: Sequence[CertificateRule]) -> None:
        self._rules = [(rule, _compiled(rule)) for rule in rules]
        self._known: LRUCache[bytes, Caller] = LRUCache(_REMEMBERED)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def caller(self, peer: Mapping[str, Iterable[bytes]]) -> Caller:
        """Whom the certificate of a connection names. Raises Unauthenticated."""
        pem = b"".join(peer.get("x509_pem_cert", ()))
        if not pem:
            raise Unauthenticated(
                "this server needs credentials: send the metadata `authorization: Bearer TOKEN`, or"
                " show a client certificate"
            )
        caller = self._known.get(pem)
        if caller is None:
            caller = self._known[pem] = self._named(x509.load_pem_x509_certificate(pem))
        if caller.expired:
            raise Unauthenticated("the client certificate has expired: connect with a new one")
        return caller

    def _named(self, certificate: x509.Certificate) -> Caller:
        names = {kind: list(_names(certificate, kind)) for kind in SEPARATORS}
        for rule, pattern in self._rules:
            found = {
                (rule.tenant or match.group("tenant"), name)
                for name in names[rule.kind]
                if (match := pattern.fullmatch(name)) is not None
            }
            tenants = {tenant for tenant, _ in found}
            if len(tenants) > 1:
                raise Unauthenticated("the client certificate names several tenants")
            for tenant, name in sorted(found):
                if named_tenant(tenant) is not None:
                    until_s = certificate.not_valid_after_utc.timestamp()
                    return Caller(tenant, CallerRole(rule.role), name[:256], until_s)
        raise Unauthenticated(
            "the client certificate names no tenant: no rule of auth.certificates fits it"
        )


def _names(certificate: x509.Certificate, kind: str) -> Iterator[str]:
    if kind == "common_name":
        for attribute in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME):
            yield str(attribute.value)
        return
    try:
        named = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):  # a name that cannot be read is no name
        return
    if kind == "uri":
        yield from named.get_values_for_type(x509.UniformResourceIdentifier)
    else:
        yield from named.get_values_for_type(x509.DNSName)


def _compiled(rule: CertificateRule) -> re.Pattern[str]:
    """The pattern of a rule. Raises ConfigurationError."""
    where = f"auth.certificates: {rule.kind} {rule.pattern!r}"
    if rule.pattern.count(_TENANT) != (0 if rule.tenant else 1):
        raise ConfigurationError(
            f"{where}: name the tenant once, by {_TENANT} in the pattern or by tenant beside it"
        )
    separator = SEPARATORS[rule.kind]
    part = f"[^{re.escape(separator)}]+" if separator else ".+"
    made = re.escape(rule.pattern).replace(r"\*", part)
    return re.compile(made.replace(re.escape(_TENANT), f"(?P<tenant>{part})"), re.DOTALL)
