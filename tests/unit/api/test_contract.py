"""The rpcs, who serves them, and what each error reason becomes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from contextengine_proto.v1 import errors_pb2
from contextengine_server import errors as domain
from contextengine_server.api.pipeline import contract, errors, unserved
from contextengine_server.api.pipeline.admission import Admission
from contextengine_server.api.pipeline.auth import Authenticator
from contextengine_server.api.pipeline.bytes_in_flight import ByteLimits, BytesInFlight
from contextengine_server.api.pipeline.limits import Limits
from contextengine_server.api.pipeline.rpc import Pipeline
from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.telemetry.tracing import NO_TRACE, Tracer

REASONS = [
    name.removeprefix("ERROR_REASON_") for name, number in errors_pb2.ErrorReason.items() if number
]


def subclasses(kind: type) -> set[type]:
    children: list[type] = kind.__subclasses__()
    return {kind}.union(*(subclasses(child) for child in children))


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_has_the_code_that_its_comment_says(reason):
    number = errors_pb2.ErrorReason.Value(f"ERROR_REASON_{reason}")
    assert number
    documented = comment_of(reason)
    assert documented.split(".")[0] == errors.CODES[reason].name


def comment_of(reason: str) -> str:
    """The line above the value in the proto, which is what clients' authors read."""
    lines = (
        (Path(__file__).parents[3] / "proto/contextengine/v1/errors.proto").read_text().splitlines()
    )
    at = next(
        index
        for index, line in enumerate(lines)
        if line.strip().startswith(f"ERROR_REASON_{reason} =")
    )
    return lines[at - 1].strip().removeprefix("// ")


def test_no_code_is_for_a_reason_that_the_contract_lacks():
    assert set(errors.CODES) == set(REASONS)
    assert grpc.StatusCode.UNKNOWN not in errors.CODES.values()


@pytest.mark.parametrize(
    "kind",
    sorted(subclasses(domain.DomainError), key=str),
    ids=lambda kind: kind.__name__,
)
def test_every_domain_error_has_a_reason_of_the_contract(kind):
    assert kind.reason in REASONS


def test_a_domain_error_of_a_stranger_is_a_defect(capsys):
    class Strange(domain.DomainError):
        reason = "STRANGE"

    error = errors.as_domain_error(Strange("?"), "a.B/C", NO_TRACE)
    del Strange
    assert error.reason == "DEFECT"
    assert error.metadata["id"] in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["", "short", "字" * 400, "é" * 501, "x" * 1_000, "x" * 1_001, "\ud800" * 1_001]
)
def test_clipped_text_fits_and_is_whole(text):
    clipped = errors.clip(text, 1_000)
    assert len(clipped.encode()) <= 1_000
    if len(text.encode("utf-8", "replace")) <= 1_000:
        assert clipped == text
    else:
        assert clipped.endswith("…")


def test_the_block_of_details_stays_below_what_clients_take():
    for letter in ("x", "字", "\n"):
        error = domain.SessionNotFound(
            letter * 10_000,
            violations=[domain.FieldViolation(letter * 900, letter * 900)] * 50,
            metadata={f"{index}{letter * 100}": letter * 900 for index in range(50)},
            retry_after_ms=10,
        )
        status = errors.to_status(error)
        details = status.trailing_metadata[0][1]
        text = "".join(c if " " <= c <= "~" else "%xx" * len(c.encode()) for c in status.details)
        assert len(text) + len(details) * 4 / 3 < 8 * 1024 - 400


def test_names_of_methods():
    names = {rpc.name: rpc.attribute for rpc in contract.rpcs()}
    assert names["IngestBatch"] == "ingest_batch"
    assert names["GetStatus"] == "get_status"
    assert names["Import"] == "import_"
    assert len({rpc.method for rpc in contract.rpcs()}) == len(contract.rpcs())


def test_the_tables_name_rpcs_of_the_contract():
    methods = {rpc.method for rpc in contract.rpcs()}
    assert unserved.UNSERVED.keys() <= methods
    assert not contract.OPERATOR_ONLY - methods
    assert not contract.LONG_LIVED - methods


def pipeline() -> Pipeline:
    return Pipeline(
        admission=Admission(Limits(), Metrics()),
        authenticator=Authenticator(),
        tracer=Tracer(),
        metrics=Metrics(),
        max_message_bytes=1,
        in_flight=BytesInFlight(ByteLimits(1, 1, 1), Metrics()),
    )


class Everything:
    """Has a method for any rpc."""

    def __init__(self, *without: str) -> None:
        self._without = without

    def __getattr__(self, name: str):
        if name in self._without:
            raise AttributeError(name)
        return lambda request, call: None


def servicers_of_what_is_served() -> dict[str, object]:
    later = {method.rpartition("/")[2] for method in unserved.UNSERVED}
    without = [contract.attribute_name(name) for name in later]
    return {service: Everything(*without) for service in contract.services()}


def test_served_and_unserved_are_all_rpcs_and_do_not_overlap():
    handlers = pipeline().handlers(servicers_of_what_is_served())

    def found(path: str) -> object:
        details: Any = SimpleNamespace(method=path, invocation_metadata=())
        return handlers.service(details)

    assert all(found(f"/{rpc.method}") for rpc in contract.rpcs())
    assert found("/contextengine.v1.Engines/Nothing") is None


def test_an_rpc_that_nobody_serves_does_not_start():
    servicers = servicers_of_what_is_served()
    servicers["contextengine.v1.Engines"] = Everything("doctor")
    with pytest.raises(
        ValueError, match=r"contextengine\.v1\.Engines/Doctor is neither served nor"
    ):
        pipeline().handlers(servicers)


def test_an_rpc_that_is_served_and_in_the_table_does_not_start(monkeypatch):
    servicers = servicers_of_what_is_served()
    monkeypatch.setitem(unserved.UNSERVED, "contextengine.v1.Projection/Project", "another version")
    with pytest.raises(ValueError, match=r"contextengine\.v1\.Projection/Project is served and in"):
        pipeline().handlers(servicers)


def test_a_servicer_of_no_service_does_not_start():
    with pytest.raises(ValueError, match="Recal"):
        pipeline().handlers(
            {**servicers_of_what_is_served(), "contextengine.v1.Recal": Everything()}
        )
