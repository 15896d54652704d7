"""Tools of an engine's own, where CallTool runs them."""

from __future__ import annotations

import orjson

from contextengine_server.compaction.companions import Companions
from contextengine_server.context.scope import Scope
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.failure import EngineBroken
from contextengine_server.recall.arguments import InvalidArgument, json_object
from contextengine_server.recall.model_tools.answers import ToolAnswer, refusal


async def call_own_tool(
    companions: Companions, scope: Scope, engine: Engine, name: str, arguments: bytes
) -> ToolAnswer | None:
    """What a tool of the engine's own answers; that it fails is told to the model. None: it has no
    such tool. Raises EngineFailed where the engine cannot say which it has."""
    if name not in {tool.name for tool in await companions.tools(scope, engine)}:
        return None
    try:
        return _answer(await companions.call(scope, engine, name, json_object(arguments)))
    except InvalidArgument as error:
        return refusal(error.code, str(error), error.argument)
    except EngineBroken as error:
        return refusal("tool_failed", f"the tool failed: {error.how}", "name")


def _answer(said: object) -> ToolAnswer:
    """An answer as JSON: engines answer it as text."""
    value: object = said
    if isinstance(said, (str, bytes)):
        try:
            value = orjson.loads(said)
        except ValueError:
            value = said if isinstance(said, str) else said.decode("utf-8", "replace")
    is_error = isinstance(value, dict) and bool(value.get("error"))
    return ToolAnswer(orjson.dumps(value, default=str), is_error)
