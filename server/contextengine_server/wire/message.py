"""Reading a message once, when it arrives: its traits, its content's hash, what is to be counted,
its bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from operator import attrgetter
from sys import intern

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import HASH_BYTES, MadeBy, ReadKey, Traits
from contextengine_server.errors import InvalidField
from contextengine_server.notices import parted
from contextengine_server.tokens import MESSAGE_TOKENS, NAME_TOKENS, file_tokens, image_tokens

from .bounded import MIN_MARKED_BYTES, mark_runs, may_be_bounded
from .checks import KIND, TEXT, check_parts
from .encoded_runs import may_hold_runs
from .reads import call_key, facts_of_result, read_key
from .thoughts import made_by, thinking_of

OWN_PREFIX = "ce:"
"""Ids of items that the service made; never stored when they come back."""

PINNED, EXCLUDED = "pinned", "excluded"
ACKNOWLEDGEMENT, MAX_ACKNOWLEDGEMENT = "HEARTBEAT_OK", 32
"""What a model answers to a heartbeat where there is nothing to do, in OpenClaw."""
_AROUND = " \t\r\n*`_.!"
_TEXT_OF = attrgetter("text.text")
NOBODY: MadeBy = ("", "", "")
Parts = Sequence[pb.Part] | None
"""A message's own parts, where they were taken out of it before: protobuf goes through them by
number, and ends that with an IndexError whose text nobody reads. A slice does neither."""
Kinds = Sequence[str | None] | None
"""What these are."""
_SAID = frozenset({"text", "image", "file"})
"""Kinds of parts that neither call a tool nor answer one, nor are reasoning."""


@dataclass(slots=True)
class Incoming:
    """A message that arrived, read."""

    id: str
    traits: Traits
    hash: bytes
    body: bytes
    texts: list[str]
    """What is to be counted as text."""
    fixed_tokens: int
    """What is estimated otherwise: framing, images, files."""
    time_ms: int | None
    plain: bool
    """Its encoding holds no base64."""
    own: bool = False
    """True for an item of the service that came back, known by its id or, within a session, by its
    content."""
    tokens: int = 0
    """Set once counted."""
    counted_in: str = ""
    """The encoding that it was counted in; empty: it is not counted yet."""


@lru_cache(maxsize=64)
def _plain(
    role: int,
    part_count: int,
    pinned: bool,
    excluded: bool,
    by: MadeBy,
    images: tuple[int, ...],
    heartbeat: bool,
) -> Traits:
    return Traits(
        role=role,
        part_count=part_count,
        images=images,
        pinned=pinned,
        excluded=excluded,
        made_by=by,
        heartbeat=heartbeat,
    )


def _places(kind: str, kinds: Sequence[str | None]) -> tuple[int, ...]:
    """Where parts of a kind are."""
    return tuple(index for index, one in enumerate(kinds) if one == kind)


def is_pinned(message: pb.Message) -> bool:
    """True where the message carries the label `pinned`, with any value but `false`."""
    return bool(message.labels) and message.labels.get(PINNED, "false") != "false"


def is_excluded(message: pb.Message) -> bool:
    """True for a harness's own entry with the label `excluded`, with any value but `false`: it is
    stored, and shown to no model. A message of another role is what was said, and is shown."""
    return (
        message.role == pb.ROLE_CUSTOM
        and bool(message.labels)
        and message.labels.get(EXCLUDED, "false") != "false"
    )


def outward(
    parts: Sequence[pb.Part], kinds: Kinds = None
) -> tuple[list[pb.ToolCallPart], list[tuple[int, str]]]:
    """Of a message with these parts: the calls that wait for a result from another message, and the
    results, as (part index, call id), that answer one. `kinds`: of the parts, where they are known.

    A call that its own message answers (a tool that the provider runs) needs nothing from outside.
    """
    kinds = [*map(KIND, parts)] if kinds is None else kinds
    if "tool_result" not in kinds:
        calling = zip(parts, kinds, strict=True)
        return [part.tool_call for part, kind in calling if kind == "tool_call"], []
    if "tool_call" not in kinds:
        found = [
            (index, parts[index].tool_result.call_id)
            for index, kind in enumerate(kinds)
            if kind == "tool_result"
        ]
        return [], found
    calls: list[pb.ToolCallPart] = []
    results: list[tuple[int, str]] = []
    waiting: dict[str, list[int]] = {}
    answered: set[int] = set()
    for index, (part, kind) in enumerate(zip(parts, kinds, strict=True)):
        if kind == "tool_call":
            waiting.setdefault(part.tool_call.call_id, []).append(len(calls))
            calls.append(part.tool_call)
        elif kind == "tool_result":
            call_id = part.tool_result.call_id
            if waiting.get(call_id):
                answered.add(waiting[call_id].pop(0))
            else:
                results.append((index, call_id))
    return [call for place, call in enumerate(calls) if place not in answered], results


def read_traits(message: pb.Message, parts: Parts = None, kinds: Kinds = None) -> Traits:
    """What the laws must know of the message."""
    parts = message.parts[:] if parts is None else parts
    kinds = [*map(KIND, parts)] if kinds is None else kinds
    thinking, by = None, NOBODY
    if message.role == pb.ROLE_ASSISTANT:
        thinking, by = thinking_of(message, parts, kinds), made_by(message)
    images = _places("image", kinds) if "image" in kinds else ()
    if thinking is None and _SAID.issuperset(kinds):
        marked = bool(message.labels)
        return _plain(
            message.role,
            len(parts),
            marked and is_pinned(message),
            marked and is_excluded(message),
            by,
            images,
            message.is_heartbeat or (message.role == pb.ROLE_ASSISTANT and is_heartbeat(message)),
        )
    calls, results = outward(parts, kinds)
    reasoning = (
        [parts[at].reasoning for at, kind in enumerate(kinds) if kind == "reasoning"]
        if "reasoning" in kinds
        else []
    )
    pinned, excluded = is_pinned(message), is_excluded(message)
    if not calls and not results and not reasoning and thinking is None:
        return _plain(message.role, len(parts), pinned, excluded, by, images, message.is_heartbeat)
    ids: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    asked: tuple[bytes, ...] = ()
    reads: tuple[ReadKey | None, ...] = ()
    if calls:
        given = [(call.name, call.arguments_json) for call in calls]
        ids = tuple([call.call_id for call in calls])
        tools = tuple([intern(name) for name, _ in given])
        asked = tuple([call_key(name, arguments) for name, arguments in given])
        reads = tuple([read_key(name, arguments) for name, arguments in given])
    notices = bool(results) and message.role == pb.ROLE_USER and _only_notices(parts, kinds)
    failed: list[int] = []
    pictured: list[int] = []
    silent: list[int] = []
    chars: list[int] = []
    texts: list[bytes] = []
    for index, _ in results:
        answer = facts_of_result(parts[index].tool_result)
        chars.append(answer.chars)
        texts.append(answer.text)
        if answer.failed:
            failed.append(index)
        if answer.pictured:
            pictured.append(index)
        if answer.silent:
            silent.append(index)
    return Traits(
        role=message.role,
        part_count=len(parts),
        calls=ids,
        results=tuple(results),
        tools=tools,
        asked=asked,
        reads=reads if any(reads) else (),
        failed=tuple(failed),
        pictured=tuple(pictured),
        images=images,
        chars=tuple(chars),
        texts=tuple(texts),
        silent=tuple(silent),
        # A user's words are no model's: what is sealed among them stays as it is in every form.
        sealed=bool(reasoning)
        and message.role != pb.ROLE_USER
        and any(part.signature or part.redacted_data for part in reasoning),
        only_reasoning=len(reasoning) == len(parts),
        pinned=pinned,
        excluded=excluded,
        notices=notices,
        thinking=thinking,
        made_by=by,
    )


def _only_notices(parts: Sequence[pb.Part], kinds: Sequence[str | None]) -> bool:
    """True where what stands beside results is a harness's text, and some does."""
    beside = [part for part, kind in zip(parts, kinds, strict=True) if kind != "tool_result"]
    texts = "text" in kinds and {"text", "tool_result"}.issuperset(kinds)
    return texts and not any(parted(part.text.text)[0].strip() for part in beside)


