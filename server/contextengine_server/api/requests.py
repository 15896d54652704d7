"""Wire to domain: what a request says besides its messages, checked and counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message

from contextengine_proto.v1 import assemble_pb2, budget_pb2, host_pb2, lifecycle_pb2, message_pb2
from contextengine_server.api.messages import request_id
from contextengine_server.commands.turn.bootstrap import HostFacts
from contextengine_server.context.budget import ModelTokens
from contextengine_server.errors import ContradictoryFields, InvalidField
from contextengine_server.memory.prompt import NO_MEMORY, MemoryPrompt, MemorySectionText
from contextengine_server.memory.tool import NAME as MEMORY_TOOL
from contextengine_server.session.assembly.assembly import Prompt
from contextengine_server.session.assembly.budget import SYSTEM, TOOLS, BudgetSpec
from contextengine_server.session.assembly.preamble import PreambleSections, preamble_of
from contextengine_server.session.assembly.whereabouts import Whereabouts
from contextengine_server.session.model import Report, Sent
from contextengine_server.session.receipt import Request, request_of
from contextengine_server.session.rehydration.workspace import WorkspaceFile
from contextengine_server.session.usage.escalation import stopped_for_length
from contextengine_server.telemetry.tracing import Trace
from contextengine_server.tokens import MESSAGE_TOKENS
from contextengine_server.wire.checks import check_parts
from contextengine_server.wire.message import texts_of
from contextengine_server.wire.overflow import limit_in

MAX_SECTIONS = 32
MAX_SECTION_BYTES = 16_384
"""Of all sections of memory: they are paid for in every call."""
MAX_TOKENS = 2**53
"""More tokens than any window: a count above is a mistake."""

MAX_HOST_BYTES = 64 * 1024
"""A few names and a path: what is longer is no introduction."""

MAX_TOLD_CHARS = 200
"""Of what a host says of itself, in a trace: it says words."""

MAX_OBJECTIVE_BYTES = 16 * 1024
"""An objective is a few sentences: it is repeated with every list."""

MAX_FILES = 64
"""Of a workspace: those that say how to work in it."""

MAX_PATH_BYTES = 1_024
"""Of a file's path."""

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


def preamble_in(preamble: host_pb2.Preamble) -> str:
    """What is put before the user's message of this turn."""
    named = {field.name: getattr(preamble, field.name) for field in preamble.DESCRIPTOR.fields}
    return preamble_of(PreambleSections(**named))


def memory_in(request: assemble_pb2.AssembleRequest) -> MemoryPrompt:
    """What is said of memory: sections of the host's, and the tools that the model may call."""
    sections = request.memory_sections
    if len(sections) > MAX_SECTIONS:
        raise InvalidField(
            "memory_sections", f"has {len(sections)} sections, at most {MAX_SECTIONS} are taken"
        )
    size = sum(len(section.SerializeToString()) for section in sections)
    if size > MAX_SECTION_BYTES:
        raise InvalidField(
            "memory_sections",
            f"has {size} bytes, at most {MAX_SECTION_BYTES} are taken: give what matters for this"
            " conversation",
        )
    tools = frozenset(request.available_tools or (tool.name for tool in request.tools))
    given = tuple(
        MemorySectionText(one.text, one.title, one.source, one.citation)
        for one in sections
        if one.text.strip()
    )
    citations = request_id(request.citations_mode, "citations_mode")
    return MemoryPrompt(given, tools, citations) if given or MEMORY_TOOL in tools else NO_MEMORY


def whereabouts_in(request: assemble_pb2.AssembleRequest) -> Whereabouts:
    """What the host says of where the session is held."""
    return Whereabouts(
        request_id(request.channel_type, "channel_type"), workspace_in(request.workspace_files)
    )


