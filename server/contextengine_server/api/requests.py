"""Wire to domain: what a request says besides its messages, checked and counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message

from contextengine_proto.v1 import budget_pb2, host_pb2, lifecycle_pb2, message_pb2
from contextengine_server.api.messages import request_id
from contextengine_server.api.overflow import limit_in
from contextengine_server.commands.turn.bootstrap import HostFacts
from contextengine_server.context.budget import ModelTokens
from contextengine_server.errors import ContradictoryFields, InvalidField
from contextengine_server.session.assembly.assembly import Prompt
from contextengine_server.session.assembly.budget import SYSTEM, TOOLS, BudgetSpec
from contextengine_server.session.model import Report, Sent
from contextengine_server.session.receipt import Request, request_of
from contextengine_server.tokens import MESSAGE_TOKENS
from contextengine_server.wire.message import check_parts, texts_of

MAX_TOKENS = 2**53
"""More tokens than any window: a count above is a mistake."""

MAX_HOST_BYTES = 64 * 1024
"""A few names and a path: what is longer is no introduction."""

_PARTS = ("output_reserve", "safety_margin", "rot_buffer")
_USAGE = tuple(field.name for field in message_pb2.Usage.DESCRIPTOR.fields)


def required(value: str, field: str, why: str) -> str:
    """A field that must be given."""
    if not value:
        raise InvalidField(field, f"is required: {why}")
    return request_id(value, field)


def not_negative(value: int, field: str, *, least: int = 0) -> int:
    """A count, checked. `least`: what the refusal names, where 0 is one that is refused later, with
    its own reason."""
    if not 0 <= value <= MAX_TOKENS:
        raise InvalidField(field, f"is {value}: give {least} to {MAX_TOKENS}")
    return value


def optional_tokens(request: Message, field: str) -> ModelTokens | None:
    """A count of the model's tokens that may be left out, checked."""
    if not request.HasField(field):
        return None
    return ModelTokens(not_negative(getattr(request, field), field))


def request_in(request: Any, rpc: str) -> Request | None:
    """The identity of a request that carries no messages: its id, and a digest of all it says."""
    name = request_id(request.request_id)
    if not name:
        return None
    return request_of(name, rpc, (), request.SerializeToString(deterministic=True))


def prompt_of(parts: Sequence[message_pb2.Part]) -> Prompt | None:
    """This turn's prompt as a message."""
    if not parts:
        return None
    check_parts(parts, "prompt")
    texts: list[str] = []
    fixed = MESSAGE_TOKENS + texts_of(parts, texts)
    return Prompt(tuple(texts), fixed)


def tool_texts(tools: Sequence[budget_pb2.ToolDefinition]) -> tuple[str, ...]:
    """What of tool definitions is to be counted."""
    texts: list[str] = []
    for tool in tools:
        texts += (tool.name, tool.description, tool.input_schema_json.decode("utf-8", "replace"))
    return tuple(texts)


def budget_spec(
    budget: budget_pb2.Budget, tools: Sequence[budget_pb2.ToolDefinition] = ()
) -> BudgetSpec:
    """What the request says of its budget."""
    kind = budget.WhichOneof("kind")
    if kind == "message_tokens":
        return BudgetSpec(
            message_tokens=not_negative(budget.message_tokens, "budget.message_tokens", least=1),
            tool_texts=tool_texts(tools) if tools else (),
            named=TOOLS if tools else 0,
            strict_prompt=budget.strict_prompt,
        )
    window = budget.window
    given: dict[str, Any] = {
        "named": _named(window, tools),
        "strict_prompt": budget.strict_prompt,
    }
    for name in _PARTS:
        if window.HasField(name):
            given[name] = not_negative(getattr(window, name), f"budget.window.{name}")
    if window.HasField("tool_tokens"):
        if window.tools:
            raise ContradictoryFields(
                ["budget.window.tool_tokens", "budget.window.tools"],
                "give the tokens or the definitions to count, not both",
            )
        given["tools"] = not_negative(window.tool_tokens, "budget.window.tool_tokens")
    else:
        given["tool_texts"] = tool_texts(window.tools or tools)
    if window.WhichOneof("system_prompt") == "system_prompt_text":
        given["system_texts"] = (window.system_prompt_text,)
    else:
        given["system_prompt"] = not_negative(
            window.system_prompt_tokens, "budget.window.system_prompt_tokens"
        )
    if window.HasField("window"):
        given["window"] = not_negative(window.window, "budget.window.window", least=1)
    return BudgetSpec(**given)


def _named(window: budget_pb2.WindowBudget, tools: Sequence[budget_pb2.ToolDefinition]) -> int:
    """What is said of the prompt outside the messages."""
    system = window.WhichOneof("system_prompt") is not None
    told = window.HasField("tool_tokens") or bool(window.tools or tools)
    return (SYSTEM if system else 0) | (TOOLS if told else 0)


def host_facts(host: host_pb2.HostInfo) -> HostFacts:
    """The host as it introduced itself."""
    encoded = host.SerializeToString(deterministic=True)
    if len(encoded) > MAX_HOST_BYTES:
        raise InvalidField(
            "host",
            f"has {len(encoded)} bytes, at most {MAX_HOST_BYTES} are taken: every session keeps it",
        )
    return HostFacts(encoded, tuple(host.capabilities), host.host_id)


def report_of(
    usage: message_pb2.Usage | None,
    *,
    sent: Sent,
    other: int | None = None,
    ran: str = "",
    overflow: lifecycle_pb2.ReportUsageRequest.Overflow | None = None,
) -> Report:
    """What the provider billed, or refused."""
    limit = 0
    if overflow is not None:
        limit = overflow_limit(overflow)
    if usage is None:
        return Report(overflow_limit=limit)
    for name in _USAGE:
        not_negative(getattr(usage, name), f"usage.{name}")
    return Report(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cost_micro_usd=usage.cost_micro_usd,
        total_tokens=usage.total_tokens,
        billed=True,
        sent=sent,
        other=other,
        ran=ran,
        overflow_limit=limit,
    )


def overflow_limit(overflow: lifecycle_pb2.ReportUsageRequest.Overflow) -> int:
    """The limit that the provider named: as a number, else as its text says."""
    not_negative(overflow.observed_tokens, "overflow.observed_tokens")
    if overflow.HasField("limit_tokens"):
        return not_negative(overflow.limit_tokens, "overflow.limit_tokens")
    return limit_in(overflow.text)
