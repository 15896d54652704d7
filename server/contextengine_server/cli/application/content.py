"""The commands for what sessions hold, and what a model is shown of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from contextengine_server.cli.application.arguments import Agent, Json, SessionId
from contextengine_server.cli.connection import Where, asks, run

InputFile = Annotated[
    Path, typer.Argument(help="The file.", exists=True, dir_okay=False, readable=True)
]
Budget = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Tokens for messages, final. Default: what the session's window leaves.",
        show_default=False,
    ),
]
Full = Annotated[
    bool, typer.Option("--full", help="Print texts whole instead of their beginnings.")
]
Format = Literal[
    "auto",
    "openai",
    "pi",
    "anthropic",
    "claude-code",
    "codex",
    "lossless-claw",
    "hermes",
    "openclaw",
    "jsonl",
]

content_app = typer.Typer()


@content_app.command(
    "import",
    epilog="Example: contextengine import airline_transcripts.jsonl ~/.codex/sessions --agent mine",
)
@asks
def import_(
    where: Where,
    paths: Annotated[
        list[Path], typer.Argument(help="Files, and folders of them.", exists=True, readable=True)
    ],
    agent: Agent = "default",
    session: Annotated[
        str, typer.Option(help="The session's id, for a file of one session.", show_default=False)
    ] = "",
    format: Annotated[Format, typer.Option(help="The files must be of this format.")] = "auto",
    json: Json = False,
) -> None:
    """Store the sessions of files.

    Reads session files of Pi, OpenClaw, Codex and Claude Code, the databases of OpenClaw
    (openclaw-agent.sqlite), Hermes (state.db) and lossless-claw (lcm.db), OpenAI chat JSON lines,
    Anthropic messages JSON, and what `export --format jsonl` wrote. Each session
    is stored whole or not at all; a bad line is named by its number. The same file again changes
    nothing, and one that grew goes on where it was. Of a harness's session file the branch is taken
    that ends with its last entry, compactions as the harness's summaries; what is left out is
    named.
    """
    from contextengine_server.cli.imports.command import import_files

    run(import_files(where, paths, agent, session, format, json))


@content_app.command(epilog="Example: contextengine export case-1 --format native -o case-1.jsonl")
@asks
def export(
    where: Where,
    session: SessionId,
    agent: Agent = "default",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The file to write. Default: standard output.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        Literal["jsonl", "openai", "native"],
        typer.Option(
            help=(
                "jsonl: every stored row, summaries included. openai: one OpenAI chat session."
                " native: each message's"
                " original, byte for byte."
            )
        ),
    ] = "jsonl",
) -> None:
    """Write a session as it is stored."""
    from contextengine_server.cli.transfer import export_session

    run(export_session(where, session, agent, output, format))


@content_app.command(
    epilog="Example: contextengine replay coding_session.pi.jsonl --budget 40000 --limit 10"
)
@asks
def replay(
    where: Where,
    file: InputFile,
    agent: Agent = "replay",
    session: Annotated[
        str,
        typer.Option(
            help="The id of the session that is made. Default: a new one.", show_default=False
        ),
    ] = "",
    budget: Budget = None,
    engine: Annotated[
        str, typer.Option(help="Assign this engine to the session first.", show_default=False)
    ] = "",
    way: Annotated[
        Literal["ingest", "separate", "live", "live-ids"],
        typer.Option(
            help=(
                "How the harness calls. ingest: new messages inside Assemble. separate:"
                " IngestBatch, then Assemble."
                " live: its whole list each time, without message ids. live-ids: the same with ids."
            )
        ),
    ] = "ingest",
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="At most this many turns of a session.", show_default=False),
    ] = None,
    sessions: Annotated[
        int | None,
        typer.Option(min=1, help="At most this many sessions of the file.", show_default=False),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also print what became of every message at the end.")
    ] = False,
    json: Json = False,
) -> None:
    """Drive a server through a transcript, turn by turn, as an agent's loop would.

    Before each reply of the transcript it asks for the context, at each turn's end it says so;
    where the context does not fit it compacts and asks again. Background compaction is waited for,
    as a model's answer would take longer. The session stays, to be looked at with `show`.
    """
    from contextengine_server.cli.replay import ReplayPlan, replay_file

    plan = ReplayPlan(agent, session, budget, engine, way, limit, sessions, explain)
    run(replay_file(where, file, plan, json))


@content_app.command(epilog="Example: contextengine show case-1 --budget 8000 --explain")
@asks
def show(
    where: Where,
    session: SessionId,
    agent: Agent = "default",
    budget: Budget = None,
    model: Annotated[
        str,
        typer.Option(help="The model to assemble for. Default: the session's.", show_default=False),
    ] = "",
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Also print the decision for every message of the session."),
    ] = False,
    full: Full = False,
    json: Json = False,
) -> None:
    """Print the context that the model would get now.

    Stores nothing. As with every assembly, a compaction that is due is queued.
    """
    from contextengine_server.cli.sessions import show_session

    run(show_session(where, session, agent, budget, model, explain, full, json))


@content_app.command(
    epilog="Example: contextengine project case-1 --to anthropic --budget 8000 > body.json"
)
@asks
def project(
    where: Where,
    to: Annotated[
        str, typer.Option(metavar="TARGET", help="The form: one of `contextengine targets`.")
    ],
    session: Annotated[str, typer.Argument(help="The session's id.", show_default=False)] = "",
    agent: Agent = "default",
    budget: Budget = None,
    model: Annotated[
        str,
        typer.Option(
            help="The model that will be called. Default: the session's.", show_default=False
        ),
    ] = "",
    renderer: Annotated[
        str, typer.Option(help="For codex: jsonl (the default) or openclaw.", show_default=False)
    ] = "",
    items: Annotated[
        bool, typer.Option("--items", help="For codex: items to inject instead of a framed prompt.")
    ] = False,
    check: Annotated[
        Path | None,
        typer.Option(
            help=(
                "Instead, judge this JSON file by the rules of the form: a whole request or its"
                " list."
            ),
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print a session in the form that a harness or provider speaks, or judge a file of that form.

    Standard output gets the body that would be sent, as JSON. Standard error gets what a harness
    should do with it, what the form could not say, and every rule of the form that is broken.
    Changes nothing.
    """
    from contextengine_server.cli.project import check_file, project_session

    if bool(session) == bool(check):
        raise typer.BadParameter("name a session to print, or a file to --check")
    if check is not None:
        check_file(check, to, model)
    else:
        run(project_session(where, session, agent, to, renderer, items, budget, model))


