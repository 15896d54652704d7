"""The way from a mapping to a checked model: names, and one mapping over another."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from contextengine_server.config.schema.description import joined, model_of
from contextengine_server.config.schema.problems import OptionsError, Problem, problems_of

M = TypeVar("M", bound=BaseModel)


def parse(model: type[M], data: Mapping[str, Any], path: str = "") -> M:
    """A model of `data`, whose keys may be published or Python names. Raises OptionsError with
    every problem."""
    known, problems = read_names(model, data, path)
    try:
        parsed = model.model_validate(known)
    except ValidationError as error:
        raise OptionsError([*problems, *problems_of(error, model, path)]) from None
    if problems:
        raise OptionsError(problems)
    return parsed


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` over `below`: mappings are merged, everything else is replaced."""
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = (
            merge(under, value)
            if isinstance(under, Mapping) and isinstance(value, Mapping)
            else value
        )
    return merged


def read_names(
    model: type[BaseModel], data: Mapping[str, Any], path: str = ""
) -> tuple[dict[str, Any], list[Problem]]:
    """`data` under the Python names of `model`, and a problem for every key unknown or given under
    two names."""
    fields = model.model_fields
    names = {name: name for name in fields}
    names |= {field.alias: name for name, field in fields.items() if field.alias}
    known: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, value in data.items():
        where = joined(path, str(key))
        name = names.get(str(key))
        if name is None and model.model_config.get("extra") == "allow":
            known[str(key)] = value
            continue
        if name is None:
            problems.append(Problem(where, _unknown(str(key), fields, path)))
            continue
        if name in known:
            problems.append(Problem(where, f"is given twice, also as {name}; keep one"))
        inner = model_of(fields[name].annotation)
        if inner is not None:
            value, found = _read_within(inner, value, where)
            problems += found
        known[name] = value
    return known, problems


def _read_within(model: type[BaseModel], value: Any, path: str) -> tuple[Any, list[Problem]]:
    """The same for what stands under a name: a mapping, or a list of them."""
    if isinstance(value, Mapping):
        return read_names(model, value, path)
    if not isinstance(value, list):
        return value, []
    entries, problems = [], []
    for index, entry in enumerate(value):
        if isinstance(entry, Mapping):
            entry, found = read_names(model, entry, f"{path}[{index}]")
            problems += found
        entries.append(entry)
    return entries, problems


def _unknown(key: str, fields: Mapping[str, FieldInfo], path: str) -> str:
    published = {field.alias or name: name for name, field in fields.items()}
    # Compared without case and underscores, so that another convention's spelling finds its name.
    flat = {name.replace("_", "").lower(): shown for shown, name in published.items()}
    near = difflib.get_close_matches(
        key.replace("_", "").replace("-", "").lower(), flat, n=1, cutoff=0.5
    )
    if near:
        return f"is not a known name; did you mean {joined(path, flat[near[0]])}?"
    return f"is not a known name; known here: {', '.join(sorted(published))}"
