"""Service Runtime: a harness lends its model over a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from contextengine_proto.v1 import message_pb2
from contextengine_proto.v1 import runtime_pb2 as pb
from contextengine_server.api.messages import request_id
from contextengine_server.api.pipeline.call import Call
from contextengine_server.api.requests import not_negative, required
from contextengine_server.errors import InvalidField, MalformedRequest, TooLarge
from contextengine_server.runtime.broker import Harnesses
from contextengine_server.runtime.job_bytes import work_of
from contextengine_server.runtime.streams import Attached, Cancelled, Harness, Receipt, Said
from contextengine_server.store.model_jobs import ModelJob
from contextengine_server.summarize.models.runtime import Completion

PURPOSE = "context-engine.compaction"
"""What every job is for, by the name that OpenClaw gives such calls
(src/agents/embedded-agent-runner/compact.queued.ts)."""

MAX_JOBS = 1_000
"""Jobs that one harness may take at once."""

HEAR_OUT_S = 0.2
"""How long a harness that said something wrong is heard out."""

MAX_MODELS = 100
"""Models that one harness may name."""

_ROLE_USER = message_pb2.ROLE_USER


class RuntimeService:
    """Thin: reads what the harness says, asks the room that knows all harnesses, writes what it is
    to be told."""

    def __init__(self, harnesses: Harnesses) -> None:
        self._harnesses = harnesses

    async def attach(
        self, requests: AsyncIterator[pb.AttachRequest], call: Call
    ) -> AsyncIterator[pb.AttachResponse]:
        """A stream over which the server asks for completions. It lasts until either side ends
        it."""
        try:
            harness = _introduced(await anext(requests, None))
            stream = self._harnesses.attach(call.caller.tenant, harness)
            reader = asyncio.create_task(self._read(requests, stream))
            try:
                yield pb.AttachResponse(welcome=pb.AttachResponse.Welcome(stream_id=stream.id))
                while (said := await self._harnesses.next(stream)) is not None:
                    yield _told(said)
                await reader
            finally:
                self._harnesses.detach(stream)
                reader.cancel()
                await asyncio.gather(reader, return_exceptions=True)
        except InvalidField:
            await _hear_out(requests)
            raise

    async def _read(self, requests: AsyncIterator[pb.AttachRequest], stream: Attached) -> None:
        """Hears the harness out; raises what is wrong with what it says."""
        try:
            async for request in requests:
                await self._hear(request, stream)
                await stream.caught_up()
        finally:
            stream.end()

    async def _hear(self, request: pb.AttachRequest, stream: Attached) -> None:
        kind = request.WhichOneof("kind")
        if kind == "completion":
            said = request.completion
            job, lease = named("completion", said.job_id, said.lease_id)
            await self._harnesses.completed(stream, job, lease, completion_of(said))
        elif kind == "keep_lease":
            job, lease = named("keep_lease", request.keep_lease.job_id, request.keep_lease.lease_id)
            await self._harnesses.kept(stream, job, lease)
        elif kind == "hello":
            raise InvalidField(
                "hello", "came twice: attach with another stream to introduce yourself otherwise"
            )
        else:
            raise InvalidField("kind", "is empty: give a completion or keep_lease")


async def _hear_out(requests: AsyncIterator[pb.AttachRequest]) -> None:
    """Reads on for a moment. gRPC's Python client takes a write that meets the end of its stream
    for an error of its own, and the harness would not learn what was wrong."""
    with suppress(TimeoutError, MalformedRequest, TooLarge):
        async with asyncio.timeout(HEAR_OUT_S):
            async for _ in requests:
                pass


def _introduced(first: pb.AttachRequest | None) -> Harness:
    if first is None:
        raise InvalidField(
            "hello", "is required: the stream ended before the harness introduced itself"
        )
    if first.WhichOneof("kind") != "hello":
        raise InvalidField(
            "hello", "must be the first message of the stream: it introduces the harness"
        )
    return harness_of(first.hello, "hello")


def harness_of(said: pb.AttachRequest.Hello, field: str) -> Harness:
    """A harness as it introduces itself in this field."""
    if len(said.models) > MAX_MODELS:
        raise InvalidField(
            f"{field}.models",
            f"has {len(said.models)} names, at most {MAX_MODELS} are taken: name those for"
            " summaries",
        )
    if not 0 <= said.max_concurrent_jobs <= MAX_JOBS:
        raise InvalidField(
            f"{field}.max_concurrent_jobs", f"is {said.max_concurrent_jobs}: give 0 to {MAX_JOBS}"
        )
    return Harness(
        request_id(said.host_id, f"{field}.host_id"),
        request_id(said.agent_id, f"{field}.agent_id"),
        tuple(
            required(model, f"{field}.models[{index}]", "leave it out to lend the default model")
            for index, model in enumerate(said.models)
        ),
        said.max_concurrent_jobs or 1,
        not_negative(said.max_input_tokens, f"{field}.max_input_tokens"),
    )


def named(kind: str, job_id: str, lease_id: str) -> tuple[str, str]:
    """The names of a job and of its hand-out, checked."""
    return (
        required(job_id, f"{kind}.job_id", "it names the job, as the job itself does"),
        required(
            lease_id, f"{kind}.lease_id", "it names the hand-out of the job, as the job itself does"
        ),
    )


def completion_of(said: pb.AttachRequest.Completion, kind: str = "completion") -> Completion:
    """The result of a job."""
    usage = {
        field.name: not_negative(value, f"{kind}.usage.{field.name}")
        for field, value in said.usage.ListFields()
    }
    # The prompt is billed whether or not a cache held some of it.
    inputs = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
    return Completion(
        said.text,
        sum(usage.get(name, 0) for name in inputs),
        usage.get("output_tokens", 0),
        said.model,
        said.stop_reason,
        said.error,
        said.retryable,
    )


def _told(said: Said) -> pb.AttachResponse:
    match said:
        case ModelJob():
            return pb.AttachResponse(job=job_of(said))
        case Receipt():
            return pb.AttachResponse(receipt=receipt_of(said))
        case Cancelled(job_id, reason):
            return pb.AttachResponse(cancel=pb.AttachResponse.Cancel(job_id=job_id, reason=reason))


def receipt_of(said: Receipt) -> pb.AttachResponse.Receipt:
    """What became of a result."""
    return pb.AttachResponse.Receipt(
        job_id=said.job_id, accepted=not said.reason, reason=said.reason
    )


def job_of(lent: ModelJob) -> pb.AttachResponse.Job:
    """A job as it is handed out."""
    work = work_of(lent)
    job = pb.AttachResponse.Job(
        job_id=lent.id,
        lease_id=lent.lease_id,
        purpose=PURPOSE,
        agent_id=work.agent,
        session_id=work.session,
        system_prompt=work.system,
        messages=[
            message_pb2.Message(
                role=_ROLE_USER,
                parts=[message_pb2.Part(text=message_pb2.TextPart(text=work.user))],
            )
        ],
        max_output_tokens=work.max_output_tokens,
        model=work.model,
    )
    job.lease_expire_time.FromMilliseconds(lent.lease_until_ms)
    return job
