"""Service Projection, and the projection that Assemble answers beside its items: one way through
the projection room for both."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from contextengine_proto.v1 import assemble_pb2, message_pb2
from contextengine_proto.v1 import projection_pb2 as pb
from contextengine_server.api import projection_items as reading
from contextengine_server.api.call import Call
from contextengine_server.api.projection_cache import ProjectionCache
from contextengine_server.api.reading import (
    budget_spec,
    incoming,
    not_negative,
    prompt_tokens,
    ref_of,
    request_id,
)
from contextengine_server.api.recall import head_of
from contextengine_server.commands.assemble import assemble
from contextengine_server.errors import (
    ContradictoryFields,
    InvalidField,
    ProjectionTooLarge,
    Violation,
)
from contextengine_server.projection import anthropic, gemini, openai_chat, openai_responses
from contextengine_server.projection.codex import task as codex
from contextengine_server.projection.codex.renderer import project, split_prompt
from contextengine_server.projection.fragments import JsonObject
from contextengine_server.projection.model import Item, Loss, Part, ProjectionImpossible
from contextengine_server.projection.provider import ProviderTask
from contextengine_server.projection.text import dumped
from contextengine_server.session.assembly import AssembleCall, Assembly
from contextengine_server.session.core import SessionCore
from contextengine_server.summarize.redaction import MARK, redact
from contextengine_server.wire.frames import block, varint

_FIELD = assemble_pb2.AssembleResponse.DESCRIPTOR.fields_by_name["projection"].number
_PROMPT = pb.ProjectResponse.DESCRIPTOR.fields_by_name["prompt"].number
_MESSAGES = pb.ProjectResponse.DESCRIPTOR.fields_by_name["messages_json"].number
_RENDER = {
    pb.PROJECTION_TARGET_OPENAI_CHAT: openai_chat.render,
    pb.PROJECTION_TARGET_OPENAI_RESPONSES: openai_responses.render,
    pb.PROJECTION_TARGET_ANTHROPIC: anthropic.render,
    pb.PROJECTION_TARGET_GEMINI: gemini.render,
}
PRODUCT = "OpenClaw"
THREADED_CHARS = 200_000
"""From this many bytes of frames on a projection is made in a thread: redaction alone takes
milliseconds a megabyte."""


class Context(msgspec.Struct, frozen=True):
    """What is projected, and what is known of where it comes from."""

    items: list[Item]
    prompt: Sequence[Part] = ()
    current_id: str = ""
    addition: str = ""
    epoch: str = ""
    fingerprint: str = ""
    engine_id: str = ""
    engine_version: str = ""
    owns_compaction: bool = False
    budget: int | None = None
    reserve: int | None = None
    """None: the target's own."""
    model: str = ""
    provider: str = ""
    message_count: int = 0
    """How many messages the session or the list has."""


class ProjectionService:
    """Thin: reads the request, asks for the assembly, then the projection room."""

    def __init__(self, core: SessionCore, items: ProjectionCache) -> None:
        self.core, self.items = core, items

    async def project(self, request: pb.ProjectRequest, call: Call) -> pb.ProjectResponse:
        """Projects a session, or a list as it is."""
        if request.HasField("session") and request.messages:
            raise ContradictoryFields(
                ["session", "messages"], "name the session or give the list to project, not both"
            )
        if not request.HasField("options"):
            raise InvalidField("options", "is required: say at least the target")
        reading.check_options(request.options, "options")
        if request.HasField("session"):
            context = await self._session(request, call)
        elif request.messages:
            context = await self._list(request)
        else:
            raise InvalidField("session", "is required, or messages: say what to project")
        with call.trace.span("project"):
            reply, large = await asyncio.to_thread(_projected, context, request.options, "options")
            reply.MergeFromString(large)
            return reply

    async def _session(self, request: pb.ProjectRequest, call: Call) -> Context:
        core, options = self.core, request.options
        for name in ("system_prompt_addition", "epoch"):
            if getattr(request, name):
                raise ContradictoryFields(
                    ["session", name], "a session's own comes from its assembly"
                )
        ref = ref_of(request.session)
        address = await core.address(call.caller.tenant, ref)
        at_least = not_negative(request.at_least_revision, "at_least_revision")
        await core.reached(address.scope, at_least)
        await head_of(core, address.scope)
        wanted = AssembleCall(
            tenant=call.caller.tenant,
            ref=ref,
            budget=await budget_spec(core, request.budget),
            model=options.model,
            provider=options.provider,
            prompt_tokens=await prompt_tokens(core, request.prompt),
            at_least_revision=at_least,
            trace=call.trace,
        )
        return _assembled(await assemble(core, wanted), self.items, request.prompt)

    async def _list(self, request: pb.ProjectRequest) -> Context:
        incoming(
            self.core, request.messages, "messages"
        )  # says what cannot be, as for every message
        await prompt_tokens(self.core, request.prompt)
        request_id(request.epoch, "epoch")
        spec = await budget_spec(self.core, request.budget)
        final = spec.message_tokens is not None
        return Context(
            items=reading.list_items(request.messages),
            prompt=reading.parts_in(request.prompt),
            addition=request.system_prompt_addition,
            epoch=request.epoch,
            budget=spec.message_tokens if final else spec.window,
            reserve=0 if final else None,
            message_count=len(request.messages),
        )


