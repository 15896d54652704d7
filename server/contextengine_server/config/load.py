"""Reading the settings: flags over environment over file over defaults."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_settings import EnvSettingsSource
from pydantic_settings.exceptions import SettingsError as UnreadableVariable

from contextengine_server.config.engine import DIRECTORY, EngineSettings
from contextengine_server.config.policy import GROUP, Renamed, names_in
from contextengine_server.config.schema import (
    OptionsError,
    Problem,
    merge,
    problems_of,
    read_names,
)
from contextengine_server.config.settings import Settings, settings_with
from contextengine_server.engines.catalogue import Catalogue, block_name
from contextengine_server.plugins.engines import installed_engines

DEFAULT_FILE = "contextengine.yaml"
"""Read from the working directory when neither --config nor CONTEXTENGINE_CONFIG names a file."""

FILE_VARIABLE = "CONTEXTENGINE_CONFIG"
_PREFIX = "CONTEXTENGINE_"


class SettingsError(OptionsError):
    """The settings cannot be used. The text names every setting that is wrong, what is right, and
    where it was set."""


def load_settings(
    config: str | Path | None = None,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    engines: Catalogue | None = None,
) -> Settings:
    """The settings in force.

    `config` is the file to read (--config); None: the file that CONTEXTENGINE_CONFIG names, else
    ./contextengine.yaml if there is one. `flags` holds what the command line sets, under dotted
    paths (`server.address`) or nested; None stands for a flag that was not given. `environ`
    defaults to the process's, `engines` to what is installed, and enabled in the directory of
    plugins. Raises SettingsError.
    """
    environ = os.environ if environ is None else environ
    file, file_values = _from_file(config, environ)
    if engines is None:
        engines = installed_engines(_plugins_directory(file_values, environ, flags or {}))
    model = settings_with(engines)
    sources = [
        (str(file), file_values),
        ("the environment", _from_environment(environ, model)),
        ("the command line", _from_flags(flags or {})),
    ]
    merged: dict[str, Any] = {}
    problems: list[Problem] = []
    named: list[tuple[str, dict[str, Any]]] = []
    blocks: list[Renamed] = []
    for source, values in sources:
        values, renamed = _renamed(values, engines)
        blocks += renamed
        problems += [
            Problem(problem.path, f"{problem.text} (in {source})")
            for block in renamed
            for problem in block.problems
        ]
        known, found = read_names(model, values)
        problems += [Problem(problem.path, f"{problem.text} (in {source})") for problem in found]
        named.append((source, known))
        merged = merge(merged, known)
    try:
        settings = model(**merged)
    except ValidationError as error:
        found = [_with_source(problem, named) for problem in problems_of(error, model)]
        for block in blocks:
            found = [block.as_given(problem) for problem in found]
        raise SettingsError([*problems, *found]) from None
    if problems:
        raise SettingsError(problems)
    return settings


def plugins_directory(
    config: str | Path | None = None,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Path:
    """The directory of plugins that the settings name, without running any of their code. The
    arguments are those of `load_settings`. Raises SettingsError where the file cannot be read."""
    environ = os.environ if environ is None else environ
    return _plugins_directory(_from_file(config, environ)[1], environ, flags or {})


def _plugins_directory(
    file: Mapping[str, Any], environ: Mapping[str, str], flags: Mapping[str, Any]
) -> Path:
    """`plugins.directory`, which is looked up before all else: the engines found there have blocks
    of settings. What is wrong with it is said with everything else."""
    variable = f"{_PREFIX}PLUGINS__DIRECTORY"
    named = [value for name, value in environ.items() if name.upper() == variable]
    sources = (_from_flags(flags), {"plugins": {"directory": named[0]}} if named else {}, file)
    for source in sources:
        group = source.get("plugins")
        directory = group.get("directory") if isinstance(group, Mapping) else None
        if isinstance(directory, str) and directory:
            return Path(directory)
    return Path(DIRECTORY)


def _renamed(values: dict[str, Any], installed: Catalogue) -> tuple[dict[str, Any], list[Renamed]]:
    """The settings of a source with what engines' blocks say of summaries under `summarizer`, and
    what was moved so."""
    engines = values.get("engine")
    if not isinstance(engines, Mapping):
        return values, []
    moved, blocks, group = dict(engines), [], values.get(GROUP, {})
    for engine_id, options in engines.items():
        if isinstance(options, Mapping):
            block = Renamed(options, f"engine.{engine_id}", _own_names(str(engine_id), installed))
            blocks.append(block)
            group = block.over(group)
            if _is_a_block(str(engine_id), installed):
                moved[engine_id] = block.rest
            else:
                del moved[engine_id]
                block.problems.append(_no_engine(str(engine_id), installed))
    return {**values, "engine": moved, **({GROUP: group} if group else {})}, blocks


def _own_names(name: str, installed: Catalogue) -> set[str]:
    """The names of an engine's options; none where it is not installed."""
    models = (
        one.options for one in installed.registrations if name in (one.id, block_name(one.id))
    )
    return names_in(next(models, BaseModel))


