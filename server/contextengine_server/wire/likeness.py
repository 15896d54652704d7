"""What harnesses leave alone of a message when they send their own list: role, text, the names and
arguments of tool calls, and which call a result answers.

Not details, call ids, reasoning, signatures, labels or times: these are stripped or rewritten
before a model call. A result's own text may be trimmed, so the call that it answers goes before
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b

import msgspec
import orjson

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.alignment import Call, Token
from contextengine_server.context.message import Entry, Traits
from contextengine_server.context.summary_text import fenced

from .bounded import Shortened, in_short, shortened_in
from .message import Incoming, outward, read
from .placeholders import stands_for_picture, without_pictures
from .reasoning_tags import without_tags
from .thoughts import LEFT_OUT

NOTE_OF = "contextengine.note_of"
"""The label of a stored note: names the message of the harness's list that it stands for."""
NOTE = (
    "[A message that the harness's own list has among those of a summary above, where the stored"
    " session has none]"
)
KEPT = 50_000
"""Messages whose likeness is remembered."""
_SIZE = 16


class Likeness(msgspec.Struct, frozen=True):
    """A message as far as harnesses leave it alone."""

    said: bytes
    """Names its role, its texts and its calls; empty where there are none."""
    media: bytes
    """Names its images, files and items of a vendor; empty where there are none."""
    results: tuple[bytes, ...]
    """Names what each of its results says."""
    note_of: bytes = b""
    """For a note: the key of the message that it stands for."""
    short: Shortened | None = None
    """For one that was shown in short: which stored one it says that it is."""


class Likenesses:
    """Remembers the likeness of messages by their content, so that a list that comes again is not
    decoded again."""

    def __init__(self) -> None:
        self._known: dict[bytes, Likeness] = {}
        self._shown: dict[bytes, bool] = {}
        """Whether a message of a list is a stored one as it was shown, by the contents of both."""

    def of(self, content: bytes, body: bytes) -> Likeness:
        """The likeness of an encoded message whose content has this hash."""
        known = self._known.get(content)
        if known is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            known = self._known[content] = likeness(pb.Message.FromString(body))
        return known

    def of_listed(self, message: Incoming, stored: Callable[[int], Entry | None]) -> Likeness:
        """The likeness of a message of a list: the stored one's where it is that one as it was
        shown. `stored`: the message of a sequence."""
        listed = self.of(message.hash, message.body)
        entry = None if listed.short is None else stored(listed.short.sequence)
        if listed.short is None or entry is None:
            return listed
        pair = message.hash + entry.hash
        same = self._shown.get(pair)
        if same is None:
            if len(self._shown) >= KEPT:
                self._shown.clear()
            shown = likeness(in_short(entry, listed.short))
            # A harness may set results apart that came together, or leave one out.
            same = shown.said == listed.said and len(shown.results) == len(listed.results)
            self._shown[pair] = same
        return self.of(entry.hash, entry.body) if same else listed


def likeness(message: pb.Message) -> Likeness:
    """What harnesses leave alone of a message."""
    said: list[bytes] = []
    media: list[bytes] = []
    for part in message.parts:
        kind = part.WhichOneof("kind")
        if kind == "text":
            text = without_pictures(part.text.text).strip()
            if stands_for_picture(text):
                continue  # a picture may be gone, and says what it said
            if message.role == pb.ROLE_ASSISTANT:
                text = without_tags("" if text.startswith(LEFT_OUT) else text)
            said += [b"text", text.encode()] if text else []
        elif kind == "tool_call":
            arguments = _plain(part.tool_call.arguments_json)
            said += [b"call", part.tool_call.name.encode(), arguments]
        elif kind == "image":
            media.append(part.image.data or part.image.uri.encode())
        elif kind == "file":
            media.append(part.file.data or part.file.uri.encode())
        elif kind == "opaque":
            media.append(part.opaque.json)
    parts = message.parts[:]
    answers = outward(parts)[1]
    results = tuple(_result(parts[at].tool_result) for at, _ in answers)
    # A reply that was stored before the provider's own tool had answered is another one.
    within = sum(part.HasField("tool_result") for part in parts) - len(answers)
    said += [b"answered within", b"%d" % within] if within else []
    who = [str(message.role).encode(), message.custom_role.encode()]
    label = message.labels.get(NOTE_OF, "") if message.labels else ""
    return Likeness(
        _digest([*who, *said]) if said else b"",
        _digest(media) if any(media) else b"",
        results,
        bytes.fromhex(label) if label else b"",
        shortened_in(part.text.text for part in message.parts if part.HasField("text")),
    )


