"""Changes of a session other than messages: bootstrap, what the host did to its transcript, reset, end, model, usage, deletion
(contract §1, §2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import orjson

from contextengine_server.context.scope import Scope
from contextengine_server.errors import (
    ContradictoryFields,
    InvalidField,
    RevisionMismatch,
    SessionHasDependents,
    Violation,
)
from contextengine_server.store.interface import (
    Commit,
    Deleted,
    DuplicateRequest,
    Facts,
    HasDependents,
    RevisionConflict,
    SessionHead,
    StoredReply,
    SummaryRow,
)
from contextengine_server.tokens import calibrate, profile

from .core import Address, Ref, SessionCore, not_found
from .rows import refold
from .state import SessionState, ViewFacts, facts_of
from .warm import Session
from .writing import Request, checked


@dataclass(slots=True)
class Changed:
    """What became of a change."""

    revision: int
    repeated: bool = False
    numbers: dict[str, int] | None = None


@dataclass(slots=True, frozen=True)
class Draft:
    """A change being prepared: what the commit holds besides the head."""

    state: SessionState
    head: SessionHead
    retire_after: int | None = None
    retire_summaries: Sequence[str] = ()
    summaries: Sequence[SummaryRow] = ()
    facts: Sequence[Facts] = ()
    numbers: dict[str, int] | None = None
    reload: bool = False
    """True where the view must be read again after the commit."""


async def change(
    core: SessionCore,
    session: Session,
    address: Address,
    edit: Callable[[Session, SessionHead, SessionState], Draft | None],
    *,
    request: Request | None = None,
    expected_revision: int | None = None,
) -> Changed:
    """Makes one change under the session's lock, which the caller holds. `edit` answers None where there is nothing to do."""
    tries = 0
    while True:
        if request is not None and session.head is not None:
            known = await core.store.reply(session.scope, request.id)
            if known is not None:
                return _repeat(known, request)
        if expected_revision is not None and expected_revision != session.revision:
            raise RevisionMismatch(
                f"expected_revision: {expected_revision} was expected, the session is at {session.revision}: read it again",
                violations=[Violation("expected_revision", f"the session is at {session.revision}")],
                metadata={"expected": str(expected_revision), "actual": str(session.revision)},
            )
        head = core.next_head(session, address)
        draft = edit(session, head, session.state.copy())
        if draft is None:
            return Changed(session.revision)
        new = replace(draft.head, state=draft.state.encode())
        numbers = draft.numbers or {}
        reply = None
        if request is not None:
            reply = StoredReply(
                request.id, request.digest, orjson.dumps({"revision": new.revision, "numbers": numbers})
            )
        try:
            await core.commit(
                Commit(
                    head=new,
                    expected_revision=session.revision,
                    retire_after=draft.retire_after,
                    retire_summaries=draft.retire_summaries,
                    summaries=draft.summaries,
                    facts=draft.facts,
                    reply=reply,
                    bind_key=address.bind,
                )
            )
        except DuplicateRequest as duplicate:
            assert request is not None
            return _repeat(duplicate.stored, request)
        except RevisionConflict:
            tries += 1
            await core.lost_race(session, tries)
            continue
        if draft.reload:
            await core.reload(session, await core.store.head(session.scope), session.reach)
        else:
            session.advance(new, draft.state)
        return Changed(new.revision, numbers=numbers)


def _repeat(known: StoredReply, request: Request) -> Changed:
    raw = orjson.loads(checked(known, request).reply)
    return Changed(raw["revision"], repeated=True, numbers=raw["numbers"])


# Bootstrap.


@dataclass(slots=True, frozen=True)
class HostFacts:
    """The host as it introduced itself."""

    encoded: bytes
    capabilities: tuple[str, ...]


async def introduce(
    core: SessionCore,
    address: Address,
    host: HostFacts | None,
    model: str,
    provider: str,
    window: int | None,
    continues: Ref | None,
) -> tuple[Session, bool]:
    """Creates the session where it does not exist and notes what the host says. Answers the session and whether it is new.
    Nothing is committed where nothing is new."""
    parent = await _parent(core, address, continues) if continues is not None else None
    async with core.session(address.scope, lock=True) as session:
        created = session.head is None

        def edit(session: Session, head: SessionHead, state: SessionState) -> Draft | None:
            known = session.head
            if host is not None:
                state.host, state.capabilities = host.encoded.hex(), list(host.capabilities)
            changed = set_model(head, state, model, provider, window, None)
            if parent is not None:
                changed = _continue(session, changed, state, parent)
            if (
                known is not None
                and not address.bind
                and state.encode() == known.state
                and _same(changed, known)
            ):
                return None
            return Draft(state, changed, reload=parent is not None)

        await change(core, session, address, edit)
        if created and session.head is not None:
            core.events.emit("session:created", *session.scope, revision=session.revision)
        return session, created


