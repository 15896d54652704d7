"""Sessions in words, as the layered engine plans over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.plan import Plan, Summarized
from contextengine_server.engines.layered import LayeredEngine, LayeredOptions
from contextengine_server.testing.engine.real_sessions import REAL_SHAPER, rows_of
from contextengine_server.testing.engine.trial import Trial, trial_of

ROLES = {
    "user": pb.ROLE_USER,
    "assistant": pb.ROLE_ASSISTANT,
    "system": pb.ROLE_SYSTEM,
    "tool": pb.ROLE_TOOL,
}


def message(role: str, text: str) -> pb.Message:
    return pb.Message(role=ROLES[role], parts=[pb.Part(text=pb.TextPart(text=text))])


def call(id: str, said: str = "") -> pb.Message:
    made = message("assistant", said) if said else pb.Message(role=pb.ROLE_ASSISTANT)
    made.parts.append(pb.Part(tool_call=pb.ToolCallPart(call_id=id, name="read_file")))
    return made


def answer(id: str, text: str) -> pb.Message:
    parts = [pb.Part(text=pb.TextPart(text=text))] if text else []
    part = pb.Part(tool_result=pb.ToolResultPart(call_id=id, parts=parts))
    return pb.Message(role=pb.ROLE_TOOL, parts=[part])


def session(messages: Sequence[pb.Message]) -> Trial:
    return trial_of(rows_of(messages), REAL_SHAPER)


def engine(layers: dict[str, Any] | None = None, **compaction: Any) -> LayeredEngine:
    return LayeredEngine(LayeredOptions(compaction=compaction, layers=layers or {}))


def compacted(one: Trial, by: LayeredEngine, available: int, *, force: bool = False) -> int:
    """Compacts as long as there is something to do; how often there was."""
    passes = 0
    while one.compaction(by, available, force=force and not passes, reached=passes > 0):
        passes += 1
        assert passes < 100
    return passes


def shown(plan: Plan) -> tuple[set[int], set[int]]:
    """The steps that stand as they are, and those behind summaries."""
    raw: set[int] = set()
    told: set[int] = set()
    for segment in plan.segments:
        if isinstance(segment, Summarized):
            told |= set(range(segment.summary.first_step, segment.summary.last_step + 1))
        else:
            raw |= set(range(segment.first, segment.last + 1))
    return raw, told


def planned(one: Trial, by: LayeredEngine, budget: int) -> Plan:
    return by.plan(one.view, ReferenceTokens(budget))
