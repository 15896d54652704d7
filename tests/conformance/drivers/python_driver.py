"""The driver of the Python client; see tests/conformance/protocol.md. `--asyncio` drives the
asyncio client instead."""

from __future__ import annotations

import asyncio
import base64
import inspect
import itertools
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from google.protobuf.message import Message as ProtoMessage
from opentelemetry import trace

from contextengine import AsyncClient, Client, errors, formats, new_id, user
from contextengine import types as t
from contextengine.calls import CALLS
from contextengine.deltas import Assembly
from contextengine.fallback import make_up

Json = dict[str, Any]


def written(message: ProtoMessage) -> str:
    return base64.b64encode(message.SerializeToString(deterministic=True)).decode()


def read(kind: type[Any], encoded: str) -> Any:
    return kind.FromString(base64.b64decode(encoded))


RPCS = {
    "reset": "ResetSession",
    "end": "EndSession",
    "dispose": "DisposeSession",
    "status": "GetStatus",
    "prepare_subagent": "PrepareSubagentSpawn",
    "rollback_subagent": "RollbackSubagentSpawn",
    "end_as_subagent": "EndSubagent",
}
"""Methods of the handle that are not named like their rpcs."""
BORNE = {"ingest", "ingest_batch", "after_turn", "report_usage"}


def fields_of(request: ProtoMessage) -> Json:
    """A request as keyword arguments, its session left out."""
    return {field.name: value for field, value in request.ListFields() if field.name != "session"}


def under(name: str, taken: Callable[..., Any], given: Callable[..., Any]) -> tuple[Any, Any]:
    """A format whose request is one list of that name."""
    return lambda request: taken(request[name]), lambda messages: {name: given(messages)}


FORMATS = {
    "openai.chat": under("messages", formats.from_openai, formats.to_openai),
    "openai.responses": under("input", formats.from_responses, formats.to_responses),
    "anthropic.messages": (
        lambda request: formats.from_anthropic(**request),
        formats.to_anthropic,
    ),
    "gemini.content": (
        lambda request: formats.from_gemini(request["contents"], request.get("systemInstruction")),
        formats.to_gemini,
    ),
    "pi": under("messages", formats.from_pi, formats.to_pi),
    "pi.session": under("entries", formats.from_pi, formats.to_pi_entries),
    "ai-sdk": under("messages", formats.from_ai_sdk, formats.to_ai_sdk),
    "langchain": under("messages", formats.from_langchain, formats.to_langchain),
    "pydantic-ai": under("messages", formats.from_pydantic_ai, formats.to_pydantic_ai),
}
"""Reading a request, and writing one again."""


