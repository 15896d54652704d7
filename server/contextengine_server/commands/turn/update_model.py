"""UpdateModel: the session runs on another model."""

from __future__ import annotations

from msgspec import Struct, structs

from contextengine_server.session.address import Addresses, Ref
from contextengine_server.session.change import Editor, PreparedChange
from contextengine_server.session.model import set_model, switched
from contextengine_server.session.receipt import Request
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import ModelFacts, SessionState
from contextengine_server.store.rows import SessionHead


class Model(Struct, frozen=True):
    """A session's model as a host names it. Empty and None: as it is."""

    model: str = ""
    provider: str = ""
    window: int | None = None
    max_output: int | None = None


class ModelUpdated(Struct, frozen=True):
    """The session's model now."""

    head: SessionHead
    model: ModelFacts
    revision: int


class UpdateModel(Struct, frozen=True):
    """Sets the session's model. What usage taught comes into force."""

    addresses: Addresses
    sessions: Sessions
    editor: Editor

    async def run(
        self, tenant: str, ref: Ref, wanted: Model, request: Request | None
    ) -> ModelUpdated:
        """Sets the model of a session, which is made where there is none."""

        async def edit(session: Session, head: SessionHead, state: SessionState) -> PreparedChange:
            before, known = head, state.model
            head, state = set_model(
                head, state, wanted.model, wanted.provider, wanted.window, wanted.max_output
            )
            route = (head.model, head.provider) != (before.model, before.provider)
            if route or (state.model.window, state.model.max_output) != (
                known.window,
                known.max_output,
            ):
                state = switched(state, route=route)
            return PreparedChange(structs.replace(state, model=state.model.taught()), head)

        address = await self.addresses.find(tenant, ref)
        async with self.sessions.open(address.scope, lock=True) as session:
            done = await self.editor.change(session, address, edit, request=request)
            return ModelUpdated(session.require(), session.state.model, done.revision)
