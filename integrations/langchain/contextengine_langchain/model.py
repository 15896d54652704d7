"""A model for graphs of LangGraph that is asked once more, with less, where its provider says that
a prompt was too long: a hook before the model's node is told nothing of what becomes of it, and
that node, run again, asks for the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableBinding


class Asking(RunnableBinding[Any, Any]):
    """The model of a graph, in front of its own (`ContextengineHooks.model`)."""

    hooks: Any
    """Those of the graph."""

    def invoke(self, input: Any, config: Any = None, **more: Any) -> Any:
        """Called by the graph for each call of the model."""
        try:
            return super().invoke(input, config, **more)
        except Exception as error:
            less = self.hooks.shorter(input, error)
            if less is None:
                raise
        return super().invoke(less, config, **more)

    async def ainvoke(self, input: Any, config: Any = None, **more: Any) -> Any:
        """The same for asyncio."""
        try:
            return await super().ainvoke(input, config, **more)
        except Exception as error:
            less = await self.hooks.ashorter(input, error)
            if less is None:
                raise
        return await super().ainvoke(less, config, **more)

    def bind_tools(self, tools: Sequence[Any], **more: Any) -> Any:
        """Called by `create_react_agent`. What the model is bound to is bound here, so that its
        parts that ask for a chat model find one."""
        model: Any = self.bound
        return asking(model.bind_tools(tools, **more), self.hooks)


def asking(model: Any, hooks: Any) -> Asking:
    """This model, asked once more where that helps."""
    if isinstance(model, RunnableBinding):
        told: Any = model
        return Asking(
            bound=told.bound,
            kwargs=told.kwargs,
            config=told.config,
            config_factories=told.config_factories,
            hooks=hooks,
        )
    return Asking(bound=model, hooks=hooks)
