"""Every reason has its class, and nothing that the server says of an error is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message as ProtoMessage
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from contextengine import errors
from contextengine.calls import GET_STATUS
from contextengine.types import ErrorReason, SessionRef
from tests.unit.client.conftest import Server

REF = SessionRef(agent_id="a", session_id="s")
REASONS = [
    name.removeprefix("ERROR_REASON_")
    for name in ErrorReason.DESCRIPTOR.values_by_name
    if not name.endswith("_UNSPECIFIED")
]


def failing(
    code: grpc.StatusCode, *details: ProtoMessage
) -> Callable[[Any, grpc.ServicerContext], Any]:
    packed = []
    for detail in details:
        packed.append(AnyMessage())
        packed[-1].Pack(detail)
    status = status_pb2.Status(code=code.value[0], message="what happened", details=packed)

    def answer(_: Any, context: grpc.ServicerContext) -> Any:
        context.abort_with_status(rpc_status.to_status(status))

    return answer


def info(reason: str, domain: str = errors.DOMAIN, **metadata: str) -> ProtoMessage:
    found: ProtoMessage = error_details_pb2.ErrorInfo(
        reason=reason, domain=domain, metadata=metadata
    )
    return found


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_maps_to_a_class_of_its_own(reason: str) -> None:
    kind = errors.BY_REASON[reason]
    assert kind.reason == reason
    assert kind is not errors.ContextEngineError
    assert kind.__doc__


def test_no_class_stands_for_a_reason_that_does_not_exist() -> None:
    assert sorted(errors.BY_REASON) == sorted(REASONS)


@pytest.mark.parametrize("prefix", ["", "ERROR_REASON_"])
def test_details_reach_the_caller(prefix: str, server: Server, run: Callable[..., Any]) -> None:
    bad = error_details_pb2.BadRequest()
    bad.field_violations.add(field="session.agent_id", description="is required")
    server.answers[GET_STATUS.path] = failing(
        grpc.StatusCode.INVALID_ARGUMENT,
        info(f"{prefix}INVALID_FIELD", limit="256"),
        bad,
        error_details_pb2.RetryInfo(retry_delay=Duration(seconds=2, nanos=500_000_000)),
    )
    with pytest.raises(errors.InvalidField, match="INVALID_FIELD: what happened") as caught:
        run(lambda client: client.get_status(REF))
    error = caught.value
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
    assert error.message == "what happened"
    assert error.violations == (errors.Violation("session.agent_id", "is required"),)
    assert error.metadata == {"limit": "256"}
    assert error.retry_after == 2.5


def test_a_reason_of_a_newer_server_is_kept(server: Server, run: Callable[..., Any]) -> None:
    server.answers[GET_STATUS.path] = failing(grpc.StatusCode.ABORTED, info("BRAND_NEW"))
    with pytest.raises(errors.ContextEngineError) as caught:
        run(lambda client: client.get_status(REF))
    assert type(caught.value) is errors.ContextEngineError
    assert caught.value.reason == "BRAND_NEW"


def test_reasons_of_others_are_not_ours(server: Server, run: Callable[..., Any]) -> None:
    server.answers[GET_STATUS.path] = failing(
        grpc.StatusCode.PERMISSION_DENIED, info("SESSION_NOT_FOUND", domain="proxy.example")
    )
    with pytest.raises(errors.PermissionDenied) as caught:
        run(lambda client: client.get_status(REF))
    assert caught.value.reason == ""
    assert caught.value.metadata == {}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.UNAUTHENTICATED, errors.Unauthenticated),
        (grpc.StatusCode.DEADLINE_EXCEEDED, errors.DeadlinePassed),
        (grpc.StatusCode.INTERNAL, errors.ContextEngineError),
    ],
)
def test_errors_without_details_go_by_their_status(
    code: grpc.StatusCode, kind: type, server: Server, run: Callable[..., Any]
) -> None:
    server.answers[GET_STATUS.path] = lambda _, context: context.abort(code, "bare")
    with pytest.raises(errors.ContextEngineError) as caught:
        run(lambda client: client.get_status(REF))
    assert type(caught.value) is kind
    assert (caught.value.code, caught.value.reason, caught.value.message) == (code, "", "bare")


def test_garbled_details_do_not_hide_the_error(server: Server, run: Callable[..., Any]) -> None:
    def answer(_: Any, context: grpc.ServicerContext) -> Any:
        other = status_pb2.Status(code=grpc.StatusCode.NOT_FOUND.value[0], message="another error")
        context.set_trailing_metadata((("grpc-status-details-bin", other.SerializeToString()),))
        context.abort(grpc.StatusCode.INTERNAL, "the error")

    server.answers[GET_STATUS.path] = answer
    with pytest.raises(errors.ContextEngineError, match="INTERNAL: the error"):
        run(lambda client: client.get_status(REF))


def test_who_refuses_a_token_or_does_not_answer_is_away_for_every_session() -> None:
    away = {
        code
        for code in grpc.StatusCode
        if errors.is_away(errors.ContextEngineError("x", code=code))
    }
    assert away == {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
    }
