"""What is said to the servers: conversations made up for the bench, and single calls that are
looked at closely."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import grpc

from contextengine_proto.v1 import (
    assemble_pb2,
    budget_pb2,
    lifecycle_pb2,
    message_pb2,
    recall_pb2,
)

from .house import BenchError

ENGINE = "contextengine.v1.ContextEngine"
SEARCH = "contextengine.v1.Recall/Search"
TRANSCRIPTS = Path(__file__).resolve().parents[1] / "data" / "airline_transcripts.jsonl"
AGENT = "bench"
WIDE = 2_000_000
"""A budget, in tokens, that every session of the bench fits into many times, so that nothing is cut
or compacted."""

_WORDS = (
    "the build fails in module parser because test case expects value from config file line error"
    " path user session token update function returns list when input is empty check result again"
    " please run deploy server request timeout after seconds retry logic order flight cancel refund"
    " policy bag seat"
)


def text(random: Random, size: int) -> str:
    """About `size` bytes of prose, four bytes a token or so."""
    known = _WORDS.split()
    words: list[str] = []
    length = 0
    while length < size:
        words.append(random.choice(known))
        length += len(words[-1]) + 1
    return " ".join(words)


def conversation(count: int, size: int, seed: int = 1) -> Iterator[message_pb2.Message]:
    """`count` messages of about `size` bytes: turns of a user, three tool round trips and an
    answer. Without ids."""
    random = Random(seed)
    for index in range(count):
        place = index % 8
        if place == 0:
            yield said(message_pb2.ROLE_USER, text(random, size))
        elif place == 7:
            yield said(message_pb2.ROLE_ASSISTANT, text(random, size))
        else:
            yield from round_trip(
                random, size, f"call-{index - (place + 1) % 2}", only=(place + 1) % 2
            )


def said(role: message_pb2.Role, content: str) -> message_pb2.Message:
    """A message of one text."""
    message = message_pb2.Message(role=role)
    message.parts.add().text.text = content
    return message


def round_trip(
    random: Random, size: int, call_id: str, only: int | None = None
) -> list[message_pb2.Message]:
    """A step: an assistant's call and the tool's result; or only the first (0) or the second (1) of
    them."""
    call = message_pb2.Message(role=message_pb2.ROLE_ASSISTANT)
    call.parts.add().tool_call.CopyFrom(
        message_pb2.ToolCallPart(
            call_id=call_id,
            name="read_file",
            arguments_json=b'{"path": "%s"}' % text(random, size - 60).encode(),
        )
    )
    result = message_pb2.Message(role=message_pb2.ROLE_TOOL)
    part = result.parts.add().tool_result
    part.call_id, part.name = call_id, "read_file"
    part.parts.add().text.text = text(random, size)
    both = [call, result]
    return both if only is None else [both[only]]


def ref(session: str) -> message_pb2.SessionRef:
    """A session of the bench."""
    return message_pb2.SessionRef(agent_id=AGENT, session_id=session)


def assemble(session: str, tokens: int = WIDE) -> assemble_pb2.AssembleRequest:
    """Asks for a session's context within a budget."""
    return assemble_pb2.AssembleRequest(
        session=ref(session), budget=budget_pb2.Budget(message_tokens=tokens)
    )


def transcripts() -> list[tuple[message_pb2.Role, str]]:
    """What people and the agent say in the example conversations, one after the other."""
    roles = {"user": message_pb2.ROLE_USER, "assistant": message_pb2.ROLE_ASSISTANT}
    return [
        (roles[message["role"]], message["content"])
        for line in TRANSCRIPTS.read_text(encoding="utf-8").splitlines()
        for message in json.loads(line)["messages"]
        if message["role"] in roles and message["content"]
    ]


class Talk:
    """Single calls to the server at an address, each of them checked."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(
            address,
            options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)],
        )

    def close(self) -> None:
        """Ends the connection."""
        self._channel.close()

    def raw(self, method: str, request: bytes, timeout: float = 120) -> bytes:
        """A call of bytes. Raises BenchError where its status is not OK."""
        try:
            call: Any = self._channel.unary_unary(f"/{method}")
            reply: bytes = call(request, timeout=timeout)
        except grpc.RpcError as error:
            raise BenchError(f"{method}: {error}") from error
        return reply

    def assemble(self, request: assemble_pb2.AssembleRequest) -> assemble_pb2.AssembleResponse:
        """Assembles."""
        return assemble_pb2.AssembleResponse.FromString(
            self.raw(f"{ENGINE}/Assemble", request.SerializeToString())
        )

    def fill(
        self, session: str, messages: Sequence[message_pb2.Message], batch: int = 2_000
    ) -> int:
        """Stores messages; answers the session's revision."""
        revision = 0
        for start in range(0, len(messages), batch):
            request = lifecycle_pb2.IngestBatchRequest(
                session=ref(session), messages=messages[start : start + batch]
            )
            reply = self.raw(f"{ENGINE}/IngestBatch", request.SerializeToString())
            revision = lifecycle_pb2.IngestBatchResponse.FromString(reply).revision
        return revision

    def indexed(self, session: str, revision: int) -> None:
        """Waits until all of a session can be found."""
        request = recall_pb2.SearchRequest(
            session=ref(session), query="parser", at_least_revision=revision
        )
        self.raw(SEARCH, request.SerializeToString())

    def status(self, session: str) -> lifecycle_pb2.GetStatusResponse:
        """How a session is."""
        request = lifecycle_pb2.GetStatusRequest(session=ref(session))
        return lifecycle_pb2.GetStatusResponse.FromString(
            self.raw(f"{ENGINE}/GetStatus", request.SerializeToString())
        )

    def let_go(self, session: str) -> None:
        """Has the server forget what it holds of a session in memory."""
        request = lifecycle_pb2.DisposeSessionRequest(session=ref(session))
        self.raw(f"{ENGINE}/DisposeSession", request.SerializeToString())
