"""A context as `systemInstruction` and `contents` of Gemini.

What the form cannot say: instructions in the middle, harnesses' own roles, arguments that are no object, whether a result was
one text or several, what a medium in a result was besides a line, and contents of one role that stood side by side.
"""

from __future__ import annotations

import re

from ..describing import placeholder
from ..model import Call, File, Image, Loss, Opaque, Part, Reasoning, Result, Role, Text, text_of
from ..naming import CallIds
from ..pairing import Said
from ..rendering import (
    OPENER,
    Json,
    ProviderTask,
    Rendered,
    encoded,
    made_here,
    more_of,
    object_of,
    said_of,
)

DIALECT = "gemini.content"
STAND_IN = "skip_thought_signature_validator"
"""What Gemini documents for a call whose signature there is none of: history of another model, or made up."""
INVENTED = "gemini-"
"""Ids of calls that came without one begin so; they are not sent."""

_NEWER = re.compile(r"gemini-(\d+)")


def render(task: ProviderTask) -> Rendered:
    """The contents, turns of one role merged; results of a turn's calls together in one content of their own."""
    losses: list[Loss] = []
    leading, rest = said_of(task, losses)
    ids = CallIds(losses)
    texts = [task.instructions] if task.instructions.strip() else []
    texts += [part.text for said in leading for part in said.parts if isinstance(part, Text) and part.text]
    contents: list[Json] = []
    # Only the turn that goes on is checked, but a stand-in that came and went would break the cached prefix.
    signed = _signs(task.model)
    for said in rest:
        _add(contents, said, ids, losses, made_here(task, said.item, "google"), signed)
    if contents and contents[0]["role"] == "model":
        contents.insert(0, {"role": "user", "parts": [{"text": OPENER}]})
        losses.append(Loss(-1, "the list begins with the model: a line of the user stands before it", "G3"))
    system = {"parts": [{"text": text} for text in texts]} if texts else None
    return Rendered(contents, system, "\n\n".join(texts), losses)


def _signs(model: str) -> bool:
    """True for Gemini 3 and newer, which check signatures."""
    found = _NEWER.match(model)
    return found is not None and int(found[1]) >= 3


def _add(
    contents: list[Json], said: Said, ids: CallIds, losses: list[Loss], kept: bool, signed: bool
) -> None:
    model = said.item.role is Role.ASSISTANT
    if not model and said.item.role is not Role.USER:
        losses.append(
            Loss(said.index, f"a {said.item.role.value} message in the middle: the user's text", "G1")
        )
    parts: list[Json] = []
    responses: list[Json] = []
    answers = iter(said.answers)
    for part in said.parts:
        if not isinstance(part, Call):
            made = _part(part, said, losses, kept)
            parts += [made] if made is not None else []
            continue
        answered = next(answers)
        name = ids.name(part.id, answered.key, said.index)
        with_id = {} if name.startswith(INVENTED) and said.item.dialect == DIALECT else {"id": name}
        given, whole = object_of(part.arguments)
        if not whole:
            losses.append(Loss(said.index, "arguments that are no JSON object: carried as text", "G7"))
        call: Json = {"functionCall": {**with_id, "name": part.name, "args": given}}
        if part.seal and kept:
            call["thoughtSignature"] = _seal(part)
        elif part.seal:
            losses.append(Loss(said.index, "a signature of another model", "G9"))
        if signed and not responses and "thoughtSignature" not in call:
            call["thoughtSignature"] = STAND_IN
        parts.append(call)
        response = _response(answered.result, said, losses)
        responses.append({"functionResponse": {**with_id, "name": part.name, "response": response}})
    if not parts:
        losses.append(Loss(said.index, "a message without content", "G2"))
        return
    role = "model" if model else "user"
    if contents and contents[-1]["role"] == role and not _answers(contents[-1]):
        contents[-1]["parts"] += parts
    else:
        contents.append({"role": role, "parts": parts})
    if responses:
        contents.append({"role": "user", "parts": responses})


def _answers(content: Json) -> bool:
    return any("functionResponse" in part for part in content["parts"])


def _seal(part: Part) -> str:
    return STAND_IN if part.seal == STAND_IN.encode() else encoded(part.seal)


def _part(part: Part, said: Said, losses: list[Loss], kept: bool) -> Json | None:
    sealed = {"thoughtSignature": _seal(part)} if part.seal and kept else {}
    match part:
        case Text():
            if not part.text and not sealed:
                return None
            return {"text": part.text, **sealed}
        case Reasoning():
            if not kept or not part.text:
                losses.append(Loss(said.index, "thoughts of another model", "G9"))
                return None
            return {"text": part.text, "thought": True, **sealed}
        case Image() | File() if part.data is not None and part.mime:
            return {"inlineData": {"mimeType": part.mime, "data": encoded(part.data)}, **sealed}
        case Image() | File() if part.data is None and part.uri:
            typed = {"mimeType": part.mime} if part.mime else {}
            return {"fileData": {**typed, "fileUri": part.uri}, **sealed}
    losses.append(Loss(said.index, "a part that has no place here: a line instead", "G2"))
    return {"text": placeholder(part) if isinstance(part, Image | File | Opaque) else ""}


def _response(result: Result, said: Said, losses: list[Loss]) -> Json:
    """A result as an object: `output`, or `error` where the tool failed; an object that came from Gemini comes back as it was."""
    if more_of(result, said.item, DIALECT).get("response") == "object":
        given, whole = object_of(text_of(result.parts))
        if whole:
            return given
    texts = [part.text if isinstance(part, Text) else placeholder(part) for part in result.parts]
    if any(not isinstance(part, Text) for part in result.parts):
        losses.append(Loss(said.index, "a medium in a tool's result: a line in its place", "G7"))
    return {"error" if result.is_error else "output": "\n".join(texts)}
