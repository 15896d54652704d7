"""What the doctor tells whom, and what it sees of certificates."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from msgspec import structs

from contextengine.messages import user
from contextengine_server.api.pipeline.certificates import TlsFiles
from contextengine_server.api.pipeline.server import ServerOptions
from contextengine_server.config.load import load_settings
from contextengine_server.health.certificates import certificate_checks
from contextengine_server.health.checks import OK, WARNING, Check, for_runtimes
from tests import postgres
from tests.integration.api_infra.certifying import DAY, Authority
from tests.integration.api_infra.house import house
from tests.integration.harness import ALICE, BOB, RUNTIME, TOKENS, ref
from tests.integration.harness import house as living

END = "contextengine.tls.certificate.end"


async def test_a_runtime_reads_how_all_is_and_nothing_of_the_host(tmp_path: Path) -> None:
    async with living(tmp_path, token=ALICE, **{"auth.tokens": TOKENS}) as h:
        await h.client.ingest(ref(), user("hello"))
        await h.client_of(BOB).ingest(ref("bobs-own"), user("hello"))
        whole = await h.client.engines.doctor(session=ref())
        told = await h.client_of(RUNTIME).engines.doctor(session=ref())
    place = f"127.0.0.1:{postgres.cluster().port}" if postgres.INSISTS else str(tmp_path)
    assert place in str(whole), "an operator reads where the store is"
    assert (told.ok, [(c.name, c.status) for c in told.checks]) == (
        whole.ok,
        # What was found damaged may be another tenant's.
        [(c.name, c.status) for c in whole.checks if c.name != "scrub"],
    )
    for never in (str(tmp_path), "bytes", "3 tokens", "bobs-own", "bob", "127.0.0.1"):
        assert never not in str(told)
    found = {check.name: check.found for check in told.checks}
    assert "1 messages" in found["session.integrity"]
    assert found["store"] == found["server.address"] == "what was found is for operators"


def test_what_is_wrong_with_the_host_is_told_to_operators() -> None:
    wrong = Check("engine.default", WARNING, "/opt/plugins/dag.py is broken", "Mend /opt/plugins.")
    [told] = for_runtimes([wrong])
    assert (told.name, told.status) == (wrong.name, wrong.status)
    assert "/opt" not in told.found + told.advice
    right = Check("engine.default", OK, "dag 1 resolves")
    assert for_runtimes([right]) == [right]


@pytest.mark.parametrize(
    ("life", "status", "said"),
    [
        (-DAY, "error", "has expired"),
        (5 * DAY + timedelta(hours=1), "warning", "expires in 5 days"),
        (15 * DAY, "ok", "is valid until"),
    ],
)
def test_a_certificate_that_ends_is_seen(
    tmp_path: Path, life: timedelta, status: str, said: str
) -> None:
    certificate, key, authority = Authority().server(tmp_path, life=life)
    files = {"cert_file": certificate, "key_file": key, "client_ca_file": authority}
    flags = {f"server.tls.{name}": str(path) for name, path in files.items()}
    own, clients = certificate_checks(load_settings(None, flags, {}))
    assert (own.name, own.status) == ("server.tls.cert_file.expiry", status)
    assert said in own.found
    assert (clients.name, clients.status) == ("server.tls.client_ca_file.expiry", "ok")
    [late, _] = certificate_checks(
        load_settings(None, flags, {}), datetime.now(UTC) + timedelta(days=20)
    )
    assert late.status == "error"
    certificate.write_text("nonsense")
    assert len(certificate_checks(load_settings(None, flags, {}))) == 1


async def test_a_server_tells_its_certificates_end_as_a_metric(tmp_path: Path) -> None:
    def end(path: Path) -> float:
        return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc.timestamp()

    async with house() as plain:
        assert plain.metrics.snapshot()[END] == 0
    files = TlsFiles(*Authority().server(tmp_path))
    options = ServerOptions(address="127.0.0.1:0", tls=files)
    async with house(options=options) as h:
        assert h.metrics.snapshot()[END] == end(files.certificate)
        folder = tmp_path / "renewed"
        await asyncio.to_thread(folder.mkdir)
        renewed = TlsFiles(*Authority().server(folder, life=99 * DAY))
        h.server.reload(structs.replace(options, tls=renewed))
        assert h.metrics.snapshot()[END] == end(renewed.certificate)
        assert end(renewed.certificate) > end(files.certificate) + 80 * DAY.total_seconds()