def is_heartbeat(message: pb.Message) -> bool:
    """True for a message that the host marks as a heartbeat's, and for a reply that is nothing but
    the acknowledgement."""
    if message.is_heartbeat or message.role != pb.ROLE_ASSISTANT or len(message.parts) != 1:
        return message.is_heartbeat
    text = message.parts[0].text.text
    return len(text) <= MAX_ACKNOWLEDGEMENT and text.strip(_AROUND).upper() == ACKNOWLEDGEMENT


def content_hash(message: pb.Message, parts: Parts = None) -> bytes:
    """Names a message's content: role, name, parts. Not its times, usage, labels or native form."""
    digest = blake2b(digest_size=HASH_BYTES)
    digest.update(message.role.to_bytes(8, "big", signed=True))
    hashed = [message.custom_role.encode(), message.name.encode()]
    for part in message.parts[:] if parts is None else parts:
        hashed.append(part.SerializeToString(deterministic=True))
    for encoded in hashed:
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.digest()


def texts_of(parts: Iterable[pb.Part], texts: list[str]) -> int:
    """Adds what is to be counted as text; answers the tokens of what is estimated otherwise."""
    fixed = 0
    for part in parts:
        kind = part.WhichOneof("kind")
        if kind == "text":
            texts.append(part.text.text)
        elif kind == "tool_call":
            texts.append(part.tool_call.name)
            texts.append(part.tool_call.arguments_json.decode("utf-8", "replace"))
        elif kind == "tool_result":
            fixed += texts_of(part.tool_result.parts[:], texts)
        elif kind == "reasoning":
            texts.append(part.reasoning.text)
            fixed += (
                file_tokens(len(part.reasoning.redacted_data))
                if part.reasoning.redacted_data
                else 0
            )
        elif kind == "image":
            fixed += image_tokens(
                part.image.width or None, part.image.height or None, part.image.detail
            )
        elif kind == "file":
            size = len(part.file.data) or part.file.size_bytes
            fixed += file_tokens(size if size > 0 else None)
        elif kind == "opaque":
            texts.append(part.opaque.json.decode("utf-8", "replace"))
    return fixed