def _same(head: SessionHead, known: SessionHead) -> bool:
    """True where a bootstrap changes nothing of the head."""
    return (head.model, head.provider, head.parent_session) == (
        known.model,
        known.provider,
        known.parent_session,
    )


@dataclass(slots=True, frozen=True)
class _Parent:
    head: SessionHead
    state: SessionState


async def _parent(core: SessionCore, address: Address, continues: Ref) -> _Parent:
    if continues.agent and continues.agent != address.scope.agent:
        raise InvalidField(
            "continues.agent_id", "must be the session's own agent: memory never crosses agents"
        )
    ref = replace(continues, agent=address.scope.agent)
    scope = (await core.address(address.scope.tenant, ref)).scope
    if scope == address.scope:
        raise InvalidField("continues", "names the session itself: name the one that came before")
    head = await core.store.head(scope)
    if head is None:
        raise not_found(scope)
    return _Parent(head, SessionState.decode(head.state))


def _continue(session: Session, head: SessionHead, state: SessionState, parent: _Parent) -> SessionHead:
    known = session.head
    if known is not None and known.parent_session == parent.head.scope.session:
        return head
    if known is not None and (known.last_sequence or known.parent_session):
        raise ContradictoryFields(
            ["continues", "session"],
            "the session has messages of its own or continues another: only an empty session can continue one",
        )
    facts = parent.state.view
    state.view = replace(facts, reopened=0)
    state.encoding = parent.state.encoding
    if not head.model:
        head = replace(head, model=parent.head.model, provider=parent.head.provider)
        state.model = replace(parent.state.model)
    return replace(
        head,
        # Revisions go on where the parent's stood, so that what was there before stays older than what comes.
        revision=max(head.revision, parent.head.revision + 1),
        parent_session=parent.head.scope.session,
        parent_revision=parent.head.revision,
        parent_sequence=parent.head.last_sequence,
        last_sequence=parent.head.last_sequence,
        message_count=parent.head.message_count,
        message_tokens=parent.head.message_tokens,
        summary_count=parent.head.summary_count,
    )


def set_model(
    head: SessionHead,
    state: SessionState,
    model: str,
    provider: str,
    window: int | None,
    max_output: int | None,
) -> SessionHead:
    """The head with another model; the factor that usage taught comes into force, or the new model's own."""
    if model and model != head.model:
        known = profile(model)
        head = replace(head, model=model, provider=provider or known.provider)
        state.model.window = known.window or 0
        state.model.max_output = known.max_output or 0
        state.model.factor = state.model.learned = known.factor
        state.model.served_window = 0
    elif provider:
        head = replace(head, provider=provider)
    if window is not None:
        state.model.window = window
    if max_output is not None:
        state.model.max_output = max_output
    return head


# What ends or shortens the view.


async def reset(
    core: SessionCore,
    session: Session,
    address: Address,
    request: Request | None,
    expected_revision: int | None,
) -> Changed:
    """Empties the view; rows stay."""

    def edit(session: Session, head: SessionHead, state: SessionState) -> Draft:
        count = session.view.message_count
        state.view = ViewFacts(reset_mark=head.revision, reopened=head.revision)
        state.detached = state.detached or head.revision
        state.held = False
        state.refused = []
        head = replace(head, message_count=0, message_tokens=0, summary_count=0)
        return Draft(
            state,
            head,
            retire_after=0,
            retire_summaries=_own_summaries(session, 0),
            numbers={"retired": count},
            reload=True,
        )

    done = await change(core, session, address, edit, request=request, expected_revision=expected_revision)
    if not done.repeated:
        core.events.emit(
            "session:reset", *session.scope, revision=done.revision, counts=dict(done.numbers or {})
        )
    return done


def _own_summaries(session: Session, after: int) -> list[str]:
    """The session's own live summaries that reach behind a sequence. Inherited ones are not ours to retire."""
    inherited = session.head.parent_revision if session.head is not None else 0
    return [s.id for s in session.live_summaries if s.last_sequence > after and s.created > inherited]


async def rewind(
    core: SessionCore, session: Session, address: Address, request: Request, after: int
) -> Changed:
    """Later rows leave the view. What stays is folded again, since a late result may have gone with them."""
    head = core.require(session)
    if after < 0 or after > head.last_sequence:
        raise InvalidField(
            "rewind.after_sequence", f"is {after}: give 0 to {head.last_sequence}, the newest sequence"
        )
    if after < head.parent_sequence:
        raise InvalidField(
            "rewind.after_sequence",
            f"is {after}, among the messages that this session continues from {head.parent_session!r} (up to "
            f"{head.parent_sequence}): go back in that session",
        )
    await core.fresh(session, None)

    def edit(session: Session, head: SessionHead, state: SessionState) -> Draft:
        kept, facts = refold(session.view, after, core.shaper)
        state.view = replace(facts_of(kept, state.view), rewind_mark=head.revision, reopened=head.revision)
        retired = _own_summaries(session, after)
        gone = session.view.message_count - kept.message_count
        head = replace(
            head,
            message_count=kept.message_count,
            message_tokens=kept.total,
            summary_count=len(session.live_summaries) - len(retired),
        )
        return Draft(
            state,
            head,
            retire_after=after,
            retire_summaries=retired,
            facts=facts,
            numbers={"retired": gone},
            reload=True,
        )

    done = await change(core, session, address, edit, request=request)
    if not done.repeated:
        core.events.emit(
            "session:rewound", *session.scope, revision=done.revision, counts=dict(done.numbers or {})
        )
    return done