def _is_a_block(name: str, installed: Catalogue) -> bool:
    ids = (*installed.ids, *(one.id for one in installed.refused), *EngineSettings.model_fields)
    return name in ids or name in map(block_name, ids)


def _no_engine(name: str, installed: Catalogue) -> Problem:
    near = difflib.get_close_matches(name, installed.ids, n=1)
    asked = f"; did you mean engine.{near[0]}?" if near else ""
    known = ", ".join(installed.ids) or "(none)"
    return Problem(f"engine.{name}", f"is not an installed engine: {known}{asked}")


def _from_file(
    config: str | Path | None, environ: Mapping[str, str]
) -> tuple[Path, dict[str, Any]]:
    wanted = config or environ.get(FILE_VARIABLE)
    path = Path(wanted or DEFAULT_FILE)
    if not wanted and not path.exists():
        return path, {}
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError([Problem(str(path), f"cannot be read: {reason}")]) from None
    from contextengine_server.config.formats import (
        read_yaml,
        shadowed,
    )  # late: most servers start without a file

    try:
        values = read_yaml(text, str(path))
    except OptionsError as error:
        raise SettingsError(error.problems) from None
    if values is None:
        return path, {}
    if not isinstance(values, dict):
        raise SettingsError([Problem(str(path), "must be a mapping of groups, such as `server:`")])
    twice = shadowed(values)
    if twice:
        raise SettingsError(
            [Problem(key, f"is given twice; keep one (in {path})") for key in twice]
        )
    return path, values


def _from_environment(environ: Mapping[str, str], model: type[Settings]) -> dict[str, Any]:
    """What CONTEXTENGINE_GROUP__NAME variables set.

    Other variables with the prefix are let be (Kubernetes sets CONTEXTENGINE_SERVICE_HOST for a
    service of that name), unless they look like a setting that was misspelt.
    """
    groups = [name.upper() for name in Settings.model_fields]
    problems = []
    for variable in environ:
        name = variable.upper().removeprefix(_PREFIX)
        if name == variable.upper() or variable.upper() == FILE_VARIABLE or name in groups:
            continue
        group, separator, _ = name.partition("__")
        if separator and group not in groups:
            text = f"names no group of settings; groups: {', '.join(groups)}"
            problems.append(Problem(variable, text))
        elif not separator and (group := next((g for g in groups if name.startswith(g + "_")), "")):
            better = f"{_PREFIX}{group}__{name.removeprefix(group + '_')}"
            problems.append(
                Problem(
                    variable,
                    f"is not a setting: a group ends with two underscores; did you mean {better}?",
                )
            )
    if problems:
        raise SettingsError(problems)
    source = EnvSettingsSource(model)
    source.env_vars = {name.lower(): value for name, value in environ.items()}
    try:
        return source()
    except UnreadableVariable as error:
        text = f"a variable that holds a list or a group must be JSON: {error}"
        raise SettingsError([Problem("the environment", text)]) from None


def _from_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for path, value in flags.items():
        if value is None:
            continue
        for part in reversed(path.split(".")):
            value = {part: value}
        nested = merge(nested, value)
    return nested


def _with_source(problem: Problem, sources: list[tuple[str, dict[str, Any]]]) -> Problem:
    """The problem, with the source that binds: the highest one that has its path or the group
    around it."""
    keys = problem.path.replace("[", ".").split(".")
    for length in range(len(keys), 0, -1):
        for source, values in reversed(sources):
            if _has(values, keys[:length]):
                return Problem(problem.path, f"{problem.text} (in {source})")
    return problem


def _has(values: Any, keys: list[str]) -> bool:
    for key in keys:
        wanted = key.replace("_", "").lower()
        matches = (
            [value for name, value in values.items() if name.replace("_", "") == wanted]
            if isinstance(values, dict)
            else []
        )
        if not matches:
            return isinstance(values, list)
        values = matches[0]
    return True
