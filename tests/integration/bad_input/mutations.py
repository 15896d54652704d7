"""Every field of a request, one at a time, with values that nobody should send. From the
descriptors alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from contextengine_server.api.pipeline.contract import Rpc

MILLION = "x" * 1_000_000

_STRINGS = ("\x00", "\u202e\x01\x1b[31m", MILLION)
_BYTES = (b"\xff\xfe\x00", b'{"lone":"\\ud800"}', b"[" * 5_000)
_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-1, -(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-1, -(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_ENUM: (-1, 99, -(2**31), 2**31 - 1),
}

_DOUBLES = (-1.0, 0.0, 1e308, float("inf"), float("nan"))


def values_of(field: FieldDescriptor) -> tuple[Any, ...]:
    """Hostile values of a scalar field."""
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _BYTES
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return _STRINGS
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return (True,)
    if field.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE:
        return _DOUBLES
    return _INTEGERS[field.cpp_type]


Descriptor: TypeAlias = Any
"""protobuf has two types for it, one of them private."""
Path = tuple[FieldDescriptor, ...]


def mutations(descriptor: Descriptor, pruned: set[str]) -> list[tuple[Path, Any]]:
    """Every field by its path, with each value to be put there; nothing within types of these
    names."""
    return [(path, value) for path in paths(descriptor, pruned) for value in _values_at(path)]


def changed(request: Message, path: Path, value: Any) -> Message:
    """The request with that value at that path, and nothing else changed."""
    copy = type(request)()
    copy.CopyFrom(request)
    _put(copy, path, value)
    return copy


def named(path: Path) -> str:
    """The path as errors write it, but for indexes."""
    return ".".join(field.name for field in path)


def paths(descriptor: Descriptor, pruned: set[str], above: Path = ()) -> Iterator[Path]:
    """Every field, also within messages, each type once on a path: parts hold parts."""
    for field in descriptor.fields:
        here = (*above, field)
        yield here
        inner = field.message_type
        known = {step.message_type.full_name for step in above if step.message_type is not None}
        if inner is None or inner.GetOptions().map_entry or inner.name in pruned:
            continue
        if inner.full_name not in known:
            yield from paths(inner, pruned, here)


def _values_at(path: Path) -> tuple[Any, ...]:
    field = path[-1]
    return (None,) if field.message_type is not None else values_of(field)


def _put(message: Any, path: Path, value: Any) -> None:
    """Sets the field at the path; of a list its first entry, of a message its presence and nothing
    more."""
    for field in path[:-1]:
        message = getattr(message, field.name)
        if field.is_repeated:
            message = message[0] if len(message) else message.add()
        else:
            message.SetInParent()
    field = path[-1]
    held = getattr(message, field.name)
    if field.message_type is None:
        if field.is_repeated:
            held.append(value)
        else:
            setattr(message, field.name, value)
    elif field.message_type.GetOptions().map_entry:
        held["\x00"] = "\x00"
        held["\u202e" * 1_000] = MILLION
    elif field.is_repeated:
        held.add()
    else:
        held.Clear()
        held.SetInParent()


def resolves(rpc: Rpc, path: str) -> bool:
    """Whether a path as errors name it, `messages[3].parts[0].text`, leads to a field of the
    request. In a stream the index is the message's place."""
    inner: Descriptor = rpc.request.DESCRIPTOR
    for depth, step in enumerate(path.split(".")):
        name, bracket, index = step.partition("[")
        field = None if inner is None else inner.fields_by_name.get(name)
        if field is None:
            return inner is not None and name in inner.oneofs_by_name
        many = field.is_repeated or (rpc.streams_in and depth == 0)
        if bracket and not (many and index.endswith("]") and index[:-1].isdecimal()):
            return False
        inner = field.message_type
    return True
