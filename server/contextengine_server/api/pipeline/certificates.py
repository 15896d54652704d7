"""The server's certificate, which can be another one tomorrow."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import msgspec

from contextengine_server.api.pipeline.auth import ConfigurationError


class TlsFiles(msgspec.Struct, frozen=True):
    """A PEM certificate chain and its unencrypted PEM key."""

    certificate: Path
    key: Path
    client_authority: Path | None = None
    """When set, a client must show a certificate that one of these PEM authorities signed."""


class CertificatePem(msgspec.Struct, frozen=True):
    """What was read of them, PEM."""

    chain: bytes
    key: bytes
    client_authority: bytes | None = None


class Certificates:
    """Reads certificate, key and authority of clients from files, and reads them again when told.
    Raises ConfigurationError for files that cannot be used."""

    def __init__(self, files: TlsFiles) -> None:
        self._asks = files.client_authority is not None
        self._told: list[Callable[[CertificatePem], None]] = []
        self.ends_s = 0.0
        """When the server's own expires, in seconds since 1970."""
        self.shown = self._taken(files)
        """What each connection that begins is shown."""

    def on_change(self, told: Callable[[CertificatePem], None]) -> None:
        """Has `told` called with what is read from now on; where it raises, that is not shown."""
        self._told.append(told)

    def reload(self, files: TlsFiles) -> None:
        """Reads files again. Raises ConfigurationError, and goes on with what was read before."""
        if (files.client_authority is not None) != self._asks:
            raise ConfigurationError(
                "server.tls.client_ca_file: to ask clients for certificates, or no longer, needs a"
                " restart"
            )
        shown = self._taken(files)
        for told in self._told:
            told(shown)
        self.shown = shown

    def _taken(self, files: TlsFiles) -> CertificatePem:
        from cryptography import x509  # late: takes long, and only who has certificates needs it

        read = _read(files)
        [first, *_] = x509.load_pem_x509_certificates(read.chain)
        self.ends_s = first.not_valid_after_utc.timestamp()
        return read


def _read(files: TlsFiles) -> CertificatePem:
    """Reads a certificate and its key. Raises ConfigurationError that names the file and what is
    wrong with it."""
    contents = []
    wanted = [("certificate", files.certificate), ("key", files.key)]
    if files.client_authority is not None:
        wanted.append(("client authority", files.client_authority))
    for what, path in wanted:
        try:
            contents.append(path.read_bytes())
        except OSError as error:
            raise ConfigurationError(
                f"TLS {what} {path}: cannot be read: {error.strerror}"
            ) from error
        if b"-----BEGIN " not in contents[-1]:
            raise ConfigurationError(
                f"TLS {what} {path}: is not a PEM file; it must begin with -----BEGIN"
            )
    certificate, key, *authorities = contents

    def refuse_password() -> str:
        raise ConfigurationError(
            f"TLS key {files.key}: is encrypted; give a key without a passphrase"
        )

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            files.certificate, files.key, refuse_password
        )
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigurationError(
                f"TLS key {files.key} does not belong to the certificate {files.certificate}"
            ) from error
        raise ConfigurationError(
            f"TLS certificate {files.certificate} and key {files.key} cannot be used:"
            f" {error.reason}"
        ) from error
    return CertificatePem(certificate, key, authorities[0] if authorities else None)
