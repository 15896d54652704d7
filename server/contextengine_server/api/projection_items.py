"""Wire to projection: messages and items of an assembly as the projection room knows them, and what
a request asks of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_proto.v1 import projection_pb2 as out
from contextengine_server.errors import InvalidField
from contextengine_server.projection import model
from contextengine_server.projection.codex import task as codex

RENDERERS = {out.PROJECTION_TARGET_CODEX: ("jsonl", "openclaw")}
"""By target, its own first. The others have one, of the target's name."""
TARGETS = {
    out.PROJECTION_TARGET_CODEX: "codex",
    out.PROJECTION_TARGET_OPENAI_CHAT: "openai-chat",
    out.PROJECTION_TARGET_OPENAI_RESPONSES: "openai-responses",
    out.PROJECTION_TARGET_ANTHROPIC: "anthropic",
    out.PROJECTION_TARGET_GEMINI: "gemini",
}

MODES = {
    out.PROJECTION_MODE_UNSPECIFIED: None,
    out.PROJECTION_MODE_PER_TURN: codex.Mode.PER_TURN,
    out.PROJECTION_MODE_THREAD_BOOTSTRAP: codex.Mode.THREAD_BOOTSTRAP,
}
PAYLOADS = {
    out.PAYLOAD_MODE_UNSPECIFIED: None,
    out.PAYLOAD_MODE_PRESERVE: codex.Payload.PRESERVE,
    out.PAYLOAD_MODE_SHAPE: codex.Payload.SHAPE,
    out.PAYLOAD_MODE_ELIDE: codex.Payload.ELIDE,
}
_EVENTS = {int(event.value): event for event in codex.ThreadEvent}

CODEX_ALONE = (
    "mode",
    "payload_mode",
    "binding",
    "host_events",
    "max_chars",
    "token_budget",
    "reserve_tokens",
    "dynamic_tools_fingerprint",
    "product_name",
)
"""Options that mean nothing to a provider's form."""

MAX_NAME_BYTES = 256
MAX_STATE_BYTES = 65_536
MAX_TEXT_BYTES = 1 << 20
MAX_EVENTS = 1_000
MAX_COUNT = 2**53

_ROLES = {
    pb.ROLE_USER: model.ChatRole.USER,
    pb.ROLE_ASSISTANT: model.ChatRole.ASSISTANT,
    pb.ROLE_TOOL: model.ChatRole.TOOL,
    pb.ROLE_SYSTEM: model.ChatRole.SYSTEM,
    pb.ROLE_DEVELOPER: model.ChatRole.DEVELOPER,
}
_DIALECTS = {
    "anthropic-messages": "anthropic.messages",
    "openai-responses": "openai.responses",
    "openai-completions": "openai.chat",
    "google-generative-ai": "gemini.content",
}
"""API dialects by the names that harnesses use, as formats."""


def item_in(item: pb.Item) -> model.Item:
    """An item of an assembly."""
    covers = None
    if item.HasField("summary"):
        known = item.summary
        covers = model.Covers(known.id, known.depth, known.first_sequence, known.last_sequence)
    kind = item.origin.WhichOneof("kind")
    sequence = item.origin.sequence if kind == "sequence" else 0
    live_index = item.origin.live_index if kind == "live_index" else -1
    return message_in(item.message, item.id, sequence, covers, live_index)


def message_in(
    message: pb.Message,
    item_id: str = "",
    sequence: int = 0,
    covers: model.Covers | None = None,
    live_index: int = -1,
) -> model.Item:
    """A message. A role that this version does not know is the harness's own."""
    role = _ROLES.get(message.role, model.ChatRole.CUSTOM)
    custom = message.custom_role or f"role {message.role}"
    return model.Item(
        role=role,
        parts=parts_in(message.parts),
        id=item_id or message.id,
        sequence=sequence,
        live_index=live_index,
        custom_role=custom if role is model.ChatRole.CUSTOM else "",
        name=message.name,
        labels=dict(message.labels),
        summary=covers,
        provider=message.provider,
        model=message.model,
        dialect=message.native.format or _DIALECTS.get(message.api, ""),
    )


def parts_in(parts: Iterable[pb.Part]) -> tuple[model.Part, ...]:
    """Parts; those of a kind that this version does not know are left out."""
    return tuple(made for part in parts if (made := _part(part)) is not None)


def _part(part: pb.Part) -> model.Part | None:
    seal, more = part.thought_signature, part.provider_metadata_json.decode("utf-8", "replace")
    match part.WhichOneof("kind"):
        case "text":
            return model.Text(part.text.text, seal=seal, more=more)
        case "reasoning":
            said = part.reasoning
            return model.Reasoning(
                said.text, said.signature, said.redacted_data, said.item_id, seal=seal, more=more
            )
        case "tool_call":
            call = part.tool_call
            arguments = call.arguments_json.decode("utf-8", "replace")
            return model.ToolCall(
                call.call_id,
                call.name,
                arguments,
                call.item_id,
                call.namespace,
                seal=seal,
                more=more,
            )
        case "tool_result":
            result = part.tool_result
            inner = parts_in(result.parts)
            return model.ToolResult(
                result.call_id, result.name, inner, result.is_error, seal=seal, more=more
            )
        case "image":
            image = part.image
            data = image.data if image.WhichOneof("source") == "data" else None
            return model.Image(image.mime_type, data, image.uri, image.detail, seal=seal, more=more)
        case "file":
            file = part.file
            data = file.data if file.WhichOneof("source") == "data" else None
            return model.File(file.mime_type, data, file.uri, file.name, seal=seal, more=more)
        case "opaque":
            text = part.opaque.json.decode("utf-8", "replace")
            return model.Opaque(part.opaque.format, part.opaque.type, text, seal=seal, more=more)
    return None


