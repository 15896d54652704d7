"""The rules of Gemini's `contents`. Sources in brackets; `local`: read in the google-genai SDK 3.4.

Field names in either spelling, as the API takes them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ..rules import Breach, RuleFinding, mapping, numbered, objects, prefix_breaks, run

DATA = (
    "text",
    "inline_data",
    "file_data",
    "function_call",
    "function_response",
    "executable_code",
    "code_execution_result",
    "tool_call",
    "tool_response",
)
BESIDE = ("thought", "thought_signature", "video_metadata", "media_resolution", "part_metadata")
STAND_IN = "skip_thought_signature_validator"
_NEWER = re.compile(r"gemini-(\d+)")

PartJson = Mapping[str, Any]


class GeminiRequest(msgspec.Struct, frozen=True):
    """A request as far as the rules look at it, field names in one spelling."""

    contents: list[Any]
    system: Any = None
    model: str = ""
    signatures: Collection[str] | None = None
    earlier: Sequence[Any] = ()

    @property
    def turns(self) -> list[tuple[str, str, list[PartJson]]]:
        """Each content: its path, its role, its parts."""
        return [
            (path, str(content.get("role")), objects(content.get("parts")))
            for path, content in numbered(self.contents, "contents")
        ]


def validate(
    body: Any,
    model: str = "",
    *,
    signatures: Collection[str] | None = None,
    earlier: Sequence[Any] = (),
) -> list[RuleFinding]:
    """The findings on a list of contents, or on a request. `model` decides whether signatures are
    checked (from Gemini 3 on); `signatures`: those that it made, where that is known; `earlier`:
    the contents of a request before."""
    plain = _snake(body)
    whole = plain if isinstance(plain, Mapping) else {"contents": plain}
    contents = whole.get("contents")
    if not isinstance(contents, list):
        return [RuleFinding("G1", "contents", "is not a list")]
    named = str(whole.get("model") or model).removeprefix("models/")
    subject = GeminiRequest(
        contents, whole.get("system_instruction"), named, signatures, _snake(list(earlier))
    )
    return run((g1, g2, g3, g4, g5, g6, g7, g8, g9, g10), subject)


def g1(subject: GeminiRequest) -> Iterator[Breach]:
    """Roles are user and model; system text goes into systemInstruction (the SDK checks no roles,
    local)."""
    for path, role, _ in subject.turns:
        if role not in ("user", "model"):
            yield f"{path}.role", f"is {role!r}"
    system = mapping(subject.system)
    if subject.system is not None and not all(
        "text" in part for part in objects(system.get("parts"))
    ):
        yield "system_instruction", "holds something else than text"


def g2(subject: GeminiRequest) -> Iterator[Breach]:
    """Each part has exactly one field of data, and a content has parts (the SDK takes less and
    more, local; the API's rule is inferred)."""
    for path, _, parts in subject.turns:
        if not parts:
            yield f"{path}.parts", "is empty"
        for index, part in enumerate(parts):
            if sum(name in part for name in DATA) != 1:
                yield f"{path}.parts[{index}]", "does not have exactly one field of data"
            elif part.get("text") == "" and "thought_signature" not in part:
                yield f"{path}.parts[{index}].text", "is empty"


def g3(subject: GeminiRequest) -> Iterator[Breach]:
    """There are contents; a turn of calls comes right after the user's or after results; history
    does not begin with the model [google-gemini/gemini-cli#26486, #11814]."""
    if not subject.contents:
        yield "contents", "is empty"
    before = ""
    for path, role, parts in subject.turns:
        if _calls(parts) and before != "user":
            yield path, "a call does not come right after a turn of the user or of results"
        elif not before and role == "model":
            yield path, "the history begins with the model"
        before = role


def g4(subject: GeminiRequest) -> Iterator[Breach]:
    """A turn of results comes right after the turn of its calls [langchain#27799, langgraph#2276,
    litellm#26755]."""
    before: list[PartJson] = []
    for path, role, parts in subject.turns:
        if _responses(parts) and (not _calls(before) or role != "user"):
            yield path, "results do not come right after calls"
        before = parts


def g5(subject: GeminiRequest) -> Iterator[Breach]:
    """There are as many results as the turn before has calls, in one content [gemini-cli#3814,
    #16543]."""
    turns = subject.turns
    for (path, _, parts), following in zip(turns, [*turns, ("", "", [])][1:], strict=True):
        wanted, found = len(_calls(parts)), len(_responses(following[2]))
        if wanted and wanted != found:
            yield path, f"{wanted} calls are followed by {found} results"


def g6(subject: GeminiRequest) -> Iterator[Breach]:
    """A result has its call's name, and its id where there is one [google-genai field docs]."""
    before: list[PartJson] = []
    for path, _, parts in subject.turns:
        calls = [(call.get("name"), call.get("id")) for call in _calls(before)]
        for response in _responses(parts):
            if not response.get("name") or (
                calls and (response["name"], response.get("id")) not in calls
            ):
                yield path, f"the result of {response.get('name')!r} has the name and id of no call"
        before = parts


def g7(subject: GeminiRequest) -> Iterator[Breach]:
    """`args` and `response` are objects; `output` and `error` are the keys for plain results
    [local: text is rejected]."""
    for path, _, parts in subject.turns:
        for call in _calls(parts):
            if not isinstance(call.get("args", {}), Mapping):
                yield path, "args is not an object"
        for response in _responses(parts):
            if not isinstance(response.get("response"), Mapping):
                yield path, "response is not an object"


def g8(subject: GeminiRequest) -> Iterator[Breach]:
    """From Gemini 3 on, in the turn that goes on (behind the user's last ordinary content), the
    first call of each step carries a thoughtSignature
    [ai.google.dev/gemini-api/docs/thought-signatures]."""
    found = _NEWER.match(subject.model)
    if found is None or int(found[1]) < 3:
        return
    turns = subject.turns
    ordinary = [
        at
        for at, (_, role, parts) in enumerate(turns)
        if role == "user" and len(_responses(parts)) < len(parts)
    ]
    for path, _, parts in turns[(ordinary[-1] if ordinary else -1) + 1 :]:
        calls = [part for part in parts if "function_call" in part]
        if calls and not calls[0].get("thought_signature"):
            yield path, "the first call of the step has no thoughtSignature"


def g9(subject: GeminiRequest) -> Iterator[Breach]:
    """A signature stays in the part that it came in, unaltered; the documented stand-in is
    `skip_thought_signature_validator` [erain/glue v1.8.0, strands-agents#1298]."""
    for path, role, parts in subject.turns:
        for index, part in enumerate(parts):
            signature = part.get("thought_signature")
            if signature is None:
                continue
            where = f"{path}.parts[{index}].thought_signature"
            if role != "model" or "function_response" in part:
                yield where, "stands on a part that no model made"
            elif not signature:
                yield where, "is empty"
            elif subject.signatures is not None and signature not in (
                *subject.signatures,
                STAND_IN,
            ):
                yield where, "is none that this model made"


def g10(subject: GeminiRequest) -> Iterator[Breach]:
    """A part has no unknown keys [local: refused]. What was sent before comes again as it was, for
    the cache's sake."""
    for path, _, parts in subject.turns:
        for index, part in enumerate(parts):
            for name in part:
                if name not in DATA and name not in BESIDE:
                    yield f"{path}.parts[{index}].{name}", "is unknown"
    yield from prefix_breaks(subject.earlier, subject.contents, "contents")


def _calls(parts: Sequence[PartJson]) -> list[Mapping[str, Any]]:
    return [mapping(part["function_call"]) for part in parts if "function_call" in part]


def _responses(parts: Sequence[PartJson]) -> list[Mapping[str, Any]]:
    return [mapping(part["function_response"]) for part in parts if "function_response" in part]


def _snake(value: Any, free: bool = False) -> Any:
    """The value with the API's own keys in snake_case; what a tool's arguments and results hold
    stays."""
    if isinstance(value, list):
        return [_snake(inner, free) for inner in value]
    if not isinstance(value, Mapping) or free:
        return value
    return {
        (
            name := re.sub(r"(?<=[a-z])([A-Z])", lambda found: "_" + found[1].lower(), str(key))
        ): _snake(inner, name in ("args", "response"))
        for key, inner in value.items()
    }
