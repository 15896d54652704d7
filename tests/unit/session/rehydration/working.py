"""A session that read files and was compacted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.session.assembly.assembly import Assembly
from contextengine_server.session.assembly.whereabouts import Whereabouts
from contextengine_server.session.rehydration.workspace import WorkspaceFile
from contextengine_server.wire.message import Incoming
from contextengine_server.wire.slots import item_of
from tests.unit.commands.house import (
    Rows,
    Server,
    assistant,
    incoming,
    long,
    text_of,
    user,
)

RULES = """# Agents
Intro.
## Session Startup
Read the notes.
### Detail
Of the notes.
## Style
Tabs.
### red lines
Never push to main.
"""
AGENTS = Whereabouts("dm", (WorkspaceFile("/AGENTS.md", RULES),))
PIPELINE: dict[str, Any] = {"engine.default": "pipeline"}
BUDGET = 30_000


def reading(path: str, text: str, tool: str = "read") -> list[pb.Message]:
    """A file is read."""
    call = pb.ToolCallPart(
        call_id=f"c-{path}", name=tool, arguments_json=json.dumps({"path": path}).encode()
    )
    asked = pb.Message(role=pb.ROLE_ASSISTANT, parts=[pb.Part(tool_call=call)])
    part = pb.Part(text=pb.TextPart(text=text))
    answer = pb.ToolResultPart(call_id=f"c-{path}", name=tool, parts=[part])
    return [asked, pb.Message(role=pb.ROLE_TOOL, parts=[pb.Part(tool_result=answer)])]


def chatter(first: int, count: int, words: int = 400) -> list[pb.Message]:
    """Turns of a user and a model."""
    said = []
    for at in range(first, first + count):
        said += [user(long(f"u{at}", words)), assistant(long(f"a{at}", words))]
    return said


def worked(*reads: Sequence[pb.Message], before: int = 3, after: int = 12) -> list[Incoming]:
    """A session that begins with turns, reads files, and goes on."""
    middle = [user("read them"), *(message for one in reads for message in one)]
    return incoming(*chatter(0, before), *middle, *chatter(before, after))


async def compacted(rows: Rows, messages: Sequence[Incoming], **settings: Any) -> Server:
    """A server whose session was given its files, told this, and compacted."""
    server = await Server(rows, **{**PIPELINE, **settings}).open()
    await server.assemble(BUDGET, ingest=messages, whereabouts=AGENTS)
    done = await server.compact(BUDGET)
    assert done.done.summaries, done.done.reason
    assert done.done.helps is not False
    return server


def texts(made: Assembly) -> list[str]:
    """What each item says."""
    return [text_of(item_of(frame).message) for frame in made.joined.after(0)]


def kinds(made: Assembly) -> list[str]:
    """What each item is."""
    found = []
    for frame in made.joined.after(0):
        item = item_of(frame)
        origin = item.origin
        if origin.summary_id:
            found.append("summary")
        elif origin.synthetic:
            assert item.message.role == pb.ROLE_USER
            assert item.id.startswith("ce:")
            found.append(origin.synthetic)
        else:
            found.append("message")
    return found


def first(made: Assembly) -> str:
    """What stands right behind the summary."""
    return texts(made)[kinds(made).index("rehydrated after a compaction")]


def texts_as_bytes(made: Assembly) -> list[bytes]:
    return list(made.joined.after(0))