def renderer_of(options: out.ProjectionOptions) -> str:
    """The renderer's name."""
    return options.renderer or _renderers(options)[0]


def _renderers(options: out.ProjectionOptions) -> tuple[str, ...]:
    return RENDERERS.get(options.target, (TARGETS[options.target],))


def check_options(options: out.ProjectionOptions, field: str) -> None:
    """Raises InvalidField for what cannot be, naming it under `field`."""
    if options.target not in TARGETS:
        raise InvalidField(
            f"{field}.target", f"is required: one of {', '.join(out.ProjectionTarget.keys()[1:])}"
        )
    names = _renderers(options)
    if options.renderer and options.renderer not in names:
        raise InvalidField(
            f"{field}.renderer", f"must be {' or '.join(names)} for this target, or empty"
        )
    if options.target != out.PROJECTION_TARGET_CODEX:
        given = {descriptor.name for descriptor, _ in options.ListFields()}
        for name in CODEX_ALONE:
            if name in given:
                raise InvalidField(
                    f"{field}.{name}",
                    f"is for the target codex alone: leave it out for {TARGETS[options.target]}",
                )
    if options.mode not in MODES:
        raise InvalidField(
            f"{field}.mode", "is unknown: give per turn, thread bootstrap, or nothing"
        )
    if options.payload_mode not in PAYLOADS:
        raise InvalidField(
            f"{field}.payload_mode", "is unknown: give preserve, shape, elide, or nothing"
        )
    for name in ("product_name", "dynamic_tools_fingerprint", "model", "provider"):
        _short(getattr(options, name), f"{field}.{name}", MAX_NAME_BYTES)
    _short(options.base_instructions, f"{field}.base_instructions", MAX_TEXT_BYTES)
    for name in ("max_chars", "token_budget", "reserve_tokens", "max_cache_breakpoints"):
        if options.HasField(name):
            _count(getattr(options, name), f"{field}.{name}")
    if options.HasField("max_chars") and options.max_chars == 0:
        raise InvalidField(f"{field}.max_chars", "is 0, which leaves no context: give at least 1")
    if len(options.host_events) > MAX_EVENTS:
        raise InvalidField(f"{field}.host_events", f"has more than {MAX_EVENTS}: send the newest")
    for index, event in enumerate(options.host_events):
        if event.kind not in _EVENTS:
            raise InvalidField(
                f"{field}.host_events[{index}].kind", "is required: say what happened"
            )
        _short(event.detail, f"{field}.host_events[{index}].detail", MAX_STATE_BYTES)


def events_of(options: out.ProjectionOptions) -> tuple[codex.ThreadEvent, ...]:
    """What happened in the harness."""
    return tuple(_EVENTS[event.kind] for event in options.host_events)


def binding_of(options: out.ProjectionOptions, field: str) -> codex.Binding | None:
    """What the harness kept with its thread. Raises InvalidField for a state that is none of
    ours."""
    if not options.HasField("binding"):
        return None
    given = options.binding
    field = f"{field}.binding"
    for name in ("thread_id", "engine_id", "epoch", "fingerprint", "dynamic_tools_fingerprint"):
        _short(
            getattr(given, name), f"{field}.{name}", MAX_STATE_BYTES if name == "epoch" else 4_096
        )
    _short(given.policy_fingerprint, f"{field}.policy_fingerprint", MAX_STATE_BYTES)
    for name in ("last_sequence", "first_sequence"):
        _count(getattr(given, name), f"{field}.{name}")
    state = _state(given.state, f"{field}.state")
    return codex.Binding(
        thread_id=given.thread_id,
        engine_id=given.engine_id,
        policy=given.policy_fingerprint,
        epoch=given.epoch,
        fingerprint=given.fingerprint,
        tools=given.dynamic_tools_fingerprint,
        last_sequence=given.last_sequence,
        first_sequence=given.first_sequence,
        schema=given.schema_version,
        mode=codex.Mode(state.get("mode", "thread_bootstrap" if given.epoch else "per_turn")),
        developer=str(state.get("developer", "")),
        cut=state.get("cut", {}),
    )


def state_of(binding: codex.Binding) -> bytes:
    """What the binding's open fields do not say."""
    state = {"mode": binding.mode.value, "developer": binding.developer, "cut": dict(binding.cut)}
    return json.dumps(state, separators=(",", ":"), sort_keys=True).encode()


def _state(raw: bytes, field: str) -> dict[str, Any]:
    if not raw:
        return {}
    try:
        state: Any = json.loads(raw) if len(raw) <= MAX_STATE_BYTES else {}
        codex.Mode(state["mode"])
        cuts = state["cut"].items()
        if isinstance(state["developer"], str) and all(
            isinstance(at, int) and at >= 0 for _, at in cuts
        ):
            return dict(state)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise InvalidField(
        field, "is not what a projection answered: give it back as it was, or no binding"
    )


def _short(text: str, field: str, limit: int) -> None:
    if len(text.encode()) > limit:
        raise InvalidField(field, f"is longer than {limit} bytes: shorten it")


def _count(value: int, field: str) -> None:
    if not 0 <= value <= MAX_COUNT:
        raise InvalidField(field, f"is {value}: give 0 to {MAX_COUNT}")


def list_items(messages: Sequence[pb.Message]) -> list[model.Item]:
    """The messages of a list, in order. Their places count as sequences: a binding tells by them
    what its thread has seen."""
    return [
        message_in(message, message.id or f"list:{at - 1}", at)
        for at, message in enumerate(messages, 1)
    ]
