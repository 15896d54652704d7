"""What is shown of a message, encoded: whole, in part, as a note, or made up in place of what is
missing.

An item's frame is an entry of `AssembleResponse.items`, encoded by hand around a message's own
bytes. It holds its field tag and length, so that joining frames makes a reply, and a message that
is stored is never decoded to be sent. A test holds the frames against the generated code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from contextengine_proto.v1 import assemble_pb2
from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import (
    HASH_BYTES,
    MIN_CAP_CHARS,
    NO_RESULT,
    ON_ARRIVAL,
    Entry,
    Form,
    Replacements,
    Slot,
    Stripped,
)
from contextengine_server.context.summary_text import fenced
from contextengine_server.context.view import Summary
from contextengine_server.store.rows import SummaryRow
from contextengine_server.tokens import MESSAGE_TOKENS

from .answers import ReadAnswers, may_be_long_or_silent
from .bounded import (
    MIN_MARKED_BYTES,
    Bounded,
    cut_each,
    cut_texts,
    mark_runs,
    marked,
    may_be_bounded,
    may_be_marked,
)
from .message import OWN_PREFIX, content_hash, countable, outward, texts_of
from .placeholders import replace_part
from .privacy import spoken_parts
from .thoughts import strip

MAX_NAMED = 128
"""Characters of a call's id or a tool's name that a note repeats."""

_COUNTED_AGAIN = 16_384
"""Bytes of a message up to which its tokens are counted where it is encoded."""
_MARKER_TOKENS = 8
"""By so many at most the marker in a stored message is longer than in one that is not."""

_ITEMS = assemble_pb2.AssembleResponse.DESCRIPTOR.fields_by_name["items"].number
_ITEM = {name: field.number for name, field in pb.Item.DESCRIPTOR.fields_by_name.items()}
_ORIGIN = {name: field.number for name, field in pb.Origin.DESCRIPTOR.fields_by_name.items()}
_SHORT = [bytes((value,)) for value in range(0x80)]


def varint(value: int) -> bytes:
    """A non-negative integer in the wire's base-128 form."""
    if value < 0x80:
        return _SHORT[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def block(number: int, payload: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


_ID = varint(_ITEM["id"] << 3 | 2)
_ORIGIN_TAG = varint(_ITEM["origin"] << 3 | 2)
_HASH = varint(_ITEM["content_hash"] << 3 | 2) + varint(HASH_BYTES)
_TOKENS = varint(_ITEM["tokens"] << 3)
_FORM = varint(_ITEM["form"] << 3)
_MESSAGE = varint(_ITEM["message"] << 3 | 2)
_ITEMS_TAG = varint(_ITEMS << 3 | 2)
_SEQUENCE = varint(_ORIGIN["sequence"] << 3)


def origin_sequence(sequence: int) -> bytes:
    """The origin of a stored message. Presence matters: a oneof member is written even when 0."""
    return _SEQUENCE + varint(sequence)


def origin_live(index: int) -> bytes:
    """The origin of a message of the call's `live` list that is not stored."""
    return varint(_ORIGIN["live_index"] << 3) + varint(index)


def origin_summary(summary_id: str) -> bytes:
    """The origin of a summary."""
    return block(_ORIGIN["summary_id"], summary_id.encode())


def origin_synthetic(reason: str) -> bytes:
    """The origin of an item that the service made up."""
    return block(_ORIGIN["synthetic"], reason.encode())


def frame(
    item_id: str,
    origin: bytes,
    content_hash: bytes,
    tokens: int,
    form: Form,
    body: bytes,
    summary: bytes = b"",
) -> bytes:
    """One entry of `items`, tag and length included. `content_hash` has 16 bytes; `body` is an
    encoded Message."""
    encoded_id = item_id.encode()
    before = b"".join(
        (
            _ID + varint(len(encoded_id)) + encoded_id if encoded_id else b"",
            _ORIGIN_TAG + varint(len(origin)) + origin,
            _HASH + content_hash,
            _TOKENS + varint(tokens) if tokens else b"",
            _FORM + varint(form) if form else b"",
            _MESSAGE + varint(len(body)),
        )
    )
    after = block(_ITEM["summary"], summary) if summary else b""
    # A body may have megabytes: it is copied once.
    return b"".join((_ITEMS_TAG, varint(len(before) + len(body) + len(after)), before, body, after))


def shown_hash(content: bytes, origin: bytes, form: Form) -> bytes:
    """The hash of what is shown where it is not a message verbatim."""
    return blake2b(content + b"\x1f" + origin + bytes([int(form)]), digest_size=HASH_BYTES).digest()


def item_of(encoded: bytes) -> pb.Item:
    """The item in a frame."""
    response = assemble_pb2.AssembleResponse.FromString(encoded)
    return response.items[0]


class _Opened(msgspec.Struct, frozen=True):
    """A decoded message."""

    message: pb.Message
    envelope: pb.Message
    """All of it but its parts and its native form."""
    calls: list[pb.ToolCallPart]
    """Those that wait for a result from another message."""


class WireShaper:
    """Encodes slots. Pure but for counting, which is a function of the text: equal arguments, equal
    slots."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self.count = count
        self._no_result_tokens = cache(lambda: count(NO_RESULT))
        self._newest: tuple[Entry, _Opened] | None = None

    def whole(self, entry: Entry) -> Slot:
        """The message as it came; base64 in its texts as what it is."""
        if len(entry.body) > MIN_MARKED_BYTES and may_be_marked(entry):
            marked = self._marked(entry)
            if marked is not None:
                return marked
        live = entry.live_index >= 0
        origin = _origin(entry) if live else _SEQUENCE + varint(entry.sequence)
        encoded = frame(entry.id, origin, entry.hash, entry.tokens, Form.VERBATIM, entry.body)
        long = len(entry.body) > MIN_CAP_CHARS and may_be_bounded(entry.traits)
        answers = None
        if entry.traits.results and may_be_long_or_silent(entry.traits, entry.body):
            answers = ReadAnswers(self.replaced, entry)
        return Slot(
            entry.sequence,
            Form.VERBATIM,
            entry.tokens,
            entry.hash,
            encoded,
            bounded=Bounded(self, entry) if long else None,
            answers=answers,
        )

    def _marked(self, entry: Entry) -> Slot | None:
        """The message with markers in place of base64. None where it holds none."""
        shown = pb.Message.FromString(entry.body)
        markers = mark_runs(shown, _stored_at(entry))
        if not markers:
            return None
        size = shown.ByteSize()
        long = size > MIN_CAP_CHARS
        # What is long was counted when it came, in threads; only what its markers say was shorter.
        tokens = None if size < _COUNTED_AGAIN else entry.tokens + markers * _MARKER_TOKENS
        slot = self._changed(entry, shown, Form.HEAD_TAIL, entry.id, tokens)
        answers = ReadAnswers(self.replaced, entry) if entry.traits.results else None
        return replace(slot, bounded=Bounded(self, entry) if long else None, answers=answers)

    def parts(self, entry: Entry, indexes: tuple[int, ...]) -> Slot:
        """Only these parts, and no native form."""
        opened = self._open(entry)
        shown = pb.Message()
        shown.CopyFrom(opened.envelope)
        shown.parts.extend(opened.message.parts[index] for index in indexes)
        return self._changed(entry, shown, Form.SOME_PARTS, entry.id)

    def note(self, entry: Entry, indexes: tuple[int, ...]) -> Slot:
        """Late results of calls that are summarized by now."""
        message = self._open(entry).message
        shown = pb.Message(role=pb.ROLE_USER, id=note_item_id(entry.sequence))
        for index in indexes:
            result = message.parts[index].tool_result
            name = f" ({_line(result.name)})" if result.name else ""
            label = (
                f"[Late result of tool call {_line(result.call_id)}{name}, which is part of a"
                " summary above]"
            )
            texts: list[str] = []
            texts_of(spoken_parts(result.parts), texts)
            body = "\n".join(texts)
            shown.parts.add().text.text = f"{label}\n{fenced(body)}"
        return self._changed(entry, shown, Form.NOTE, shown.id)

    def no_result(self, entry: Entry, call: int) -> Slot:
        """An error that says that no result was recorded."""
        call_id = entry.traits.calls[call]
        message = pb.Message(id=f"{OWN_PREFIX}no-result:{entry.sequence}:{call}", role=pb.ROLE_TOOL)
        result = message.parts.add().tool_result
        result.call_id = call_id
        result.name = self._open(entry).calls[call].name
        result.is_error = True
        result.parts.add().text.text = NO_RESULT
        tokens = MESSAGE_TOKENS + self._no_result_tokens()
        origin = origin_synthetic("no result was recorded")
        digest = content_hash(message)
        body = message.SerializeToString(deterministic=True)
        encoded = frame(message.id, origin, digest, tokens, Form.VERBATIM, body)
        return Slot(0, Form.VERBATIM, tokens, digest, encoded, call_id=call_id, synthetic=True)

    def summary(self, row: SummaryRow, text: str) -> Slot:
        """A summary: its rendered text as a message of the role that its row says."""
        role = pb.ROLE_ASSISTANT if row.role == "assistant" else pb.ROLE_USER
        message = pb.Message(id=summary_item_id(row.id), role=role)
        message.parts.add().text.text = text
        origin = origin_summary(row.id)
        body = message.SerializeToString(deterministic=True)
        digest = content_hash(message)
        info = summary_info(row).SerializeToString(deterministic=True)
        encoded = frame(message.id, origin, digest, row.tokens, Form.VERBATIM, body, info)
        return Slot(0, Form.VERBATIM, row.tokens, digest, encoded)

    def ours(self, kind: str, text: str) -> Slot:
        """An item of ours that stands for no message, in the user's role. `kind` says what it
        is, in words."""
        message = pb.Message(role=pb.ROLE_USER)
        message.parts.add().text.text = text
        digest = content_hash(message)
        message.id = f"{OWN_PREFIX}{kind.replace(' ', '-')}:{digest.hex()[:12]}"
        tokens = MESSAGE_TOKENS + self.count(text)
        body = message.SerializeToString(deterministic=True)
        origin = origin_synthetic(kind)
        encoded = frame(message.id, origin, digest, tokens, Form.VERBATIM, body)
        return Slot(0, Form.VERBATIM, tokens, digest, encoded)

    def _open(self, entry: Entry) -> _Opened:
        """The message, decoded. The last one is kept: a message of many calls or results is asked
        for each of them."""
        if self._newest is None or self._newest[0] is not entry:
            message = marked(entry, _stored_at(entry))
            envelope = pb.Message.FromString(entry.body)
            envelope.ClearField("parts")
            envelope.ClearField("native")
            self._newest = entry, _Opened(message, envelope, outward(message.parts[:])[0])
        return self._newest[1]

    def head_and_tail(self, entry: Entry, chars: int, each: bool = False) -> Slot | None:
        """No more than so many characters of the message's texts, or of each. None where they have
        no more."""
        sequence = _stored_at(entry)
        shown = marked(entry, sequence)
        if not (cut_each if each else cut_texts)(shown, chars, sequence):
            return None
        return self._changed(entry, shown, Form.HEAD_TAIL, entry.id)

    def replaced(self, entry: Entry, parts: Replacements) -> Slot:
        """The message with a marker in place of what these results say, or of these pictures;
        base64 in the others as what it is."""
        sequence = _stored_at(entry)
        shown = marked(entry, sequence)
        for each in parts:
            replace_part(shown.parts[each.part], each, sequence)
        shown.ClearField("native")  # it would say all of it again
        early = all(each.why in ON_ARRIVAL for each in parts)
        form = Form.HEAD_TAIL if early else Form.PLACEHOLDER
        return self._changed(entry, shown, form, entry.id)

    def stripped(self, entry: Entry, how: Stripped) -> Slot:
        """The message without this of its reasoning."""
        shown = marked(entry, _stored_at(entry))
        strip(shown, how, _stored_at(entry))
        tags = not how.reasoning and not how.unsigned
        form = Form.STRIPPED_TAGS if tags else Form.WITHOUT_REASONING
        return self._changed(entry, shown, form, entry.id)

    def _changed(
        self,
        entry: Entry,
        shown: pb.Message,
        form: Form,
        item_id: str,
        tokens: int | None = None,
    ) -> Slot:
        """`tokens`: where they are known; None: they are counted here."""
        if tokens is None:
            texts, fixed = countable(shown)
            tokens = fixed + sum(map(self.count, texts))
        origin = _origin(entry)
        body = shown.SerializeToString(deterministic=True)
        digest = content_hash(shown)
        if form is not Form.NOTE:
            # A note is ours: it is known by its content where it comes back. Parts of a message are
            # not the message.
            digest = shown_hash(digest, origin, form)
        return Slot(
            entry.sequence, form, tokens, digest, frame(item_id, origin, digest, tokens, form, body)
        )


def _line(text: str) -> str:
    """A model's text within a line of ours."""
    return " ".join(text.split())[:MAX_NAMED]


def note_item_id(sequence: int) -> str:
    """The id of the item that shows a message's late results as a note."""
    return f"{OWN_PREFIX}note:{sequence}"


def summary_item_id(summary_id: str) -> str:
    """The id of the item that shows a summary."""
    return f"{OWN_PREFIX}summary:{summary_id}"


def summary_info(row: SummaryRow | Summary) -> pb.SummaryInfo:
    """What a summary's row says, for the wire."""
    created = row.created_revision if isinstance(row, SummaryRow) else row.created
    info = pb.SummaryInfo(
        id=row.id,
        depth=row.depth,
        first_sequence=row.first_sequence,
        last_sequence=row.last_sequence,
        message_count=row.message_count,
        source_tokens=row.source_tokens if isinstance(row, SummaryRow) else row.covered_tokens,
        tokens=row.tokens,
        summarizer=row.summarizer,
        fallback=row.fallback,
        generation=row.generation,
        children=row.children,
        created_revision=created,
        retired_revision=row.retired_revision if isinstance(row, SummaryRow) else 0,
        wanted=row.wanted,
        remakes=row.remakes,
    )
    if row.start_ms is not None:
        info.start_time.FromMilliseconds(row.start_ms)
    if row.end_ms is not None:
        info.end_time.FromMilliseconds(row.end_ms)
    return info


def _stored_at(entry: Entry) -> int:
    """Its sequence; 0 for one that is not stored."""
    return entry.sequence if entry.live_index < 0 else 0


def _origin(entry: Entry) -> bytes:
    return (
        origin_live(entry.live_index) if entry.live_index >= 0 else origin_sequence(entry.sequence)
    )
