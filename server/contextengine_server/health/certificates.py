"""How long certificates last."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from contextengine_server.config.settings import Settings
from contextengine_server.health.checks import ERROR, OK, WARNING, Check

SOON_DAYS = 14
"""From here on a certificate should have been renewed: those who renew do it at 30 days, as a
rule."""


def certificate_checks(settings: Settings, now: datetime | None = None) -> list[Check]:
    """When the certificates in the files of the settings end; those that cannot be read are other
    checks' affair."""
    checks = []
    for name in ("cert_file", "client_ca_file"):
        path = getattr(settings.server.tls, name)
        until = _first_end(Path(path)) if path else None
        if until is not None:
            checks.append(_judged(name, path, until, now or datetime.now(UTC)))
    return checks


def _first_end(path: Path) -> datetime | None:
    """When the first of a file's certificates ends; None: it has none that can be read."""
    from cryptography import x509  # late: takes long, and only who has certificates needs it

    try:
        found = x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError):
        return None
    return min((one.not_valid_after_utc for one in found), default=None)


def _judged(name: str, path: str, until: datetime, now: datetime) -> Check:
    check, day = f"server.tls.{name}.expiry", f"{until:%Y-%m-%d}"
    days = (until - now).days
    advice = "Renew it, then send the server SIGHUP (`systemctl reload contextengine`)."
    if until <= now:
        return Check(check, ERROR, f"{path} has expired on {day}: nobody trusts it", advice)
    if days < SOON_DAYS:
        return Check(check, WARNING, f"{path} expires in {days} days, on {day}", advice)
    return Check(check, OK, f"{path} is valid until {day}")
