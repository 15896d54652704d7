"""Sessions to replay: the real one, and made up ones."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from contextengine.formats import read_transcript
from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import Entry
from contextengine_server.tokens import TokenCounter
from contextengine_server.wire.message import read
from contextengine_server.wire.slots import WireShaper

COUNT = cache(TokenCounter().count_text)
SHAPER = WireShaper(COUNT)
REVISIONS = 100
"""Revisions between two messages: compactions have theirs between them."""
CODING = "tests/data/coding_session.pi.jsonl"


def entry_of(sequence: int, message: pb.Message) -> Entry:
    """A message as the server takes it in."""
    message.id = message.id or f"m{sequence}"
    taken = read(message, "message")
    tokens = taken.fixed_tokens + sum(map(COUNT, taken.texts))
    return Entry(
        sequence,
        taken.id,
        taken.traits,
        tokens,
        taken.hash,
        taken.body,
        REVISIONS * sequence,
        taken.time_ms,
    )


@cache
def real_entries() -> list[Entry]:
    """The coding session."""
    [transcript] = read_transcript(CODING)
    return [
        entry_of(sequence, pb.Message.FromString(message.SerializeToString()))
        for sequence, message in enumerate(transcript.messages, 1)
    ]


@cache
def _text(words: int) -> str:
    return "word " * words


Turn = tuple[int, list[tuple[int, int]], int]
"""The words of a request, of each call's message and its result, and of the reply."""

TURNS: st.SearchStrategy[list[Turn]] = st.lists(
    st.tuples(
        st.sampled_from([3, 30, 300, 1_500]),
        st.lists(
            st.tuples(st.sampled_from([3, 60]), st.sampled_from([5, 80, 600, 2_500])), max_size=12
        ),
        st.sampled_from([10, 200]),
    ),
    min_size=1,
    max_size=12,
)
"""Sessions of requests, each with replies that call tools: of very different sizes."""


def entries_of(turns: list[Turn]) -> list[Entry]:
    """The messages of these turns."""
    entries: list[Entry] = []

    def add(message: pb.Message) -> None:
        entries.append(entry_of(len(entries) + 1, message))

    for asked, calls, replied in turns:
        add(_said(pb.ROLE_USER, asked))
        for number, (said, answered) in enumerate(calls):
            call = f"c{len(entries)}-{number}"
            message = _said(pb.ROLE_ASSISTANT, said)
            message.parts.add().tool_call.MergeFrom(pb.ToolCallPart(call_id=call, name="read"))
            add(message)
            part = pb.ToolResultPart(call_id=call)
            part.parts.add().text.text = _text(answered)
            answer = pb.Message(role=pb.ROLE_TOOL)
            answer.parts.add().tool_result.MergeFrom(part)
            add(answer)
        add(_said(pb.ROLE_ASSISTANT, replied))
    return entries


def _said(role: pb.Role, words: int) -> pb.Message:
    message = pb.Message(role=role)
    message.parts.add().text.text = _text(words)
    return message
