"""What is projected: the items of an assembly, read once, and what a projection answers besides its
form."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import Enum
from typing import Any, ClassVar, TypeAlias

import msgspec


class ChatRole(Enum):
    """Who speaks; the value is the word that the formats share."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"
    DEVELOPER = "developer"
    CUSTOM = "custom"


class Sealed(msgspec.Struct, frozen=True, kw_only=True):
    """What any part may carry besides its content."""

    kind: ClassVar[str]
    """What people call such a part."""
    seal: bytes = b""
    """A provider's signature over the part (Gemini's thoughtSignature), decoded."""
    more: str = ""
    """What the provider added to the part: a JSON object, in the dialect of the item. Empty:
    nothing."""


class Text(Sealed, frozen=True):
    """Plain text."""

    kind = "text"
    text: str


class Reasoning(Sealed, frozen=True):
    """A model's reasoning: its text, the provider's signature over it, or what only the provider
    can read."""

    kind = "reasoning"
    text: str
    signature: bytes = b""
    redacted: bytes = b""
    item_id: str = ""


class ToolCall(Sealed, frozen=True):
    """A call of a tool. `arguments` is what the model wrote: JSON by intent."""

    kind = "call"
    id: str
    name: str
    arguments: str
    item_id: str = ""
    namespace: str = ""


class Image(Sealed, frozen=True):
    """A picture by its bytes or by where it is."""

    kind = "image"
    mime: str = ""
    data: bytes | None = None
    uri: str = ""
    detail: str = ""


class File(Sealed, frozen=True):
    """A file by its bytes or by where it is."""

    kind = "file"
    mime: str = ""
    data: bytes | None = None
    uri: str = ""
    name: str = ""


class Opaque(Sealed, frozen=True):
    """A vendor's item that has no form here, as JSON."""

    kind = "opaque"
    format: str
    type: str
    json: str


class ToolResult(Sealed, frozen=True):
    """A tool's answer."""

    kind = "result"
    id: str
    name: str
    parts: tuple[Part, ...]
    is_error: bool = False


Part: TypeAlias = Text | Reasoning | ToolCall | Image | File | Opaque | ToolResult


class Covers(msgspec.Struct, frozen=True):
    """What a summary stands for: an inclusive range of sequences."""

    id: str
    depth: int
    first: int
    last: int


class ItemCache:
    """What was made of an item that comes again, so that it is made once. Nothing on it is ever
    changed."""

    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept: dict[Hashable, Any] = {}

    def keep(self, key: Hashable, made: Any) -> None:
        """Keeps what was made."""
        self.kept[key] = made

    def grew(self, size: int) -> None:
        """Is told how many bytes more are held by what is kept, about."""


class Item(msgspec.Struct, frozen=True, eq=False):
    """One entry of an assembly. Compared by identity: an item that comes again is known by its
    object."""

    role: ChatRole
    parts: tuple[Part, ...]
    id: str = ""
    sequence: int = 0
    """The stored message's position. 0: it is none."""
    live_index: int = -1
    """The place in the harness's own list of a message that is not stored."""
    custom_role: str = ""
    name: str = ""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    summary: Covers | None = None
    provider: str = ""
    """Who produced it. Empty: unknown."""
    model: str = ""
    dialect: str = ""
    """The format that `more` and opaque parts are of, for example `anthropic.messages`."""
    cache: ItemCache | None = None
    """Where what is made of the item is kept. None: this object does not come again."""

    @property
    def excluded(self) -> bool:
        """True for a harness's own entry that it keeps out of contexts."""
        return self.role is ChatRole.CUSTOM and self.labels.get("excluded", "false") != "false"

    @property
    def pinned(self) -> bool:
        """True where the harness wants it in every context."""
        return self.labels.get("pinned", "false") != "false"


class Loss(msgspec.Struct, frozen=True):
    """Something that the target's form cannot say, or that did not fit."""

    index: int
    """The item's index in the list; -1: none in particular."""
    what: str
    rule: str


class ProjectionImpossible(ValueError):
    """The parts that may not be cut exceed the limit, or a text cannot be sent. `field` is what is
    wrong; the text says what to do."""

    def __init__(self, field: str, text: str, *, limit: bool = False) -> None:
        super().__init__(text)
        self.field = field
        self.limit = limit
        """True where a limit is exceeded, False where a value cannot be."""


def text_of(parts: tuple[Part, ...], joiner: str = "\n") -> str:
    """The text parts, joined."""
    return joiner.join(part.text for part in parts if isinstance(part, Text))
