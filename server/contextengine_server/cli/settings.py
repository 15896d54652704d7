"""`config`, `token` and `version`: what needs neither server nor store."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from contextengine_server.cli.output import CommandFailed, note, print_json, print_table
from contextengine_server.cli.serve import parse_settings

if TYPE_CHECKING:
    from contextengine_server.config.settings import Settings


def import_file(file: Path, output: Path | None, force: bool) -> None:
    """Writes a host's configuration as ours, and lists on standard error what became of each
    key."""
    from contextengine_server.config.host_import import import_config
    from contextengine_server.config.schema import OptionsError

    if output is not None and output.exists() and not force:
        raise CommandFailed(f"{output} exists: give another file, or --force to overwrite it")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"{file} cannot be read: {error}") from error
    try:
        made = import_config(text, str(file))
    except OptionsError as error:
        raise CommandFailed("; ".join(map(str, error.problems))) from error
    if made.mapped:
        rows = [(entry.source, entry.ours, _word(entry.value)) for entry in made.mapped]
        print_table((f"mapped from {made.format}", "ours", "value"), rows, stderr=True)
    if made.ignored:
        print_table(("left out", "why"), made.ignored, stderr=True)
    for text in made.notes:
        note(f"note: {text}")
    if output is None:
        sys.stdout.write(made.settings_yaml)
        return
    try:
        output.write_text(made.settings_yaml, encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"{output} cannot be written: {error.strerror}") from error
    note(f"written to {output}: `contextengine config check --config {output}` checks it")


def show(config: Path | None, pairs: list[str], json: bool) -> None:
    """Prints the settings in force."""
    values = _load(config, pairs).redacted()
    if json:
        print_json(values)
        return
    import yaml

    sys.stdout.write(yaml.safe_dump(values, sort_keys=False, allow_unicode=True))


def check(config: Path | None, pairs: list[str], json: bool) -> bool:
    """Prints the checks of the settings in force; whether none is an error."""
    from contextengine_server.app import registry_of
    from contextengine_server.cli.doctor import print_checks
    from contextengine_server.health.checks import engine_checks, healthy, settings_checks

    settings = _load(config, pairs)
    checks = [
        *settings_checks(settings),
        *engine_checks(registry_of(settings), settings.engine.default),
    ]
    print_checks(checks, "the settings", json)
    return healthy(checks)


def hash_from_stdin() -> str:
    """The hash of the token on standard input, without the line end behind it."""
    from contextengine_server.api.pipeline.auth import hash_token

    token = getpass.getpass("token: ") if sys.stdin.isatty() else sys.stdin.read()
    token = token.strip()
    if not token:
        raise CommandFailed("no token on standard input: `openssl rand -hex 32` makes a good one")
    if any(character.isspace() for character in token):
        raise CommandFailed("a token has no space in it: give one token")
    return hash_token(token)


def versions() -> Iterator[tuple[str, str]]:
    """The versions of what runs."""
    from contextengine_server.plugins.stores import own_kinds

    yield "contextengine-server", version("contextengine-server")
    yield "contextengine (client)", version("contextengine")
    for scheme, kind in own_kinds().items():
        if kind.schema:
            yield f"{scheme} schema", kind.schema
    yield "api", "contextengine.v1"
    yield "grpcio", version("grpcio")
    yield "python", sys.version.split()[0]


def _load(config: Path | None, pairs: list[str]) -> Settings:
    from contextengine_server.config.load import SettingsError, load_settings

    try:
        return load_settings(config, parse_settings(pairs))
    except SettingsError as error:
        lines = "\n".join(f"  {problem}" for problem in error.problems)
        raise CommandFailed(f"the settings cannot be used:\n{lines}") from error


def _word(value: object) -> str:
    return "" if value is None else str(value)
