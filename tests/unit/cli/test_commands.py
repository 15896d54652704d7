"""The commands as they are declared: help with examples, shared options, what is refused before
anything is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from contextengine_server.cli.application import app
from contextengine_server.cli.connection import Where, dialled, explain
from contextengine_server.cli.engines import parse_options
from contextengine_server.cli.output import CommandFailed
from contextengine_server.cli.serve import parse_settings
from contextengine_server.cli.store import prune, vacuum
from contextengine_server.context.scope import Scope
from contextengine_server.store.sqlite import SqliteStore
from contextengine_server.testing.store.rows import Pen

ASKING = ("import", "export", "replay", "show", "project", "compact", "status", "watch", "doctor")


def commands(group: typer.Typer = app, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command by the words that one types."""
    for command in group.registered_commands:
        assert command.callback is not None
        yield (*path, command.name or command.callback.__name__.replace("_", "-"))
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        yield from commands(inner.typer_instance, (*path, inner.name) if inner.name else path)


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_help_teaches_with_an_example(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], terminal_width=200)
    assert shown.exit_code == 0
    assert (
        f"Example: {'openssl' if words[0] == 'token' else 'contextengine ' + ' '.join(words)}"
        in shown.output
    )


def test_the_commands_of_hosts_pass_their_words_on() -> None:
    pytest.importorskip("contextengine_mcp")
    shown = CliRunner().invoke(app, ["mcp", "--", "--help"])
    assert shown.exit_code == 0
    assert "usage: contextengine-mcp" in shown.output


def test_no_tenant_is_not_a_tenant() -> None:
    refused = CliRunner().invoke(app, ["delete", "--tenant", "", "--yes"])
    assert refused.exit_code == 2
    assert "--tenant" in refused.output


@pytest.mark.parametrize("name", ASKING)
def test_commands_that_ask_share_the_options_that_say_whom(name: str) -> None:
    group = get_command(app)
    options = {option for p in group.commands[name].params for option in p.opts}  # type: ignore[attr-defined]
    assert {"--address", "--token", "--tls", "--ca", "--config", "--store", "--agent"} <= options


def test_settings_are_given_as_paths_with_yaml_values() -> None:
    pairs = [
        "engine.default=legacy",
        "server.max_concurrent_rpcs=5",
        "auth.tokens=[{tenant: a}]",
        "store.url=a=b",
    ]
    assert parse_settings(pairs) == {
        "engine.default": "legacy",
        "server.max_concurrent_rpcs": 5,
        "auth.tokens": [{"tenant": "a"}],
        "store.url": "a=b",
    }


@pytest.mark.parametrize("pair", ["engine.default", "=legacy", "a=[", "a={"])
def test_what_is_no_setting_is_refused_with_its_text(pair: str) -> None:
    with pytest.raises(CommandFailed, match="--set") as refused:
        parse_settings([pair])
    assert refused.value.status == 2


def test_options_of_an_engine_are_json_or_text() -> None:
    grouped = [
        "compaction.strategy=dag",
        "compaction.maxTokens=9000",
        "layers.transient.maxTokens=1",
    ]
    assert parse_options(grouped) == {
        "compaction": {"strategy": "dag", "maxTokens": 9_000},
        "layers": {"transient": {"maxTokens": 1}},
    }
    assert parse_options(["freshTailTurns=12", "deferCompaction=false", "model=a b"]) == {
        "freshTailTurns": 12,
        "deferCompaction": False,
        "model": "a b",
    }
    with pytest.raises(CommandFailed, match="name=value"):
        parse_options(["freshTailTurns"])


@pytest.mark.parametrize(
    ("address", "called"),
    [
        ("0.0.0.0:50051", "127.0.0.1:50051"),
        ("[::]:50051", "[::1]:50051"),
        ("10.0.0.1:1", "10.0.0.1:1"),
        ("unix:/run/ce.sock", "unix:/run/ce.sock"),
    ],
)
def test_a_server_that_listens_everywhere_is_called_here(address: str, called: str) -> None:
    assert dialled(address) == called


def test_nothing_is_asked_where_the_words_contradict_each_other(tmp_path: Path) -> None:
    invoke = CliRunner().invoke
    both = invoke(app, ["show", "s", "--address", "127.0.0.1:1", "--store", str(tmp_path / "x.db")])
    assert isinstance(both.exception, CommandFailed)
    assert "one of the two" in both.exception.text
    nothing = invoke(app, ["engines", "use"])
    assert isinstance(nothing.exception, CommandFailed)
    assert nothing.exception.status == 2
    cleared = invoke(app, ["engines", "use", "dag", "--clear"])
    assert isinstance(cleared.exception, CommandFailed)


def test_where_holds_what_its_options_say() -> None:
    assert Where() == Where(address="", token="", tls=False, ca=None, config=None, store="")


def test_a_refusal_is_one_line_with_reason_and_advice() -> None:
    from grpc import StatusCode

    from contextengine.errors import Overloaded, SessionNotFound, Unavailable

    missing = explain(
        SessionNotFound("there is no session 'x'\nof agent", code=StatusCode.NOT_FOUND)
    )
    assert missing.startswith(
        "SESSION_NOT_FOUND: there is no session 'x' of agent. `contextengine sessions list`"
    )
    busy = explain(
        Overloaded("too many calls", code=StatusCode.RESOURCE_EXHAUSTED, retry_after=0.2)
    )
    assert busy == "OVERLOADED: too many calls (try again in 0.2 s)"
    gone = explain(Unavailable("closed", code=StatusCode.UNAVAILABLE))
    assert gone.startswith("UNAVAILABLE: closed. The server went away")


async def test_vacuum_writes_the_store_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "store.db"
    with pytest.raises(CommandFailed, match="no database"):
        await vacuum(Where(store=str(path)))
    store = SqliteStore(path)
    await store.open()
    try:
        with pytest.raises(CommandFailed, match="is open in this process"):
            await vacuum(Where(store=str(path)))
    finally:
        await store.close()
    await vacuum(Where(store=str(path)))
    assert str(path) in capsys.readouterr().out
    with pytest.raises(CommandFailed, match="give --store"):
        await vacuum(Where(address="127.0.0.1:1"))


async def test_prune_erases_what_the_rules_let_go(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "store.db"
    settings = tmp_path / "contextengine.yaml"
    where = Where(store=str(path), config=settings)
    settings.write_text("retention: {}")
    with pytest.raises(CommandFailed, match="there are no rules"):
        await prune(where, False, False)
    settings.write_text("retention: {rules: [{agent: main, max_age: 1d}]}")
    with pytest.raises(CommandFailed, match="no database"):
        await prune(where, False, False)
    store = SqliteStore(path)
    await store.open()
    for agent in ("main", "other"):
        await Pen(store, Scope("default", agent, "s1")).write(count=2)
    await store.close()
    for dry_run, left in ((True, ["main", "other"]), (False, ["other"])):
        await prune(where, dry_run, True)
        (said,) = json.loads(capsys.readouterr().out)["sessions"]
        assert (said["agent"], said["session"], said["limit"]) == ("main", "s1", "age")
        assert said["last write"].startswith("1970-01-01")
        await store.open()
        heads = await store.list_sessions("default", limit=9)
        await store.close()
        assert sorted(head.scope.agent for head in heads) == left
    await prune(where, False, False)
    assert "0 sessions" in capsys.readouterr().out
    with pytest.raises(CommandFailed, match="give --store"):
        await prune(Where(address="127.0.0.1:1"), False, False)
