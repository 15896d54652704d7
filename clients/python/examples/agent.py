"""An agent's loop against a model that is made up: it calls one tool, then answers.

python clients/python/examples/agent.py [ADDRESS [SESSION [QUESTION ...]]]

Without a session it begins one; without questions it asks two of its own. Where
OTEL_EXPORTER_OTLP_ENDPOINT is set, each turn is a trace that goes there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from spans import call_span, span, tracing

from contextengine import (
    Client,
    Message,
    Session,
    assistant,
    new_id,
    text_of,
    tool_call,
    tool_result,
    user,
)
from contextengine.types import ROLE_TOOL, ToolCallPart


def model(messages: Sequence[Message]) -> tuple[Message, list[ToolCallPart]]:
    """Stands in for a provider: asks for the tool once a question, then answers with what the tool
    said."""
    last = messages[-1]
    if last.role == ROLE_TOOL:
        return assistant(f"It is {text_of(last)}."), []
    order = "".join(re.findall(r"\d+", text_of(last)))
    calls = [tool_call(f"call-{order}", "find_order", {"order": order})]
    return assistant(tool_calls=calls), calls


def turn(session: Session, question: str) -> None:
    """One question until its answer."""
    new = [user(question)]
    while True:
        with call_span("Assemble"):
            context = session.assemble(ingest=new)
        if context.degraded:
            print("the service is away:", context.degraded.reason)
        reply, calls = model(context.messages)
        if not calls:
            print(text_of(reply))
            with call_span("AfterTurn"):
                session.after_turn([reply])
            return
        new = [reply, *(tool_result(call.call_id, "in Utrecht, due tomorrow") for call in calls)]


def main(target: str = "127.0.0.1:50051", session_id: str = "", *questions: str) -> None:
    """One turn after the other."""
    with tracing(), Client(target) as client:
        session = client.session(agent_id="example", session_id=session_id or new_id())
        for question in questions or ("Where is order 4711?", "And order 4712?"):
            with span("invoke_agent example"):
                turn(session, question)


if __name__ == "__main__":
    main(*sys.argv[1:])
