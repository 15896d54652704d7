"""The record of a target: all that the service and its commands have to know of a form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from .call_ids import PLAIN, CallIdFormat
from .fragments import JsonObject
from .projection import Parts, Projection
from .rules import RuleFinding
from .task import Task

_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


class RequestBody(msgspec.Struct, frozen=True):
    """The members of a provider's request that a projection fills."""

    messages: str = "messages"
    """What the list is called."""
    system: str = ""
    """What the system part is called. Empty: the form keeps none apart."""

    def __call__(self, parts: Parts) -> JsonObject:
        """The members with what a projection made of them."""
        system = {self.system: json.loads(parts.system_json)} if parts.system_json else {}
        return system | {self.messages: json.loads(parts.messages_json)}


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A form that contexts are projected into. Raises ValueError where the record cannot be."""

    name: str
    """What people and requests call it: small letters, digits and dashes."""
    title: str
    """What the documentation calls it."""
    renderer: Callable[[Target, Task], Projection]
    """Projects a task into this form. Equal tasks give equal bytes. Raises ProjectionImpossible."""
    validator: Callable[[Any, str], list[RuleFinding]]
    """The rules of the form: what they find in a body read from JSON, for the model of this name
    (empty: unknown), which some rules depend on. It knows nothing of the renderer."""
    body: Callable[[Parts], JsonObject]
    """What would be sent, of a projection's parts."""
    number: int = 0
    """Its value in the enum ProjectionTarget. 0: it is asked for by name alone."""
    call_ids: CallIdFormat = PLAIN
    """Which ids of tool calls the provider takes."""
    renderers: tuple[str, ...] = ()
    """The names that a request may give as its renderer, the default first. Empty: the target's
    own name alone."""
    threads: bool = False
    """True where the harness keeps a native thread, which bindings, events and modes are about."""
    alternates: bool = False
    """True where the provider wants no two entries of one role side by side."""
    cache_mark: str = ""
    """The key of a cache breakpoint in the form. Empty: breakpoints are not placed."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"the name of a target is {self.name!r}: give small letters, digits and dashes"
            )
        if not self.title.strip():
            raise ValueError(f"the target {self.name} has no title")
        if not all(map(_NAME.fullmatch, self.renderer_names)):
            raise ValueError(f"a renderer of the target {self.name} has no proper name")

    @property
    def renderer_names(self) -> tuple[str, ...]:
        """The names of its renderers, the default first."""
        return self.renderers or (self.name,)

    def project(self, task: Task) -> Projection:
        """The task in this form. Raises ProjectionImpossible where what may not be cut exceeds a
        limit of the target, or a text cannot be sent."""
        if not task.renderer:
            task = replace(task, renderer=self.renderer_names[0])
        return self.renderer(self, task)
