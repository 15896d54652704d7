"""Random sessions: all roles and kinds of parts, calls answered in time, late, twice, by the wrong
id or never, pins, rewinds.

A session is drawn as a list of small events, so that a failing one shrinks to few and small ones;
`messages_of` plays them. Texts say how many tokens they have (`[1200] …`), so that a message of
20,000 tokens takes few bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
from hypothesis import strategies as st

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.testing.oracle.pairs import ViewRow

IDS = ("call_a", "call_b", "call_c")
"""Few, so that they are reused."""

KINDS = (
    "user", "user", "assistant", "calls", "calls", "calls", "result", "result", "result", "result",
    "results", "results",
    "carrier", "talking carrier", "noticing carrier",
    "reasoning", "reasoning", "reasoned calls", "instructions",
    "empty", "custom", "media",
    "unknown part", "unknown role", "heartbeat", "provider tool", "calls and results",
    "results and calls", "user calls",
    "rewind",
)  # fmt: skip


class RandomEvent(msgspec.Struct, frozen=True):
    """What happens next."""

    kind: str
    choice: int
    """Which ids, roles or seals; what it chooses depends on the kind."""
    tokens: int
    pinned: bool = False


@dataclass
class RandomSession:
    """The rows that a played session leaves in the view."""

    rows: list[ViewRow] = field(default_factory=list)


sizes = st.sampled_from((1, 3, 10, 40, 150, 600, 2_500, 20_000))

events = st.builds(
    RandomEvent,
    kind=st.sampled_from(KINDS),
    choice=st.integers(0, 11),
    tokens=sizes,
    pinned=st.sampled_from((False,) * 15 + (True,)),
)

leading = st.lists(
    st.builds(
        RandomEvent,
        kind=st.just("instructions"),
        choice=st.integers(0, 1),
        tokens=sizes,
        pinned=st.just(False),
    ),
    max_size=2,
)


@st.composite
def sessions(draw: st.DrawFn, max_events: int = 40) -> RandomSession:
    """A session with up to so many events."""
    played = [*draw(leading), *draw(st.lists(events, max_size=max_events))]
    return RandomSession(messages_of(played))


def messages_of(played: list[RandomEvent]) -> list[ViewRow]:
    """The rows that stay in the view once the events were played."""
    rows: list[ViewRow] = []
    sequence = 0
    for event in played:
        if event.kind == "rewind":
            del rows[len(rows) - min(len(rows), event.choice // 2) :]
            continue
        sequence += 1
        message = _message(event, sequence, _waiting([row.message for row in rows]))
        rows.append(ViewRow(sequence, message, created=2 * sequence))
    return rows


def _waiting(messages: list[pb.Message]) -> list[str]:
    """The ids of calls that have no result yet, about: enough to choose well."""
    waiting: list[str] = []
    for message in messages:
        for part in message.parts:
            if part.WhichOneof("kind") == "tool_call":
                waiting.append(part.tool_call.call_id)
            elif part.tool_result.call_id in waiting:
                waiting.remove(part.tool_result.call_id)
    return waiting


def _message(event: RandomEvent, sequence: int, waiting: list[str]) -> pb.Message:
    message = pb.Message(id=f"m{sequence}" if event.choice % 4 else "", role=_role(event))
    if event.pinned:
        message.labels["pinned"] = ("true", "", "yes", "false")[event.choice % 4]
    if event.kind in ("custom", "unknown role"):
        message.custom_role = "narrator" if event.kind == "custom" else ""
    if event.kind == "heartbeat":
        message.is_heartbeat = True
    if event.choice % 5 == 0:
        message.name = "someone"
    if event.choice % 3 == 0:
        message.native.format, message.native.json = "test", b'{"n": %d}' % sequence
        message.timestamp.seconds = 1_700_000_000 + 100 * sequence
        message.usage.input_tokens = event.tokens
    message.parts.extend(_parts(event, sequence, waiting))
    return message


def _role(event: RandomEvent) -> pb.Role:
    fixed = {
        "user": pb.ROLE_USER, "heartbeat": pb.ROLE_USER, "carrier": pb.ROLE_USER,
        "talking carrier": pb.ROLE_USER, "noticing carrier": pb.ROLE_USER,
        "user calls": pb.ROLE_USER, "media": pb.ROLE_USER, "result": pb.ROLE_TOOL,
        "results": pb.ROLE_TOOL,
        "custom": pb.ROLE_CUSTOM,
    }  # fmt: skip
    if event.kind == "instructions":
        return (pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER)[event.choice % 2]
    if event.kind == "unknown role":
        return pb.Role.Value("ROLE_CUSTOM") + 40  # type: ignore[return-value]
    if event.kind == "empty":
        return (pb.ROLE_USER, pb.ROLE_ASSISTANT, pb.ROLE_TOOL)[event.choice % 3]
    return fixed.get(event.kind, pb.ROLE_ASSISTANT)


def text(tokens: int, label: str) -> pb.Part:
    """A text part of about so many tokens."""
    return pb.Part(text=pb.TextPart(text=f"[{tokens}] {label}"))


def call(call_id: str, label: str = "") -> pb.Part:
    """A call of a tool."""
    return pb.Part(
        tool_call=pb.ToolCallPart(
            call_id=call_id, name="look", arguments_json=b'{"at": "%s"}' % label.encode()
        )
    )


def result(call_id: str, tokens: int, label: str) -> pb.Part:
    """A result of a call."""
    return pb.Part(
        tool_result=pb.ToolResultPart(call_id=call_id, name="look", parts=[text(tokens, label)])
    )


def reasoning(choice: int, tokens: int, label: str) -> pb.Part:
    """Reasoning: signed, redacted or neither."""
    part = pb.ReasoningPart(text=f"[{tokens}] {label}")
    if choice % 3 == 0:
        part.signature = b"signed " + label.encode()
    elif choice % 3 == 1:
        part.redacted_data = b"sealed " + label.encode()
    return pb.Part(reasoning=part)


def _parts(event: RandomEvent, sequence: int, waiting: list[str]) -> list[pb.Part]:
    choice, tokens, label = event.choice, event.tokens, f"n{sequence}"
    some = [
        IDS[(choice + at) % 2 if choice > 8 else (choice + at) % 3] for at in range(choice % 3 + 1)
    ]
    words = text(tokens, label)
    calls = [call(call_id, f"{label}.{at}") for at, call_id in enumerate(some)]
    match event.kind:
        case "calls":
            return [*([words] if choice % 2 else []), *calls]
        case "reasoned calls":
            return [reasoning(choice, tokens, label), *([words] if choice % 2 else []), *calls]
        case "reasoning":
            return [reasoning(choice, tokens, label)]
        case "result":
            return [result(_answered(choice, waiting), tokens, label)]
        case "results" | "carrier":
            ids = waiting[-(choice % 3) - 1 :] or [IDS[choice % 3]]
            if choice % 4 == 3:
                ids = [*ids, ids[0], IDS[choice % 3]]
            return [result(call_id, tokens, f"{label}.{at}") for at, call_id in enumerate(ids)]
        case "talking carrier":
            ids = waiting[-(choice % 3) - 1 :] or [IDS[choice % 3]]
            carried = [result(call_id, 5, f"{label}.{at}") for at, call_id in enumerate(ids)]
            return [words, *carried] if choice % 2 else [*carried, words]
        case "noticing carrier":
            ids = waiting[-(choice % 3) - 1 :] or [IDS[choice % 3]]
            carried = [result(id, tokens, f"{label}.{at}") for at, id in enumerate(ids)]
            told = f"<system-reminder>[5] {label}</system-reminder>"
            return [*carried, pb.Part(text=pb.TextPart(text=told))]
        case "empty":
            return []
        case "media":
            image = pb.Part(
                image=pb.ImagePart(
                    uri="https://example.org/a.png", width=64 * (choice + 1), height=64
                )
            )
            file = pb.Part(
                file=pb.FilePart(data=b"x" * 10 * choice, mime_type="text/plain", name="a.txt")
            )
            opaque = pb.Part(
                opaque=pb.OpaquePart(format="vendor", type="thing", json=b"[%d]" % tokens)
            )
            return [words, image, file, opaque][choice % 4 :]
        case "unknown part":
            # Field 900, length-delimited: a kind that this version does not know.
            return [pb.Part.FromString(b"\xa2\x38\x03new"), words]
        case "provider tool":
            return [calls[0], result(some[0], tokens, label), words]
        case "calls and results":
            return [*calls, result(_answered(choice, waiting), tokens, label)]
        case "results and calls":
            return [result(_answered(choice, waiting), tokens, label), *calls]
        case "user calls":
            return [words, *calls]
    return [words]


def _answered(choice: int, waiting: list[str]) -> str:
    """Mostly a call that waits: the newest, the oldest; sometimes any id."""
    if not waiting or choice % 4 == 3:
        return IDS[choice % 3]
    return waiting[0] if choice % 4 == 2 else waiting[-1]
