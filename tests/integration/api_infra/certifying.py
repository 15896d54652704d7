"""An authority that certifies servers and clients."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

DAY = timedelta(days=1)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


class Authority:
    """Signs certificates."""

    def __init__(self, name: str = "authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        made = self._begun(self._name, self._key, 30 * DAY).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.pem = made.sign(self._key, SHA256()).public_bytes(Encoding.PEM)

    def _begun(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, life: timedelta
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 400 * DAY)
            .not_valid_after(now + life)
        )

    def certify(
        self,
        common_names: Sequence[str] = (),
        *,
        uris: Sequence[str] = (),
        dns: Sequence[str] = (),
        local: bool = False,
        life: timedelta = 10 * DAY,
    ) -> tuple[bytes, bytes]:
        """A certificate with these names, and its key, both PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = [x509.NameAttribute(x509.NameOID.COMMON_NAME, name) for name in common_names]
        names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri) for uri in uris]
        names += [x509.DNSName(name) for name in dns]
        if local:
            names += [x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))]
        made = self._begun(x509.Name(subject), key, life)
        if names:
            made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return made.sign(self._key, SHA256()).public_bytes(Encoding.PEM), _key_pem(key)

    def server(self, folder: Path, *, life: timedelta = 10 * DAY) -> tuple[Path, Path, Path]:
        """Files of a certificate for this machine, its key, and the authority."""
        certificate, key = self.certify(["localhost"], local=True, life=life)
        paths = folder / "cert.pem", folder / "key.pem", folder / "ca.pem"
        for path, pem in zip(paths, (certificate, key, self.pem), strict=True):
            path.write_bytes(pem)
        return paths
