"""What exactly is answered to bad requests, rpc by rpc."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from google.protobuf.message import Message

from contextengine import types as t
from contextengine.messages import parts_of, user
from tests.integration.bad_input.requests import GOOD
from tests.integration.harness import ref

MAX = 2**63 - 1
LONG_ID = "x" * 257
S = ref("s1")
"""A session with messages `m1` to `m3`, at revision 1."""


@dataclass(frozen=True)
class Case:
    """One bad request, and its answer: INVALID_ARGUMENT and INVALID_FIELD unless said otherwise."""

    what: str
    requests: Sequence[Message]
    fields: Sequence[str] = ()
    code: str = "INVALID_ARGUMENT"
    reason: str = "INVALID_FIELD"
    metadata: dict[str, str] = field(default_factory=dict)


def bad(what: str, request: Message, *fields: str) -> Case:
    return Case(what, [request], fields)


def contradictory(what: str, request: Message, *fields: str) -> Case:
    return Case(what, [request], fields, reason="CONTRADICTORY_FIELDS")


def impossible(what: str, request: Message, *fields: str) -> Case:
    return Case(what, [request], fields, reason="BUDGET_IMPOSSIBLE")


def absent(request: Message) -> Case:
    return Case("no such session", [request], (), "NOT_FOUND", "SESSION_NOT_FOUND")


def bad_messages(path: str, make: Callable[[t.Message], Message]) -> list[Case]:
    """What is wrong with a message is found wherever messages are written."""
    call, answer = (
        t.Part(tool_call=t.ToolCallPart(name="look")),
        t.Part(tool_result=t.ToolResultPart()),
    )
    nameless = t.Part(tool_call=t.ToolCallPart(call_id="c1"))
    inner = t.Part(
        tool_result=t.ToolResultPart(call_id="c1", parts=[t.Part(file=t.FilePart(size_bytes=-1))])
    )
    timed = user("x")
    timed.timestamp.seconds = MAX
    fine = user("x")
    fine.timestamp.nanos = 1_000_000_000
    native = user("x")
    native.native.format = "x" * 65
    wrong = {
        "role": t.Message(),
        "custom_role": t.Message(role=t.ROLE_CUSTOM),
        "id": user("x", id=LONG_ID),
        "name": user("x", name=LONG_ID),
        "idempotency_key": t.Message(role=t.ROLE_USER, idempotency_key=LONG_ID),
        "id ": user("x", id="a\0b"),
        "name ": user("x", name="\0"),
        "idempotency_key ": t.Message(role=t.ROLE_USER, idempotency_key="a\0"),
        "timestamp": timed,
        "native.format": native,
        "parts": t.Message(role=t.ROLE_USER, parts=parts_of(["x"] * 10_001)),
        "parts[1].tool_call.call_id": t.Message(
            role=t.ROLE_ASSISTANT, parts=[*parts_of("x"), call]
        ),
        "parts[0].tool_call.name": t.Message(role=t.ROLE_ASSISTANT, parts=[nameless]),
        "parts[0].tool_result.call_id": t.Message(role=t.ROLE_TOOL, parts=[answer]),
        "parts[0].tool_result.parts[0].file.size_bytes": t.Message(role=t.ROLE_TOOL, parts=[inner]),
        "parts[0].file.size_bytes": t.Message(
            role=t.ROLE_USER, parts=[t.Part(file=t.FilePart(size_bytes=MAX))]
        ),
        "parts[0].image.width": t.Message(
            role=t.ROLE_USER, parts=[t.Part(image=t.ImagePart(width=-1, height=5))]
        ),
    }
    cases = [bad(name, make(message), f"{path}.{name.strip()}") for name, message in wrong.items()]
    return [*cases, bad("nanoseconds", make(fine), f"{path}.timestamp")]


def bad_refs(path: str, make: Callable[[t.SessionRef], Message]) -> list[Case]:
    """What is wrong with a session's name is found wherever a session is named."""
    return [
        bad("no agent", make(ref("s1", agent="")), f"{path}.agent_id"),
        bad("no session", make(ref("")), f"{path}.session_id"),
        bad("a long agent", make(ref("s1", agent=LONG_ID)), f"{path}.agent_id"),
        bad("a long session", make(ref(LONG_ID)), f"{path}.session_id"),
        bad("a long key", make(ref("s1", key=LONG_ID)), f"{path}.session_key"),
        bad("a long name in few characters", make(ref("ü" * 129)), f"{path}.session_id"),
        bad("NUL in the agent", make(ref("s1", agent="a\x00b")), f"{path}.agent_id"),
        bad("NUL in the session", make(ref("s\x001")), f"{path}.session_id"),
        bad("NUL in the key", make(ref("s1", key="\x00")), f"{path}.session_key"),
        bad("a blank agent", make(ref("s1", agent=" ")), f"{path}.agent_id"),
        bad("a blank session", make(ref(" \t")), f"{path}.session_id"),
        bad("a blank key", make(ref("s1", key="\u00a0")), f"{path}.session_key"),
    ]


def bad_budgets(make: Callable[[t.Budget], Message]) -> list[Case]:
    """What is wrong with a budget is found wherever one is given."""

    def window(**parts: int) -> Message:
        return make(t.Budget(window=t.WindowBudget(**parts)))  # type: ignore[arg-type]

    counts = (
        "window",
        "system_prompt_tokens",
        "tool_tokens",
        "output_reserve",
        "safety_margin",
        "rot_buffer",
    )
    tools = t.Budget(window=t.WindowBudget(tool_tokens=1, tools=[t.ToolDefinition(name="look")]))
    return [
        *(
            bad(f"{n} is {v}", window(**{n: v}), f"budget.window.{n}")
            for n in counts
            for v in (-1, MAX)
        ),
        bad("less than no tokens", make(t.Budget(message_tokens=-1)), "budget.message_tokens"),
        bad(
            "more tokens than there are",
            make(t.Budget(message_tokens=MAX)),
            "budget.message_tokens",
        ),
        bad("no window", window(window=0), "budget.window.window"),
        impossible("no tokens", make(t.Budget(message_tokens=0)), "budget.message_tokens"),
        impossible(
            "a reserve as large as the window", window(window=9, output_reserve=9), "budget.window"
        ),
        impossible(
            "parts above the window", window(window=9, system_prompt_tokens=10), "budget.window"
        ),
        contradictory(
            "counted and given", make(tools), "budget.window.tool_tokens", "budget.window.tools"
        ),
    ]


def bad_usage(make: Callable[[t.Usage], Message]) -> list[Case]:
    """What is wrong with billed usage."""
    names = [f.name for f in t.Usage.DESCRIPTOR.fields]
    return [
        bad(f"{name} is {value}", make(t.Usage(**{name: value})), f"usage.{name}")
        for name in names
        for value in (-1, MAX, -MAX - 1)
    ]


def long_id(name: str, kind: Callable[..., Message], **more: object) -> Case:
    return bad(f"a long {name}", kind(**{name: LONG_ID}, **more), name)


def of(rpc: str) -> Message:
    """The good request."""
    return GOOD[rpc](S)[0]


def refs_of(rpc: str, path: str = "session") -> list[Case]:
    """The good request with bad names of its session."""

    def make(named: t.SessionRef) -> Message:
        request = of(rpc)
        getattr(request, path).CopyFrom(named)
        return request

    return bad_refs(path, make)
