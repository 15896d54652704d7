"""Wire to projection: messages, and items of an assembly, as the projection room knows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.projection import model
from contextengine_server.wire.privacy import WRITES_TAGS, is_reasoning, spoken_parts, told_apart

_ROLES = {
    pb.ROLE_USER: model.ChatRole.USER,
    pb.ROLE_ASSISTANT: model.ChatRole.ASSISTANT,
    pb.ROLE_TOOL: model.ChatRole.TOOL,
    pb.ROLE_SYSTEM: model.ChatRole.SYSTEM,
    pb.ROLE_DEVELOPER: model.ChatRole.DEVELOPER,
}
_RESPONSES = "openai.responses"
"""The one target that takes an opaque item of reasoning back."""
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
        parts=_spoken(message),
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


def _spoken(message: pb.Message) -> tuple[model.Part, ...]:
    """The message's parts, with reasoning that was written as text told apart from what was said: a
    target shows it where it shows reasoning, and nowhere else."""
    texts = [part.text.text for part in message.parts if part.WhichOneof("kind") == "text"]
    if message.role not in WRITES_TAGS or not any("<" in text for text in texts):
        return parts_in(message.parts)
    pieces = iter(told_apart(texts))
    known = any(part.WhichOneof("kind") == "reasoning" for part in message.parts)
    made: list[model.Part] = []
    for part in message.parts:
        shown = _part(part)
        if isinstance(shown, model.Text):
            spoken, hidden = next(pieces)
            if spoken != shown.text:
                # Beside signed reasoning none may stand without a signature.
                made += [] if known else [model.Reasoning(hidden)]
                known = True
                shown = model.Text(spoken, more=shown.more) if spoken.strip() else None
        made += [shown] if shown is not None else []
    return tuple(made)


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
            # A result may hold the reasoning of the model that produced it (a subagent's, say). No
            # provider accepts reasoning inside a result.
            inner = parts_in(spoken_parts(result.parts))
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
        case "opaque" if is_reasoning(part) and part.opaque.format != _RESPONSES:
            return model.Reasoning("", seal=seal, more=more)
        case "opaque":
            text = part.opaque.json.decode("utf-8", "replace")
            named = "reasoning" if is_reasoning(part) else part.opaque.type
            return model.Opaque(part.opaque.format, named, text, seal=seal, more=more)
    return None


def list_items(messages: Sequence[pb.Message]) -> list[model.Item]:
    """The messages of a list, in order. Their places count as sequences: a binding tells by them
    what its thread has seen."""
    return [
        message_in(message, message.id or f"list:{at - 1}", at)
        for at, message in enumerate(messages, 1)
    ]