async def beside(
    assembled: bytes,
    assembly: Assembly,
    request: assemble_pb2.AssembleRequest,
    items: ProjectionCache,
) -> bytes:
    """An encoded AssembleResponse with the field `projection` added."""
    # All that belongs to the assembly is read before anything is waited for: a commit would change
    # its view.
    context = _assembled(assembly, items, request.prompt, request.current_message_id)
    if request.HasField("live"):
        # The harness counts in its own list, which may hold more than is shown of it, or less.
        context = replace(
            context,
            items=_following(context.items, assembly),
            message_count=len(request.live.messages),
        )
    if sum(map(len, assembly.joined.after(0))) > THREADED_CHARS:
        reply, large = await asyncio.to_thread(
            _projected, context, request.projection, "projection"
        )
    else:
        reply, large = _projected(context, request.projection, "projection")
    small = reply.SerializeToString()
    return b"".join(
        (assembled, varint(_FIELD << 3 | 2), varint(len(small) + len(large)), small, large)
    )


def check(request: assemble_pb2.AssembleRequest) -> None:
    """Raises InvalidField for a projection that cannot be, before anything is stored."""
    if request.HasField("projection"):
        reading.check_options(request.projection, "projection")
        reading.binding_of(request.projection, "projection")


def _assembled(
    assembly: Assembly,
    items: ProjectionCache,
    prompt: Sequence[message_pb2.Part],
    current_id: str = "",
) -> Context:
    budget = assembly.budget
    return Context(
        items=items.of(assembly.joined.after(0)),
        prompt=reading.parts_in(prompt),
        current_id=current_id,
        addition=assembly.addition,
        epoch=assembly.settled_epoch,
        fingerprint=assembly.engine.fingerprint,
        engine_id=assembly.engine.id,
        engine_version=assembly.engine.version,
        owns_compaction=assembly.engine.owns_compaction,
        budget=budget.window or budget.available,
        # A final budget has nothing subtracted from it anywhere.
        reserve=None if budget.window else 0,
        model=assembly.target.model,
        provider=assembly.target.provider,
        message_count=assembly.view.message_count,
    )


def _following(items: list[Item], assembly: Assembly) -> list[Item]:
    """The items, those that are not stored with the sequences that they would get: a binding tells
    by these what its thread has seen."""
    atoms = assembly.view.atoms
    would = {entry.live_index: entry.sequence for atom in atoms for entry in atom.entries}
    return [
        (
            item
            if item.live_index < 0
            else replace(item, sequence=max(0, would.get(item.live_index, 0)), cache=None)
        )
        for item in items
    ]


Reply = tuple[pb.ProjectResponse, bytes]
"""A reply, and its one large field, encoded: it is copied into the answer once, and not into the
reply before."""


def _projected(context: Context, options: pb.ProjectionOptions, field: str) -> Reply:
    renderer = reading.renderer_of(options)
    try:
        if options.target == pb.PROJECTION_TARGET_CODEX:
            return _for_codex(context, options, renderer, field)
        return _for_provider(context, options, renderer)
    except ProjectionImpossible as error:
        name = _named(error.field, options, field)
        if error.limit:
            raise ProjectionTooLarge(
                f"{name}: {error}", violations=[Violation(name, str(error))]
            ) from None
        raise InvalidField(name, str(error)) from None


def _named(name: str, options: pb.ProjectionOptions, field: str) -> str:
    """What a request calls the field that a projection complains of; `field` is where the options
    stand in it."""
    if name == "budget":
        return f"{field}.token_budget" if options.HasField("token_budget") else name
    own = {
        "base": "base_instructions",
        "options.base_instructions": "base_instructions",
        "max_chars": "max_chars",
    }
    return f"{field}.{own[name]}" if name in own else name