def _plain(arguments: bytes) -> bytes:
    """Arguments however they were written down."""
    try:
        return orjson.dumps(orjson.loads(arguments), option=orjson.OPT_SORT_KEYS)
    except ValueError:
        return arguments


def _result(result: pb.ToolResultPart) -> bytes:
    texts = [part.text.text.strip().encode() for part in result.parts]
    return _digest([result.name.encode(), *texts])


def _digest(parts: Iterable[bytes]) -> bytes:
    whole = blake2b(digest_size=_SIZE)
    for part in parts:
        whole.update(len(part).to_bytes(8, "big"))
        whole.update(part)
    return whole.digest()


class ListedMessage(msgspec.Struct, frozen=True):
    """A message of a list, as far as it is to be recognised."""

    id: str
    traits: Traits
    like: Likeness


def tokens_of(messages: Sequence[ListedMessage]) -> list[Token]:
    """What each message of a list is recognised by. Results are paired with calls by position, as
    the fold does it: an open call of the newest message with calls, else the newest call that was
    left open, of that id."""
    waiting: dict[str, list[list[Call]]] = {}
    newest = -1
    tokens: list[Token] = []
    for place, message in enumerate(messages):
        answers: list[Call] = []
        parts = [message.like.said] if message.like.said else []
        for (_, call_id), said in zip(message.traits.results, message.like.results, strict=True):
            open_calls = waiting.get(call_id)
            if open_calls:
                call = open_calls[-1].pop(0)
                if not open_calls[-1]:
                    open_calls.pop()
                answers.append(call)
                parts += [messages[call[0]].like.said, b"%d" % call[1]]
            parts.append(said)
        only_results = bool(message.traits.results) and message.traits.only_results
        apart = only_results and any(asked != newest for asked, _ in answers)
        newest = newest if only_results else place
        own: dict[str, list[Call]] = {}
        for number, call_id in enumerate(message.traits.calls):
            own.setdefault(call_id, []).append((place, number))
        for call_id, calls in own.items():
            waiting.setdefault(call_id, []).append(calls)
        silent = not parts and not message.like.media
        role = b"%d" % message.traits.role
        key = b"" if message.like.note_of else _digest([role, *parts])
        aside = silent or only_results
        tokens.append(Token(key, message.id, message.like.media, tuple(answers), apart, aside))
    return tokens


def readdressed(message: Incoming, ids: Mapping[int, str]) -> Incoming:
    """The message with these call ids in its results, by the place of the part: the calls that they
    answer are stored under other ids than the harness has given them since."""
    changed = pb.Message.FromString(message.body)
    for place, call_id in ids.items():
        changed.parts[place].tool_result.call_id = call_id
    changed.ClearField("native")
    return _recounted(changed, message)


def as_note(message: Incoming, key: bytes) -> Incoming:
    """A labelled note in place of a message, for a place that a summary covers. It is nobody's
    turn: its role is its own."""
    original = pb.Message.FromString(message.body)
    note = pb.Message(id=message.id, role=pb.ROLE_CUSTOM, custom_role="note")
    note.labels[NOTE_OF] = key.hex()
    note.parts.add().text.text = f"{NOTE}\n{fenced(_words(original))}"
    return read(note, "live")


def _words(message: pb.Message) -> str:
    """What a message says, in a text."""
    role = next((name for name, number in pb.Role.items() if number == message.role), "")
    lines = [f"role: {message.custom_role or role.removeprefix('ROLE_').lower()}"]
    for part in message.parts:
        kind = part.WhichOneof("kind")
        if kind == "text":
            lines.append(part.text.text)
        elif kind == "tool_call":
            arguments = part.tool_call.arguments_json.decode("utf-8", "replace")
            lines.append(f"call of {part.tool_call.name}: {arguments}")
        elif kind == "tool_result":
            lines += [inner.text.text for inner in part.tool_result.parts]
        elif kind in ("image", "file", "opaque"):
            lines.append(f"({kind})")
    return "\n".join(lines)


def _recounted(changed: pb.Message, before: Incoming) -> Incoming:
    """A changed message, whose texts are those that were counted."""
    made = read(changed, "live")
    made.tokens, made.counted_in, made.own = before.tokens, before.counted_in, before.own
    return made
