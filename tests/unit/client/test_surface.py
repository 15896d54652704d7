"""Every rpc and every field of a request is reachable, typed and the same in both clients."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

import pytest

import contextengine
from contextengine import AsyncClient, AsyncSession, Client, Session, aio, client, types
from contextengine.calls import CALLS, Call
from contextengine_proto.v1 import (
    context_engine_pb2,
    engines_pb2,
    projection_pb2,
    recall_pb2,
    runtime_pb2,
    sessions_pb2,
)

SERVICES = [
    service
    for module in (
        context_engine_pb2,
        engines_pb2,
        projection_pb2,
        recall_pb2,
        runtime_pb2,
        sessions_pb2,
    )
    for service in module.DESCRIPTOR.services_by_name.values()
]
METHODS = [method for service in SERVICES for method in service.methods]


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip(
        "_"
    )


def method_of(module: Any, call: Call[Any, Any]) -> Callable[..., Any]:
    prefix = "Async" if module is aio else ""
    owner = prefix + ("Client" if call.service == "ContextEngine" else call.service)
    name = "import_session" if call.method == "Import" else snake(call.method)
    found: Callable[..., Any] = getattr(getattr(module, owner), name)
    return found


def arguments(method: Callable[..., Any]) -> set[str]:
    """The names of all arguments, those of the TypedDict behind ** included."""
    names = set()
    for name, parameter in inspect.signature(method).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            hint = typing.get_type_hints(method)[name]
            names |= set(typing.get_type_hints(typing.get_args(hint)[0]))
        elif name != "self":
            names.add(name)
    return names


def test_every_rpc_of_the_protos_is_a_call_with_its_types() -> None:
    wanted = {
        f"{method.containing_service.name}.{method.name}": (
            method.input_type.full_name,
            method.output_type.full_name,
        )
        for method in METHODS
    }
    assert {
        c.name: (c.request.DESCRIPTOR.full_name, c.response.DESCRIPTOR.full_name) for c in CALLS
    } == wanted


@pytest.mark.parametrize("module", [client, aio], ids=["sync", "async"])
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_every_field_is_an_argument_and_nothing_else_is(module: Any, call: Call[Any, Any]) -> None:
    fields = set(call.request.DESCRIPTOR.fields_by_name)
    if call.method == "Import":
        fields = set(types.ImportRequest.Header.DESCRIPTOR.fields_by_name) | {"messages"}
    elif call.method == "Attach":
        fields = {"requests"}
    assert arguments(method_of(module, call)) == fields | {"timeout"}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_both_clients_take_the_same(call: Call[Any, Any]) -> None:
    blocking, awaited = method_of(client, call), method_of(aio, call)
    streams = {"Sessions.Export", "Sessions.Watch", "Runtime.Attach"}
    assert inspect.iscoroutinefunction(awaited) == (call.name not in streams)
    if call.name != "Runtime.Attach":
        assert inspect.signature(blocking).parameters == inspect.signature(awaited).parameters


HANDLE = [
    "bootstrap",
    "ingest",
    "ingest_batch",
    "assemble",
    "after_turn",
    "compact",
    "record_rewind",
    "record_compaction",
    "record_rewind_to",
    "record_compaction_before",
    "should_compact",
    "commit_compaction",
    "maintain",
    "list_tools",
    "call_tool",
    "prepare_subagent",
    "rollback_subagent",
    "end_as_subagent",
    "record_native_compaction",
    "report_usage",
    "update_model",
    "status",
    "reset",
    "end",
    "dispose",
    "export",
    "delete",
    "watch",
]


@pytest.mark.parametrize("name", HANDLE)
def test_both_session_handles_offer_the_same(name: str) -> None:
    blocking, awaited = getattr(Session, name), getattr(AsyncSession, name)
    assert inspect.signature(blocking).parameters == inspect.signature(awaited).parameters
    assert blocking.__doc__ == awaited.__doc__


def test_a_session_handle_leaves_no_field_of_assemble_out() -> None:
    held = {"session", "known_context_hash", "known_epoch"}
    fields = set(types.AssembleRequest.DESCRIPTOR.fields_by_name)
    assert arguments(Session.assemble) == fields - held | {
        "delta",
        "timeout",
        "fallback",
        "host_messages",
    }


@pytest.mark.parametrize("kind", [Client, AsyncClient, Session, AsyncSession])
def test_everything_public_is_documented(kind: type) -> None:
    for name, member in inspect.getmembers(kind):
        if not name.startswith("_") and (callable(member) or isinstance(member, property)):
            assert member.__doc__, f"{kind.__name__}.{name}"


def test_the_package_says_what_it_offers() -> None:
    assert all(hasattr(contextengine, name) for name in contextengine.__all__)