class Driver:
    """Answers one object with another, with either client."""

    def __init__(self, kind: type[Client] | type[AsyncClient]) -> None:
        self.kind = kind
        self.client: Any = None
        self.handles: dict[tuple[str, str], Any] = {}
        self.lending: Any = None
        self.jobs = 0

    async def answer(self, asked: Json) -> Json:
        try:
            result: Json = await getattr(self, "do_" + asked.pop("op"))(**asked)
        except errors.ContextEngineError as error:
            return {"error": told(error)}
        return result

    async def end(self) -> None:
        if self.client is not None:
            await done(self.client.close())

    def handle(self, session: Json | None) -> Any:
        assert session is not None
        key = (session["agent_id"], session["session_id"])
        if key not in self.handles:
            self.handles[key] = self.client.session(agent_id=key[0], session_id=key[1])
        return self.handles[key]

    async def do_connect(self, target: str, settings: Json) -> Json:
        await self.end()
        self.client, self.handles = self.kind(target, **settings), {}
        return {}

    async def do_call(self, rpc: str, request: str) -> Json:
        call = next(call for call in CALLS if call.name == rpc)
        return {
            "response": written(await done(self.client.send(call, read(call.request, request))))
        }

    async def do_together(self, rpc: str, request: str, count: int) -> Json:
        async def one() -> Json:
            if self.kind is AsyncClient:
                return await self.answer({"op": "call", "rpc": rpc, "request": request})
            return await asyncio.to_thread(
                asyncio.run, self.answer({"op": "call", "rpc": rpc, "request": request})
            )

        return {"answers": await asyncio.gather(*(one() for _ in range(count)))}

    async def do_traced(self, traceparent: str, tracestate: str, rpc: str, request: str) -> Json:
        _, trace_id, span_id, flags = traceparent.split("-")
        span = trace.SpanContext(
            int(trace_id, 16),
            int(span_id, 16),
            is_remote=True,
            trace_flags=trace.TraceFlags(int(flags, 16)),
            trace_state=trace.TraceState.from_header([tracestate]),
        )
        with trace.use_span(trace.NonRecordingSpan(span)):
            return await self.do_call(rpc, request)

    async def do_session(
        self, session: Json, method: str, request: str, fallback: bool | None = None
    ) -> Json:
        name = RPCS.get(method, method.title().replace("_", ""))
        asked = fields_of(read(getattr(t, f"{name}Request"), request))
        if method in BORNE:
            asked["fallback"] = fallback
        if method == "record_host_change":
            method, change = "record_rewind", asked.pop("rewind")
            asked["after_sequence"] = change.after_sequence
        if method == "commit_compaction":
            asked.setdefault("accept", False)
        return {"response": written(await done(getattr(self.handle(session), method)(**asked)))}

    async def do_assemble(
        self,
        session: Json,
        request: str,
        delta: bool = True,
        fallback: bool | None = None,
        host_messages: list[str] | None = None,
    ) -> Json:
        asked = fields_of(read(t.AssembleRequest, request))
        if host_messages is not None:
            asked["host_messages"] = [read(t.Message, message) for message in host_messages]
        assembly: Assembly = await done(
            self.handle(session).assemble(delta=delta, fallback=fallback, **asked)
        )
        degraded = assembly.degraded
        return {
            "items": [written(item) for item in assembly.items],
            "response": written(assembly.response),
            "degraded": degraded and {"reason": degraded.reason, "unqueued": degraded.unqueued},
        }

    async def do_project_codex(self, session: Json, request: str) -> Json:
        asked = fields_of(read(t.AssembleRequest, request))
        options = asked.pop("projection")
        return {
            "response": written(await done(self.handle(session).project_codex(options, **asked)))
        }

    async def do_flush(self, session: Json | None = None) -> Json:
        await done(self.client.flush() if session is None else self.handle(session).flush())
        return {}

    async def do_pending(self, session: Json | None = None) -> Json:
        pending = self.client.pending() if session is None else self.handle(session).pending
        return {"pending": pending, "rejected": len(self.client.rejected)}

    async def do_import(self, session: Json, messages: list[str]) -> Json:
        given = [read(t.Message, message) for message in messages]
        return {
            "response": written(
                await done(self.client.sessions.import_session(t.SessionRef(**session), given))
            )
        }

    async def do_export(self, session: Json) -> Json:
        rows = [row async for row in each(self.handle(session).export())]
        return {
            "messages": [written(row.message.message) for row in rows if row.HasField("message")]
        }

    async def do_watch(self, session: Json, resume_position: str, count: int) -> Json:
        stream = self.handle(session).watch(resume_position=resume_position)
        events: list[str] = []
        async for event in each(stream):
            events.append(written(event))
            if len(events) == count:
                break
        stream.cancel()
        return {"events": events}

    async def do_lend(self, hello: str, text: str, delay: float, failures: int) -> Json:
        def begun() -> None:
            self.jobs += 1
            if self.jobs <= failures:
                raise ValueError("not this one")

        async def complete_async(job: object) -> str:
            begun()
            await asyncio.sleep(delay)
            return text

        def complete(job: object) -> str:
            begun()
            time.sleep(delay)
            return text

        self.jobs = 0
        fields = fields_of(read(t.AttachRequest.Hello, hello))
        if self.kind is AsyncClient:
            self.lending = asyncio.ensure_future(self.client.runtime.lend(complete_async, **fields))
        else:
            self.lending = self.client.runtime.lend(complete, **fields)
        return {}

    async def do_lent(self) -> Json:
        if self.kind is Client:
            self.lending.stop()
            self.lending.wait()
        elif not self.lending.cancel():
            await self.lending
        return {"jobs": self.jobs}

    async def do_fallback(
        self, request: str, held: list[str], last: str | None, later: list[str]
    ) -> Json:
        response = make_up(
            read(t.AssembleRequest, request),
            [read(t.Item, item) for item in held],
            None if last is None else read(t.AssembleResponse, last),
            [read(t.Message, message) for message in later],
        )
        return {"response": written(response)}

    async def do_text(self, utf16: list[int]) -> Json:
        units = b"".join(unit.to_bytes(2, "little") for unit in utf16)
        text = units.decode("utf-16-le", "surrogatepass")
        try:
            user(text)
        except ValueError:
            return {"refused": True}
        return {"refused": False}

    async def do_format(self, format: str, out: list[str] | None = None, **asked: str) -> Json:
        taken, given = FORMATS[format]
        if out is None:
            messages = taken(json.loads(asked["in"]))
            return {"messages": [written(message) for message in messages]}
        made = given([read(t.Message, message) for message in out])
        return {"json": json.dumps(made, separators=(",", ":"))}

    async def do_id(self) -> Json:
        return {"id": new_id()}


def told(error: errors.ContextEngineError) -> Json:
    return {
        "type": type(error).__name__,
        "reason": error.reason,
        "code": error.code.name,
        "message": error.message,
        "violations": [{"field": v.field, "description": v.description} for v in error.violations],
        "metadata": error.metadata,
        "retry_after": error.retry_after,
    }


async def done(result: Any) -> Any:
    """What a call of either client answers."""
    return await result if inspect.isawaitable(result) else result


async def each(stream: Any) -> AsyncIterator[Any]:
    """The entries of a stream of either client."""
    if hasattr(stream, "__aiter__"):
        async for entry in stream:
            yield entry
    else:
        for entry in stream:
            yield entry


async def main() -> None:
    driver = Driver(AsyncClient if "--asyncio" in sys.argv else Client)
    line: Callable[[], str] = sys.stdin.readline
    for _ in itertools.count():
        asked = await asyncio.to_thread(line)
        if not asked:
            break
        try:
            answer = await driver.answer(json.loads(asked))
        except Exception as defect:  # the protocol's own word for it
            answer = {"defect": repr(defect)}
        print(json.dumps(answer), flush=True)
    await driver.end()


if __name__ == "__main__":
    asyncio.run(main())