def countable(
    message: pb.Message, parts: Parts = None, kinds: Kinds = None
) -> tuple[list[str], int]:
    """The texts of a message that are to be counted, and the tokens of what is estimated
    otherwise."""
    texts: list[str] = []
    fixed = MESSAGE_TOKENS
    parts = message.parts[:] if parts is None else parts
    if TEXT.issuperset(map(KIND, parts) if kinds is None else kinds):
        texts += map(_TEXT_OF, parts)
    else:
        fixed += texts_of(parts, texts)
    if message.name:
        texts.append(message.name)
        fixed += NAME_TOKENS
    return texts, fixed


def read(message: pb.Message, field: str) -> Incoming:
    """Reads a message that arrived. Raises InvalidField, naming what is wrong under `field`."""
    parts = message.parts[:]
    kinds = [*map(KIND, parts)]
    _check(message, parts, kinds, field)
    traits = read_traits(message, parts, kinds)
    body = message.SerializeToString(deterministic=True)
    plain = len(body) <= MIN_MARKED_BYTES or not may_hold_runs(body)
    if not plain and may_be_bounded(traits):
        counted = pb.Message.FromString(body)
        mark_runs(counted, 0)
        texts, fixed = countable(counted)
    else:
        texts, fixed = countable(message, parts, kinds)
    time_ms = None
    if message.HasField("timestamp"):
        time_ms = message.timestamp.seconds * 1000 + message.timestamp.nanos // 1_000_000
    return Incoming(
        id=message.id,
        traits=traits,
        hash=content_hash(message, parts),
        body=body,
        texts=texts,
        fixed_tokens=fixed,
        time_ms=time_ms,
        plain=plain,
        own=message.id.startswith(OWN_PREFIX),
    )


MAX_ID_BYTES = 256
MAX_FORMAT_BYTES = 64
MAX_PARTS = 10_000
_TIMESTAMP_RANGE = (-62_135_596_800, 253_402_300_799)


_NAMED = ("id", "custom_role", "name", "idempotency_key")


def _check(
    message: pb.Message, parts: Sequence[pb.Part], kinds: Sequence[str | None], field: str
) -> None:
    if message.role == pb.ROLE_UNSPECIFIED:
        raise InvalidField(f"{field}.role", "is required: say who speaks, for example ROLE_USER")
    if message.role == pb.ROLE_CUSTOM and not message.custom_role:
        raise InvalidField(f"{field}.custom_role", "is required with ROLE_CUSTOM: name the role")
    named = message.id, message.custom_role, message.name, message.idempotency_key
    for name, given in zip(_NAMED, named, strict=True) if any(named) else ():
        if not given:
            continue
        if len(given.encode()) > MAX_ID_BYTES:
            raise InvalidField(
                f"{field}.{name}", f"is longer than {MAX_ID_BYTES} bytes: shorten it"
            )
        if "\0" in given:
            raise InvalidField(f"{field}.{name}", "holds a NUL character: remove it")
    if len(parts) > MAX_PARTS:
        raise InvalidField(
            f"{field}.parts",
            f"has {len(parts)} parts, at most {MAX_PARTS} are allowed: split the message",
        )
    if message.HasField("native") and len(message.native.format.encode()) > MAX_FORMAT_BYTES:
        raise InvalidField(
            f"{field}.native.format", f"is longer than {MAX_FORMAT_BYTES} bytes: shorten it"
        )
    if message.HasField("timestamp"):
        lowest, highest = _TIMESTAMP_RANGE
        if (
            not lowest <= message.timestamp.seconds <= highest
            or not 0 <= message.timestamp.nanos < 1_000_000_000
        ):
            raise InvalidField(f"{field}.timestamp", "must be a time in the years 1 to 9999")
    if not TEXT.issuperset(kinds):
        check_parts(parts, f"{field}.parts")