async def end(
    core: SessionCore,
    session: Session,
    address: Address,
    request: Request | None,
    expected_revision: int | None,
) -> Changed:
    """The conversation is over for now; a later write opens it again."""

    def edit(session: Session, head: SessionHead, state: SessionState) -> Draft | None:
        if session.head is not None and session.head.ended:
            return None
        return Draft(state, replace(head, ended=True), numbers={"ended": 1})

    done = await change(core, session, address, edit, request=request, expected_revision=expected_revision)
    if done.numbers and not done.repeated:
        core.events.emit("session:ended", *session.scope, revision=done.revision)
    return done


async def native_compaction(
    core: SessionCore, session: Session, address: Address, request: Request
) -> Changed:
    """The harness's native thread was compacted: a binding to it is void, which the epoch says."""

    def edit(session: Session, head: SessionHead, state: SessionState) -> Draft:
        state.native_compactions += 1
        return Draft(state, head)

    return await change(core, session, address, edit, request=request)


# Model and usage.


async def update_model(
    core: SessionCore,
    session: Session,
    address: Address,
    model: str,
    provider: str,
    window: int | None,
    max_output: int | None,
    request: Request | None,
) -> Changed:
    """Sets the session's model. What usage taught comes into force."""

    def edit(session: Session, head: SessionHead, state: SessionState) -> Draft:
        head = set_model(head, state, model, provider, window, max_output)
        state.model.factor = state.model.learned
        return Draft(state, head)

    return await change(core, session, address, edit, request=request)


@dataclass(slots=True, frozen=True)
class Report:
    """What the provider billed, or refused. Tokens are the model's."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_micro_usd: int = 0
    total_tokens: int = 0
    billed: bool = False
    """True where usage was reported at all."""
    sent: int = 0
    """What the named assembly was estimated at, in the reference encoding with no factor; 0: none was named."""
    overflow_limit: int = 0
    """The limit that the provider named when it refused; 0: none."""

    @property
    def prompt_tokens(self) -> int:
        """All input, cached or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


async def report_usage(
    core: SessionCore, session: Session, address: Address, report: Report, request: Request | None
) -> Changed:
    """Counts what was billed and learns from it; nothing of it changes an assembly before a compaction or UpdateModel."""

    def edit(session: Session, head: SessionHead, state: SessionState) -> Draft:
        note_usage(state, report)
        return Draft(state, head)

    return await change(core, session, address, edit, request=request)


def note_usage(state: SessionState, report: Report) -> None:
    """Adds a report to what was billed, and learns from it."""
    usage = state.usage
    if report.billed:
        usage.input_tokens += report.input_tokens
        usage.output_tokens += report.output_tokens
        usage.cache_read_tokens += report.cache_read_tokens
        usage.cache_write_tokens += report.cache_write_tokens
        usage.reasoning_tokens += report.reasoning_tokens
        usage.cost_micro_usd += report.cost_micro_usd
        usage.reports += 1
        usage.last_prompt = report.prompt_tokens
        usage.last_completion = report.output_tokens
        usage.last_total = report.total_tokens or report.prompt_tokens + report.output_tokens
        if report.sent:
            state.model.learned = calibrate(state.model.learned, report.sent, report.prompt_tokens)
    if report.overflow_limit:
        known = state.model.served_window
        state.model.served_window = min(known, report.overflow_limit) if known else report.overflow_limit


# Deletion.


async def delete(core: SessionCore, scope: Scope, *, expected_revision: int | None, cascade: bool) -> Deleted:
    """Erases a session with everything derived from it."""
    session = core.warm.enter(scope)
    try:
        async with session.lock:
            try:
                gone = await core.store.delete(scope, expected_revision=expected_revision, cascade=cascade)
            except HasDependents as error:
                raise SessionHasDependents(
                    f"{error}: delete them first, or set cascade",
                    metadata={"sessions": ",".join(error.sessions)},
                ) from error
            except RevisionConflict as error:
                raise RevisionMismatch(
                    f"expected_revision: {expected_revision} was expected, the session is at {error.actual}: read it again",
                    metadata={"expected": str(expected_revision), "actual": str(error.actual)},
                ) from error
    finally:
        core.warm.leave(session)
    for name in gone.sessions:
        core.warm.drop(scope._replace(session=name))
        core.events.emit("session:deleted", scope.tenant, scope.agent, name)
    return gone
