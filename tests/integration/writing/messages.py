"""Messages with everything that a message can hold, known to this version or not."""

from __future__ import annotations

from datetime import UTC, datetime

from contextengine import types as t


def everything() -> t.Message:
    """Every field and every kind of part, each with a value that is not its default."""
    message = t.Message(
        id="m-everything",
        role=t.ROLE_ASSISTANT,
        name="bob",
        stop_reason="tool_use",
        labels={"b": "2", "a": "1", "pinned": "false"},
        idempotency_key="turn-7",
        is_heartbeat=True,
        provider="anthropic",
        model="claude-sonnet-4-5",
        api="anthropic-messages",
        usage=t.Usage(
            input_tokens=0,
            output_tokens=2,
            cache_read_tokens=3,
            cache_write_tokens=4,
            cache_write_1h_tokens=5,
            reasoning_tokens=6,
            total_tokens=7,
            cost_micro_usd=8,
        ),
        native=t.Native(
            format="anthropic.messages", json=b'{ "z":1,\n"a" : 2.50, "big":12345678901234567890}'
        ),
        parts=[
            t.Part(reasoning=t.ReasoningPart(text="hm", signature=b"\x00\xffsig", item_id="rs_1")),
            t.Part(reasoning=t.ReasoningPart(redacted_data=b"\x00\x01\x02")),
            t.Part(text=t.TextPart(text="Zeile\n\ttab \u202eRTL \U0001f600 e\u0301")),
            t.Part(text=t.TextPart(text="")),
            t.Part(
                image=t.ImagePart(
                    data=b"\x89PNG\r\n", mime_type="image/png", width=3, height=4, detail="low"
                )
            ),
            t.Part(image=t.ImagePart(uri="https://example.invalid/p.png", mime_type="image/png")),
            t.Part(file=t.FilePart(data=b"%PDF", mime_type="application/pdf", name="a.pdf")),
            t.Part(file=t.FilePart(uri="file-1", size_bytes=123_456)),
            t.Part(
                opaque=t.OpaquePart(format="openai.responses", type="web_search", json=b'{"q":"x"}')
            ),
            t.Part(
                tool_call=t.ToolCallPart(
                    call_id="c1",
                    name="look",
                    arguments_json=b'{"lone":"\\ud800","not":json, \xff',
                    item_id="fc_1",
                    namespace="mcp",
                ),
                thought_signature=b"\xfe\xff",
                provider_metadata_json=b'{"cache_control":{"type":"ephemeral"}}',
            ),
        ],
    )
    message.timestamp.FromDatetime(datetime(2025, 1, 2, 3, 4, 5, 678901, tzinfo=UTC))
    return message


def result() -> t.Message:
    """A tool's answer with parts of every kind that it may have."""
    return t.Message(
        id="m-result",
        role=t.ROLE_TOOL,
        parts=[
            t.Part(
                tool_result=t.ToolResultPart(
                    call_id="c1",
                    name="look",
                    is_error=True,
                    details_json=b'{"exit": 1}',
                    parts=[
                        t.Part(text=t.TextPart(text="found")),
                        t.Part(image=t.ImagePart(data=b"\x89PNG", mime_type="image/png")),
                        t.Part(file=t.FilePart(uri="file-2", name="log")),
                        t.Part(opaque=t.OpaquePart(format="x", type="y", json=b"{}")),
                    ],
                )
            )
        ],
    )


def field(number: int, payload: bytes | int) -> bytes:
    """A field of the wire: bytes as a length-delimited one, a number as a varint."""
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload & (1 << 64) - 1)
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def of_the_future(message_id: str = "m-future") -> bytes:
    """A message as a later version of the contract may write it: fields, part kinds and roles that
    this one lacks."""
    unknown_kind = field(900, b"a part of a kind that is not known")
    text = field(1, field(1, b"known text") + field(901, b"a field of text"))
    future_usage = field(1, 5) + field(77, 6)
    return b"".join(
        (
            field(1, message_id.encode()),
            field(2, 4_242),  # a role
            field(5, unknown_kind),
            field(5, text + field(902, 7)),
            field(5, b""),
            field(8, future_usage),
            field(1_000, b"a field of the message"),
            field(1_001, -1),
        )
    )