def workspace_in(files: Sequence[host_pb2.WorkspaceFile]) -> tuple[WorkspaceFile, ...]:
    """The files of the workspace that the host gives."""
    if len(files) > MAX_FILES:
        raise InvalidField(
            "workspace_files", f"has {len(files)} files, at most {MAX_FILES} are taken"
        )
    for at, file in enumerate(files):
        if not file.path.strip():
            raise InvalidField(f"workspace_files[{at}].path", "is required: the file's path")
        size = len(file.path.encode())
        if size > MAX_PATH_BYTES:
            raise InvalidField(
                f"workspace_files[{at}].path",
                f"has {size} bytes, at most {MAX_PATH_BYTES} are taken",
            )
    return tuple(WorkspaceFile(file.path, file.text) for file in files)


def objective_in(objective: str) -> str:
    """What a subagent is to keep in sight, checked."""
    size = len(objective.encode())
    if size > MAX_OBJECTIVE_BYTES:
        raise InvalidField(
            "objective",
            f"has {size} bytes, at most {MAX_OBJECTIVE_BYTES} are taken: say the rest in a message",
        )
    return objective


def tell_host(trace: Trace, request: assemble_pb2.AssembleRequest) -> None:
    """What the host says of its runtime and of the provider's cache, in the trace."""
    if request.HasField("runtime_settings"):
        settings = request.runtime_settings
        trace.set("contextengine.host", settings.host[:MAX_TOLD_CHARS])
        trace.set("contextengine.host.mode", settings.mode[:MAX_TOLD_CHARS])
        trace.set("contextengine.host.harness", settings.harness_id[:MAX_TOLD_CHARS])
        trace.set("contextengine.host.fallback_reason", settings.fallback_reason[:MAX_TOLD_CHARS])
        trace.set("contextengine.host.degraded_reason", settings.degraded_reason[:MAX_TOLD_CHARS])
    if request.HasField("prompt_cache"):
        cache = request.prompt_cache
        changes = ",".join(change.code for change in cache.changes)
        trace.set("contextengine.cache.retention", cache.retention[:MAX_TOLD_CHARS])
        trace.set("contextengine.cache.changes", changes[:MAX_TOLD_CHARS])
        trace.set("contextengine.cache.broke", cache.broke)


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
    if budget.HasField("other_tokens"):
        if kind != "message_tokens":
            raise ContradictoryFields(
                ["budget.window", "budget.other_tokens"],
                "a window says in its parts what stands beside the messages",
            )
        return BudgetSpec(
            message_tokens=not_negative(budget.message_tokens, "budget.message_tokens", least=1),
            system_prompt=not_negative(budget.other_tokens, "budget.other_tokens"),
            named=SYSTEM | TOOLS,
            strict_prompt=budget.strict_prompt,
        )
    if kind == "message_tokens":
        return BudgetSpec(
            message_tokens=not_negative(budget.message_tokens, "budget.message_tokens", least=1),
            tool_texts=tool_texts(tools) if tools else (),
            tools_sent=True,
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
        given["tools_sent"] = not window.tools
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
    stop_reason: str = "",
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
        cache_write_1h_tokens=usage.cache_write_1h_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cost_micro_usd=usage.cost_micro_usd,
        total_tokens=usage.total_tokens,
        billed=True,
        sent=sent,
        other=other,
        ran=ran,
        stopped_for_length=stopped_for_length(stop_reason),
        overflow_limit=limit,
    )


def stop_reason_in(messages: Sequence[message_pb2.Message]) -> str:
    """Why the model stopped, as the newest message of it says."""
    for message in reversed(messages):
        if message.role == message_pb2.ROLE_ASSISTANT:
            return message.stop_reason
    return ""


def overflow_limit(overflow: lifecycle_pb2.ReportUsageRequest.Overflow) -> int:
    """The limit that the provider named: as a number, else as its text says."""
    not_negative(overflow.observed_tokens, "overflow.observed_tokens")
    if overflow.HasField("limit_tokens"):
        return not_negative(overflow.limit_tokens, "overflow.limit_tokens")
    return limit_in(overflow.text)
