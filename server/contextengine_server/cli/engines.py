"""`engines`: which there are, what they can be set to, and choosing one."""

from __future__ import annotations

import json as jsonlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from contextengine_server.cli.connection import Missing, Where, connected
from contextengine_server.cli.output import (
    CommandFailed,
    plain,
    print_facts,
    print_json,
    print_table,
)

if TYPE_CHECKING:
    from contextengine.types import SessionMatch


async def list_engines(where: Where, json: bool) -> None:
    """Prints the engines."""
    async with connected(where, Missing.TEMPORARY) as client:
        reply = await client.engines.list()
    if json:
        print_json(plain(reply))
        return
    rows = [
        (
            engine.info.id + (" (default)" if engine.info.id == reply.default_engine_id else ""),
            engine.info.name,
            engine.info.version,
            engine.owner,
            "itself" if engine.info.owns_compaction else "host, or built in",
            engine.info.tail_steps,
            _state(engine),
        )
        for engine in reply.engines
    ]
    print_table(("engine", "name", "version", "owner", "compacts", "#tail steps", "state"), rows)


async def show_engine(where: Where, engine: str, agent: str, session: str, json: bool) -> None:
    """Prints an engine with its options."""
    from contextengine import SessionRef

    more: dict[str, Any] = {"engine_id": engine}
    if session:
        more["session"] = SessionRef(agent_id=agent, session_id=session)
    async with connected(where, Missing.REFUSE if session else Missing.TEMPORARY) as client:
        reply = await client.engines.get(**more)
    if json:
        print_json(plain(reply))
        return
    info = reply.engine.info
    print_facts(
        [
            ("engine", f"{info.id} {info.version} ({info.name})"),
            ("owner", reply.engine.owner),
            ("chosen by", reply.source),
            ("state", _state(reply.engine)),
            (
                "compacts at",
                (
                    f"{info.compaction_threshold:.0%} of the budget"
                    if info.compaction_threshold
                    else ""
                ),
            ),
        ]
    )
    rows = [
        (
            option.name,
            option.value_json.decode(),
            option.source,
            option.default_json.decode(),
            (
                f"{option.minimum_json.decode()} to {option.maximum_json.decode()}"
                if option.minimum_json
                else ""
            ),
            option.description,
        )
        for option in reply.options
    ]
    print_table(("option", "#value", "from", "#default", "limits", "meaning"), rows)


async def use_engine(
    where: Where,
    engine: str,
    agent: str,
    session: str,
    options: list[str],
    match: list[str],
    clear: bool,
) -> None:
    """Assigns an engine or options, or takes an assignment back."""
    from contextengine import SessionRef

    if clear and (engine or options):
        raise CommandFailed(
            "--clear takes back what was chosen: give no engine and no options with it", 2
        )
    if not clear and not engine and not options:
        raise CommandFailed(
            "name an engine (`contextengine engines list` shows them), or --option, or --clear", 2
        )
    if match and (agent or session):
        raise CommandFailed(
            "--match names agents and sessions itself: leave --agent and --session out", 2
        )
    if session and not agent:
        agent = "default"
    scope = SessionRef(agent_id=agent, session_id=session)
    values = jsonlib.dumps(parse_options(options)).encode() if options else b""
    async with connected(where) as client:
        named: Any = {"match": parse_match(match)} if match else {"scope": scope}
        reply = await client.engines.assign(
            engine_id=engine, options_json=values, clear=clear, **named
        )
    whom = (
        f"session {session!r} of agent {agent!r}"
        if session
        else f"agent {agent!r}"
        if agent
        else f"sessions with {', '.join(match)}"
        if match
        else "the tenant"
    )
    print(f"{whom}: {reply.engine.id} {reply.engine.version}, by {reply.source}")


def parse_match(pairs: list[str]) -> SessionMatch:
    """`name=glob` pairs. Raises CommandFailed."""
    from contextengine.types import SessionMatch

    names = {"agent": "agent_id", "session": "session_id", "key": "session_key", "model": "model"}
    found = SessionMatch()
    for pair in pairs:
        name, _, value = pair.partition("=")
        if name in names and value:
            setattr(found, names[name], value)
        elif name in ("min_window", "max_window") and value.isdecimal():
            setattr(found, name, int(value))
        else:
            raise CommandFailed(
                f"--match {pair}: must be one of {', '.join(names)} and a glob, or min_window or"
                " max_window and tokens, such as key=agent:*:cron:**",
                2,
            )
    return found


def parse_options(pairs: list[str]) -> dict[str, Any]:
    """`name=value` pairs, a name of a group as `group.name`; a value that is JSON is taken as JSON,
    any other as text. Raises CommandFailed."""
    from contextengine_server.config.schema import merge  # late: most commands need no settings

    values: dict[str, Any] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name.strip():
            raise CommandFailed(
                f"--option {pair}: must be name=value, such as freshTailTurns=12", 2
            )
        nested: Any = value
        with suppress(ValueError):
            nested = jsonlib.loads(value)
        for part in reversed(name.strip().split(".")):
            nested = {part: nested}
        values = merge(values, nested)
    return values


def _state(engine: Any) -> str:
    if not engine.available:
        return f"not available: {engine.unavailable_reason}"
    if engine.HasField("failure"):
        return (
            f"failed {engine.failure.count} times, first at {engine.failure.operation}:"
            f" {engine.failure.reason}"
        )
    return "ok"
