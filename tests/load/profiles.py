"""The profiles: configuration files of ghz, and what becomes of their templates for one request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message, message_factory
from google.protobuf.descriptor import FileDescriptor, MethodDescriptor

from contextengine_proto.v1 import context_engine_pb2, projection_pb2, recall_pb2

HERE = Path(__file__).resolve().parent
FILES = HERE / "profiles"

_SERVED = (context_engine_pb2, projection_pb2, recall_pb2)
"""Importing these makes the services known that profiles may call."""


class ProfileError(Exception):
    """A profile cannot be used, and why."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a template may ask of the call that it is rendered for, by ghz's names."""

    number: int = 0
    """`.RequestNumber`."""
    worker: str = "g0c0"
    """`.WorkerID`."""
    run: str = ""
    """The environment's `RUN`."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One file."""

    name: str
    path: Path
    config: Mapping[str, Any]

    @property
    def call(self) -> str:
        """`package.Service/Rpc`."""
        called: str = self.config["call"]
        return called

    @property
    def rpc(self) -> str:
        """The last part of `call`."""
        return self.call.rpartition("/")[2]

    @property
    def about(self) -> str:
        """What it does, for people."""
        told: str = self.config["tags"]["about"]
        return told

    @property
    def carries(self) -> bool:
        """Whether a request names the list of the reply before it, which takes the program `deltas`
        in ghz's place."""
        return "carries" in self.config["tags"]

    @property
    def counted(self) -> bool:
        """Whether it makes a fixed number of calls; else it goes on for some seconds."""
        return "total" in self.config

    @property
    def method(self) -> MethodDescriptor:
        """The rpc. Raises ProfileError where our protos have none of that name."""
        try:
            return descriptor_pool.Default().FindMethodByName(self.call.replace("/", "."))
        except KeyError as error:
            raise ProfileError(f"{self.path}: there is no rpc {self.call}") from error

    def request(self, call: Call) -> message.Message:
        """The request that ghz makes for a call. Raises ProfileError where it is none."""
        data = self.config["data"]
        if isinstance(data, list):
            data = data[call.number % len(data)]
        asked = message_factory.GetMessageClass(self.method.input_type)()
        try:
            json_format.ParseDict(
                json.loads(render(json.dumps(data, ensure_ascii=False), call)), asked
            )
        except (ValueError, json_format.ParseError, ProfileError) as error:
            raise ProfileError(f"{self.path}: {error}") from error
        return asked


@cache
def profiles() -> dict[str, Profile]:
    """The profiles that run one at a time, by name."""
    return _read(FILES, _ORDER)


@cache
def mix() -> dict[str, Profile]:
    """The profiles that run at the same time."""
    return _read(FILES / "mixed", _ORDER)


_ORDER = (
    "ingest", "ingest-batch", "assemble-10kb", "assemble-100kb", "assemble-1mb", "step",
    "after-turn", "compact", "spawn", "end",
    "search", "project",
)  # fmt: skip
"""`end` ends what `spawn` made."""


def _read(directory: Path, order: tuple[str, ...]) -> dict[str, Profile]:
    found = {
        path.stem: Profile(path.stem, path, json.loads(path.read_text(encoding="utf-8")))
        for path in directory.glob("*.json")
    }
    return {name: found[name] for name in sorted(found, key=order.index)}


_ACTION = re.compile(r"\{\{(.*?)\}\}")

_FORMS: dict[re.Pattern[str], Callable[[re.Match[str], Call, str], str]] = {
    re.compile(r"newUUID"): lambda _, call, once: str(uuid4()),
    re.compile(r"\.UUID"): lambda _, call, once: once,
    re.compile(r"\.RequestNumber"): lambda _, call, once: str(call.number),
    re.compile(r"mod \.RequestNumber (\d+)"): lambda found, call, once: str(
        call.number % int(found[1])
    ),
    re.compile(r"sub \.RequestNumber (\d+)"): lambda found, call, once: str(
        call.number - int(found[1])
    ),
    re.compile(r"regexFind `\[0-9\]\+` \.WorkerID"): lambda _, call, once: re.findall(
        "[0-9]+", call.worker
    )[0],
    re.compile(r"env `RUN`"): lambda _, call, once: call.run,
}
"""The actions that profiles use. ghz knows many more, and this renders what it renders for
these."""


def render(template: str, call: Call) -> str:
    """A template of ghz, rendered for a call. Raises ProfileError for an action that is not one of
    ours."""
    once = str(uuid4())

    def act(found: re.Match[str]) -> str:
        action = found[1].strip()
        for form, made in _FORMS.items():
            if matched := form.fullmatch(action):
                return made(matched, call, once)
        raise ProfileError(
            f"no profile uses the action {{{{{action}}}}} so far: add it to {__name__}"
        )

    return _ACTION.sub(act, template)


def write_protoset(path: Path) -> None:
    """Writes the descriptors that ghz needs where it cannot ask a server for them: the floor
    describes nothing."""
    known = descriptor_pb2.FileDescriptorSet()
    seen: set[str] = set()

    def add(file: FileDescriptor) -> None:
        if file.name in seen:
            return
        seen.add(file.name)
        for needed in file.dependencies:
            add(needed)
        file.CopyToProto(known.file.add())

    for module in _SERVED:
        add(module.DESCRIPTOR)
    path.write_bytes(known.SerializeToString())
