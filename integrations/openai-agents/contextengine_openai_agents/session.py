"""A session of the OpenAI Agents SDK whose items the service keeps.

The SDK asks it for the history at the beginning of a run and hands it what the run adds. Within a
run it is not asked: `fit` is, before each call of the model, where a run's configuration says so.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from typing import Any

from agents.memory.session_settings import SessionSettings, resolve_session_limit
from agents.run import CallModelData, ModelInputData

from contextengine import AsyncClient, ContextEngineError
from contextengine.deltas import Assembly
from contextengine.errors import SessionNotFound
from contextengine.formats import FormatError
from contextengine.overflow import is_refusal, said
from contextengine.times import timed
from contextengine.types import (
    FORM_UNSPECIFIED,
    Budget,
    Item,
    LiveList,
    WindowBudget,
)

from .items import definitions, is_answer, kept, read, shown

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the model was called with last."""

    fields: dict[str, Any]
    """What the assembly was asked for with."""
    instructions: str | None
    """The agent's."""
    reply: Assembly


class ContextengineSession:
    """One conversation.

    While the service is away what is added waits in the client and is stored once it is back, in
    order; the history is what this session was shown last and what waits.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        client: AsyncClient,
        *,
        agent_id: str = "openai-agents",
        window: int | None = None,
        patience: float = 2.0,
    ) -> None:
        """session_id: names the conversation. client: `breaker=True` keeps a service that is away
        from costing each call; `spill_file=` keeps what waits beyond this process. agent_id: whose
        sessions these are. window: the model's context window in tokens; by default what the
        service knows of the model. patience: seconds that a call waits for the service.
        """
        self.session_id = session_id
        self.session_settings = SessionSettings()
        self._client = client
        self._session = client.session(agent_id=agent_id, session_id=session_id)
        self._window = window
        self._patience = patience
        self._asked: Asked | None = None

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The history that fits: newest items as they were added, summaries for what is older.
        `limit`: of these the newest so many."""
        reply = await self._session.assemble(
            budget=Budget(window=self._parts()), timeout=self._patience
        )
        if reply.degraded and not reply.items:
            _log.warning("contextengine: the history is not at hand: %s", reply.degraded.error)
        items = shown(reply.items)
        most = resolve_session_limit(limit, self.session_settings)
        return items if most is None else items[max(len(items) - most, 0) :]

    async def add_items(self, items: list[Any]) -> None:
        """Stores what a run added."""
        if not items:
            return
        messages = timed(kept(items), len(items))
        if is_answer(messages):
            await self._session.after_turn(messages, timeout=self._patience)
        else:
            await self._session.ingest_batch(messages, timeout=self._patience)

    async def pop_item(self) -> Any | None:
        """Takes the newest item back. None: there is none."""
        await self._session.flush(timeout=self._patience)
        reply = await self._session.assemble(fallback=False, delta=False, timeout=self._patience)
        newest = next((one for one in reversed(reply.items) if one.origin.sequence), None)
        if newest is None:
            return None
        whole = await self._whole(newest)
        *others, popped = shown([whole])
        await self._session.record_rewind(newest.origin.sequence - 1, timeout=self._patience)
        if others:
            await self._session.ingest_batch(kept(others), fallback=False, timeout=self._patience)
        return popped

    async def clear_session(self) -> None:
        """Empties the session. What was said is kept, and is no longer shown."""
        await self._session.flush(timeout=self._patience)
        with contextlib.suppress(SessionNotFound):  # nothing was said yet
            await self._session.record_rewind(0, timeout=self._patience)

    async def fit(self, data: CallModelData[Any]) -> ModelInputData:
        """The run's `call_model_input_filter`: the input of one call of the model within its
        window. What the run has added and the session does not hold yet is shown at its place."""
        given, agent = data.model_data, data.agent
        self._asked = None
        try:
            live = LiveList(messages=read(given.input))
            parts = self._parts()
            if given.instructions:
                parts.system_prompt_text = given.instructions
            parts.tools.extend(definitions(agent.tools))
            model = getattr(agent.model, "model", agent.model)
            fields: dict[str, Any] = {
                "live": live,
                "budget": Budget(window=parts),
                "model": model if isinstance(model, str) else "",
                "timeout": self._patience,
            }
            reply: Assembly = await self._session.assemble(**fields)
        except (ContextEngineError, FormatError) as error:
            _log.warning("contextengine: the model gets the input as it is: %s", error)
            return given
        if not reply.degraded:
            self._asked = Asked(fields, given.instructions, reply)
        return _input(reply, given.instructions)

    async def fit_again(self, error: Exception) -> ModelInputData | None:
        """Half of what `fit` gave the model last, which the provider refused for its length; the
        session is compacted first. None: the error says something else, or the service is away."""
        asked = self._asked
        if asked is None or not is_refusal(error):
            return None
        self._asked = None
        try:
            budget = await self._session.overflowed(
                asked.reply, said(error), budget=asked.fields["budget"]
            )
            reply = await self._session.assemble(
                **{**asked.fields, "budget": budget}, fallback=False
            )
        except (ContextEngineError, FormatError) as away:
            _log.warning("contextengine: the model is not asked again: %s", away)
            return None
        return _input(reply, asked.instructions)

    async def _whole(self, item: Item) -> Item:
        """An item as it was stored."""
        if item.form == FORM_UNSPECIFIED:
            return item
        found = await self._client.recall.expand(
            self._session.ref,
            sequences=[item.origin.sequence],
            include_messages=True,
            timeout=self._patience,
        )
        return found.items[0] if found.items else item

    def _parts(self) -> WindowBudget:
        return WindowBudget(window=self._window) if self._window else WindowBudget()


def _input(reply: Assembly, instructions: str | None) -> ModelInputData:
    """What the model is called with."""
    told = [text for text in (instructions, reply.response.system_prompt_addition) if text]
    return ModelInputData(shown(reply.items), "\n\n".join(told) or None)
