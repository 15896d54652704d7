"""YAML and JSON5 read into plain values, without losing a key that is given twice."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import yaml

from contextengine_server.config.schema import OptionsError, Problem


class Keyed(dict[str, Any]):
    """A mapping that remembers what a later entry of the same key took the place of."""

    def __init__(self, pairs: Iterable[tuple[Any, Any]] = ()) -> None:
        super().__init__()
        self.shadowed: list[tuple[str, Any]] = []
        for key, value in pairs:
            # YAML has keys that are no strings (`on`, 8080); paths are written with strings.
            name = key if isinstance(key, str) else str(key)
            if name in self:
                self.shadowed.append((name, self[name]))
            self[name] = value


_Base: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[valid-type, misc]
    """Plain YAML whose mappings become Keyed."""

    def keyed(self, node: yaml.MappingNode) -> Keyed:
        self.flatten_mapping(node)
        pairs = []
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be a word", key_node.start_mark
                )
            pairs.append((key, self.construct_object(value_node, deep=True)))
        return Keyed(pairs)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _Loader.keyed)


def read_yaml(text: str, name: str) -> Any:
    """The value of one YAML document; None where it is empty. Raises OptionsError naming the
    line."""
    return _read(lambda: yaml.load(text, _Loader), name, "YAML")


def read_json5(text: str, name: str) -> Any:
    """The value of one JSON5 document (JSON, comments, bare keys). Raises OptionsError naming the
    line."""
    import json5  # late: only an import of another host's configuration reads JSON5

    return _read(lambda: json5.loads(text, object_pairs_hook=Keyed), name, "JSON5")


def _read(parse: Callable[[], Any], name: str, language: str) -> Any:
    try:
        return parse()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        found = " ".join(str(error).split()) or type(error).__name__
        raise OptionsError(
            [Problem(name, f"is not {language} that can be read: {found}")]
        ) from None


def shadowed(value: Any, path: str = "") -> list[str]:
    """The paths of all keys that are given more than once, in reading order."""
    found: list[str] = []
    if isinstance(value, Keyed):
        found += [f"{path}.{key}" if path else key for key, _ in value.shadowed]
        for key, inner in value.items():
            found += shadowed(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += shadowed(inner, f"{path}[{index}]")
    return found
