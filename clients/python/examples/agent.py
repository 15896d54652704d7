"""An agent's loop against a model that is made up: it calls one tool, then answers.

python clients/python/examples/agent.py 127.0.0.1:50051
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from contextengine import Client, Message, Session, assistant, new_id, text_of, tool_call, tool_result, user
from contextengine.types import ROLE_TOOL, ToolCallPart


def model(messages: Sequence[Message]) -> tuple[Message, list[ToolCallPart]]:
    """Stands in for a provider: asks for the tool once a question, then answers with what the tool said."""
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
        context = session.assemble(ingest=new)
        if context.degraded:
            print("the service is away:", context.degraded.reason)
        reply, calls = model(context.messages)
        if not calls:
            print(text_of(reply))
            session.after_turn([reply])
            return
        new = [reply, *(tool_result(call.call_id, "in Utrecht, due tomorrow") for call in calls)]


if __name__ == "__main__":
    with Client(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:50051") as client:
        example = client.session(agent_id="example", session_id=new_id())
        for asked in ("Where is order 4711?", "And order 4712?"):
            turn(example, asked)