@content_app.command(epilog="Example: contextengine targets")
def targets(json: Json = False) -> None:
    """List the forms that contexts are projected into, those of installed packages included."""
    from contextengine_server.cli.project import list_targets

    list_targets(json)


@content_app.command(epilog="Example: contextengine compact case-1 --focus 'the refund' --force")
@asks
def compact(
    where: Where,
    session: SessionId,
    agent: Agent = "default",
    focus: Annotated[
        str, typer.Option(help="What the summary should keep in sight.", show_default=False)
    ] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Compact even below the threshold.")
    ] = False,
    redo: Annotated[
        bool,
        typer.Option(
            "--redo", help="Compact nothing: make summaries again that stood in for better ones."
        ),
    ] = False,
    budget: Budget = None,
    json: Json = False,
) -> None:
    """Compact a session's view. Its messages stay stored."""
    from contextengine_server.cli.sessions import compact_session

    run(compact_session(where, session, agent, focus, force, redo, budget, json))


@content_app.command(epilog="Example: contextengine status case-1")
@asks
def status(where: Where, session: SessionId, agent: Agent = "default", json: Json = False) -> None:
    """Print how a session is: counts, tokens, engine, jobs, usage."""
    from contextengine_server.cli.sessions import session_status

    run(session_status(where, session, agent, json))


@content_app.command(epilog="Example: contextengine watch --agent airline --event session:")
@asks
def watch(
    where: Where,
    agent: Annotated[str, typer.Option(help="Only of this agent.", show_default=False)] = "",
    session: Annotated[str, typer.Option(help="Only of this session.", show_default=False)] = "",
    event: Annotated[
        list[str] | None,
        typer.Option(
            help="Only events whose name begins so. Can be given again.", show_default=False
        ),
    ] = None,
    resume: Annotated[
        str, typer.Option(help="The position of the last event seen.", show_default=False)
    ] = "",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many events.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Print what happens to sessions, as it happens, until interrupted. Needs a running server."""
    from contextengine_server.cli.sessions import watch_events

    run(watch_events(where, agent, session, event or [], resume, limit, json))