def _for_codex(context: Context, options: pb.ProjectionOptions, renderer: str, field: str) -> Reply:
    items, prompt, sequence = split_prompt(context.items, context.prompt, context.current_id)
    listed = len(items) < len(context.items)
    reserve = options.reserve_tokens if options.HasField("reserve_tokens") else context.reserve
    done = project(
        codex.Task(
            items=items,
            prompt=prompt,
            prompt_sequence=sequence,
            addition=context.addition,
            base=options.base_instructions,
            renderer=renderer,
            mode=reading.MODES[options.mode],
            payload=reading.PAYLOADS[options.payload_mode],
            epoch=context.epoch,
            fingerprint=context.fingerprint,
            engine_id=context.engine_id,
            engine_version=context.engine_version,
            owns_compaction=context.owns_compaction,
            budget=options.token_budget if options.HasField("token_budget") else context.budget,
            reserve=(
                None
                if options.HasField("token_budget") and not options.HasField("reserve_tokens")
                else reserve
            ),
            max_chars=options.max_chars if options.HasField("max_chars") else None,
            product=options.product_name or PRODUCT,
            tools=options.dynamic_tools_fingerprint,
            model=options.model or context.model,
            binding=reading.binding_of(options, field),
            events=reading.events_of(options),
            inject=options.inject_items,
            pre_prompt_count=context.message_count - listed,
            redact=secrets_out,
        )
    )
    stats = done.stats
    reply = pb.ProjectResponse(
        target=options.target,
        renderer=renderer,
        instructions=done.instructions,
        inject_items_json=[dumped(item) for item in done.items],
        action=done.action.value,  # type: ignore[arg-type]
        action_reason=done.reason,
        binding=pb.ProjectionBinding(
            schema_version=done.binding.schema,
            thread_id=done.binding.thread_id,
            engine_id=done.binding.engine_id,
            policy_fingerprint=done.binding.policy,
            epoch=done.binding.epoch,
            fingerprint=done.binding.fingerprint,
            dynamic_tools_fingerprint=done.binding.tools,
            last_sequence=done.binding.last_sequence,
            first_sequence=done.binding.first_sequence,
            state=reading.state_of(done.binding),
        ),
        losses=_losses(_placed(done.losses, items, context.items)),
        pre_prompt_message_count=done.pre_prompt_count,
        warnings=done.warnings,
        stats=pb.ProjectResponse.Stats(
            records=stats.records,
            inlined=stats.inlined,
            stubbed=stats.stubbed,
            omitted=stats.omitted,
            context_chars=stats.context_chars,
            prompt_chars=stats.prompt_chars,
            prompt_utf16_units=stats.prompt_units,
            instructions_chars=stats.instructions_chars,
            redactions=stats.redactions,
        ),
        turn_input_json=dumped(done.turn_input) if _more_than_text(done.turn_input) else b"",
    )
    if done.context_range is not None:
        reply.context_range.start, reply.context_range.end = done.context_range
    prompted = done.prompt.encode()
    sent = len(done.instructions.encode()) + len(prompted) + sum(map(len, reply.inject_items_json))
    reply.estimated_tokens = -(-sent // 4)  # as Codex itself estimates
    return reply, block(_PROMPT, prompted) if prompted else b""


def _for_provider(context: Context, options: pb.ProjectionOptions, renderer: str) -> Reply:
    items, prompt = context.items, context.prompt
    if prompt:
        items, prompt, _ = split_prompt(items, prompt)
    # The addition stands before the harness's own system prompt, as AssembleResponse says.
    sections = [text.strip() for text in (context.addition, options.base_instructions)]
    rendered = _RENDER[options.target](
        ProviderTask(
            items=items,
            prompt=prompt,
            instructions="\n\n".join(filter(None, sections)),
            provider=options.provider or context.provider,
            model=options.model or context.model,
            breakpoints=(
                options.max_cache_breakpoints if options.HasField("max_cache_breakpoints") else None
            ),
        )
    )
    warnings = []
    if rendered.messages_json == b"[]":
        warnings.append(
            "empty_messages: there is nothing to send but the system prompt, and"
            f" {reading.TARGETS[options.target]} refuses an empty list: give this turn's prompt"
        )
    if options.inject_items:
        warnings.append(
            "inject_items: this form has no native thread to inject into; the messages are the"
            " whole context"
        )
    reply = pb.ProjectResponse(
        target=options.target,
        renderer=renderer,
        instructions=rendered.instructions,
        warnings=warnings,
        system_json=rendered.system_json,
        action=pb.PROJECTION_ACTION_NOTHING,
        losses=_losses(rendered.losses),
        estimated_tokens=-(-(len(rendered.messages_json) + len(rendered.system_json)) // 4),
        pre_prompt_message_count=context.message_count,
    )
    return reply, block(_MESSAGES, rendered.messages_json)


def _more_than_text(turn_input: Sequence[JsonObject]) -> bool:
    return len(turn_input) > 1 or any(part["type"] != "text" for part in turn_input)


def secrets_out(text: str) -> str:
    """The text without secrets; as it is where there are none, controls and colours included."""
    clean = redact(text)
    return clean if clean.count(MARK) > text.count(MARK) else text


def _placed(losses: list[Loss], items: Sequence[Item], whole: Sequence[Item]) -> list[Loss]:
    """Losses of these items with their places in the whole list, which holds the prompt as well."""
    if len(items) == len(whole) or not losses:
        return losses
    places = {id(item): at for at, item in enumerate(whole)}
    return [
        loss if loss.index < 0 else replace(loss, index=places[id(items[loss.index])])
        for loss in losses
    ]


def _losses(losses: Sequence[Loss]) -> list[pb.ProjectResponse.Loss]:
    return [
        pb.ProjectResponse.Loss(item_index=loss.index, what=loss.what, rule=loss.rule)
        for loss in losses
    ]
