"""The server's certificate, which can be another one tomorrow."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import cast

import grpc
import msgspec

from contextengine_server.api.pipeline.auth import ConfigurationError


class TlsFiles(msgspec.Struct, frozen=True):
    """A PEM certificate chain and its unencrypted PEM key."""

    certificate: Path
    key: Path
    client_authority: Path | None = None
    """When set, a client must show a certificate that one of these PEM authorities signed."""


class Certificates:
    """Reads certificate, key and authority of clients from files, and reads them again when told.
    Raises ConfigurationError for files that cannot be used."""

    def __init__(self, files: TlsFiles) -> None:
        self._asks = files.client_authority is not None
        self.ends_s = 0.0
        """When the server's own expires, in seconds since 1970."""
        self._now = self._taken(files)
        self._served = self._now

    def credentials(self) -> grpc.ServerCredentials:
        """What a port is opened with. Each connection that begins is shown what was read last."""
        # None says that nothing has changed, which the types of grpcio leave out.
        changed = cast(Callable[[], grpc.ServerCertificateConfiguration], self._changed)
        return grpc.dynamic_ssl_server_credentials(self._now, changed, self._asks)

    def reload(self, files: TlsFiles) -> None:
        """Reads files again. Raises ConfigurationError, and goes on with what was read before."""
        if (files.client_authority is not None) != self._asks:
            raise ConfigurationError(
                "server.tls.client_ca_file: to ask clients for certificates, or no longer, needs a"
                " restart"
            )
        self._now = self._taken(files)

    def _taken(self, files: TlsFiles) -> grpc.ServerCertificateConfiguration:
        from cryptography import x509  # late: takes long, and only who has certificates needs it

        read = _read(files)
        [first, *_] = x509.load_pem_x509_certificates(files.certificate.read_bytes())
        self.ends_s = first.not_valid_after_utc.timestamp()
        return read

    def _changed(self) -> grpc.ServerCertificateConfiguration | None:
        """What was read since the last connection began; None: nothing. Called by threads of
        gRPC."""
        now = self._now
        if now is self._served:
            return None
        self._served = now
        return now


def _read(files: TlsFiles) -> grpc.ServerCertificateConfiguration:
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
    return grpc.ssl_server_certificate_configuration(
        [(key, certificate)], authorities[0] if authorities else None
    )
