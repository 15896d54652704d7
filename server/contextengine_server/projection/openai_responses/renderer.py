"""A context as `input` of OpenAI Responses.

Ids of items are left out, but for reasoning, which is sent back only to the model that made it,
with what it produced right behind it. What the form cannot say: whether a tool failed, the name of
a harness's own role, names of participants, and whether one text stood alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from ..call_ids import CallIdFormat
from ..fragments import Fragment, JsonObject, extended, fragment_of, listed, more_of, own_item
from ..media import IMAGES, data_url, is_provider_file, is_web_address, resolved
from ..model import ChatRole, File, Image, Item, Opaque, Part, Reasoning, Text, ToolCall
from ..placeholders import placeholder
from ..provider import ProviderTask, Rendered, made_here
from ..render_state import RenderState, write_items
from ..text import dumped
from ..tool_pairs import Answered, Lost, PairedMessage

DIALECT = "openai.responses"
PROVIDERS = ("openai", "azure", "azure-openai", "openai-codex")
"""Names of the provider, by which reasoning is known to be its own."""
_DETAILS = ("auto", "low", "high", "original")


def render(task: ProviderTask) -> Rendered:
    """The input items. `instructions` is the system prompt; the session's own leading instructions
    are items."""
    provider, model = task.provider, task.model
    state = write_items(
        task, (DIALECT, provider, model), lambda: _State(task.call_ids, provider, model)
    )
    system = dumped(task.instructions) if task.instructions else b""
    return Rendered(listed(state.entries), system, task.instructions, state.losses)


class _State(RenderState):
    def __init__(self, call_ids: CallIdFormat, provider: str, model: str) -> None:
        super().__init__(call_ids)
        self._provider, self._model = provider, model
        self.entries: list[bytes] = []

    def fork(self) -> Self:
        twin = super().fork()
        twin.entries = [*self.entries]
        return twin

    def write(self, index: int, message: PairedMessage, names: Sequence[str]) -> None:
        kept = message.sealed and made_here(message.item, PROVIDERS, self._provider, self._model)
        fragment = message.made((DIALECT, kept, names), _written, names, kept)
        if fragment.json:
            self.entries.append(fragment.json)
        if fragment.lost:
            self.lose(index, fragment.lost)


def _written(message: PairedMessage, names: Sequence[str], kept: bool) -> Fragment:
    """A message's items: its texts together until a call or reasoning parts them, outputs behind
    the calls."""
    made: list[JsonObject] = []
    content: list[JsonObject] = []
    outputs: list[JsonObject] = []
    thought: list[JsonObject] = []
    lost: list[Lost] = []
    answers = zip(message.answers, names, strict=True)
    item = message.item

    def flush() -> None:
        if content:
            made.append(_message(item.role, list(content)))
            content.clear()

    for part in message.parts:
        if isinstance(part, ToolCall):
            flush()
            call, output = _pair(*next(answers), item, lost)
            made += [*thought, call]
            thought.clear()
            outputs.append(output)
        elif isinstance(part, Reasoning):
            flush()
            if kept and part.item_id and (part.redacted or part.text):
                thought.append(_reasoning(part, item))
            else:
                lost.append(("reasoning that another model made, or without its id", "R8"))
        elif isinstance(part, Opaque) and part.format == DIALECT and (own := own_item(part)):
            if own["type"] == "reasoning" and not kept:
                lost.append(("reasoning that another model made, or without its id", "R8"))
                continue
            made += thought
            thought.clear()
            if part.type in ("refusal", "output_text", "input_text", "input_file", "input_audio"):
                content.append(own)
            else:
                flush()
                made.append(own)
        else:
            made += thought
            thought.clear()
            content.append(_part(part, item, lost))
    flush()
    if thought:
        lost.append(("reasoning without what it produced", "R8"))
    if not message.parts:
        kind = "output_text" if item.role is ChatRole.ASSISTANT else "input_text"
        made.append(_message(item.role, [{"type": kind, "text": ""}]))
    return fragment_of([*made, *outputs], lost)


def _message(role: ChatRole, content: list[JsonObject]) -> JsonObject:
    """A message. The model's plain text is said the short way: the long one is for items with ids,
    which are left out."""
    plain = (
        role is ChatRole.ASSISTANT and len(content) == 1 and content[0].keys() == {"type", "text"}
    )
    return {
        "type": "message",
        "role": role.value,
        "content": content[0]["text"] if plain else content,
    }


def _reasoning(part: Reasoning, item: Item) -> JsonObject:
    summary = [{"type": "summary_text", "text": part.text}] if part.text else []
    made: JsonObject = {"type": "reasoning", "id": part.item_id, "summary": summary}
    if part.redacted:
        made["encrypted_content"] = part.redacted.decode("utf-8", "replace")
    return extended(made, part, item, DIALECT)


def _pair(
    answered: Answered, name: str, item: Item, lost: list[Lost]
) -> tuple[JsonObject, JsonObject]:
    call, result = answered.call, answered.result
    custom = more_of(call, item, DIALECT).get("type") == "custom_tool_call"
    kind, given = ("custom_tool_call", "input") if custom else ("function_call", "arguments")
    made: JsonObject = {"type": kind, "call_id": name, "name": call.name, given: call.arguments}
    if call.namespace:
        made["namespace"] = call.namespace
    made = extended(made, call, item, DIALECT)
    if result.is_error:
        lost.append(("that the tool failed: the form has no place for it", "R6"))
    output: Any = [_output(part, lost) for part in result.parts]
    if len(output) < 2 and all(part.keys() == {"type", "text"} for part in output):
        output = "".join(part["text"] for part in output)
    return made, {"type": f"{kind}_output", "call_id": name, "output": output}


def _part(part: Part, item: Item, lost: list[Lost]) -> JsonObject:
    speaks = "output_text" if item.role is ChatRole.ASSISTANT else "input_text"
    if isinstance(part, Text):
        return extended({"type": speaks, "text": part.text}, part, item, DIALECT)
    medium = (
        _medium(part) if item.role is ChatRole.USER and isinstance(part, Image | File) else None
    )
    if medium is not None:
        return extended(medium, part, item, DIALECT)
    lost.append(("a part that has no place in this message: a line instead", "R7"))
    return {"type": speaks, "text": placeholder(part)}


def _output(part: Part, lost: list[Lost]) -> JsonObject:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    medium = _medium(part) if isinstance(part, Image | File) else None
    if medium is not None:
        return medium
    lost.append(("a part that has no place in a tool's result: a line instead", "R6"))
    return {"type": "input_text", "text": placeholder(part)}


def _medium(part: Image | File) -> JsonObject | None:
    """A medium, by its bytes, its address or the name that the provider gave it; None where it has
    none of these."""
    medium = resolved(part)
    if medium is None or not (medium.data or is_web_address(medium) or is_provider_file(medium)):
        return None
    if isinstance(medium, Image):
        if medium.data is not None and medium.mime not in IMAGES:
            return None
        url = data_url(medium) if medium.data is not None else medium.uri
        where = {"file_id": medium.uri} if is_provider_file(medium) else {"image_url": url}
        detail = medium.detail if medium.detail in _DETAILS else "auto"
        return {"type": "input_image", "detail": detail, **where}
    name = {"filename": medium.name} if medium.name else {}
    if medium.data is not None:
        return {"type": "input_file", **name, "file_data": data_url(medium)}
    where = {"file_id": medium.uri} if is_provider_file(medium) else {"file_url": medium.uri}
    return {"type": "input_file", **name, **where}
