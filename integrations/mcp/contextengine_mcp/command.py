"""The command line: `contextengine-mcp` serves tools, `contextengine-mcp hook` records."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from contextengine import AsyncClient, Client, ContextEngineError
from contextengine.formats import TranscriptError

from . import hooks
from .away import Away
from .names import Names

HOOK_S = 2.0
"""Seconds that a hook waits at most. Codex ends those of SessionEnd after three."""
EXAMPLES = """examples:
  codex mcp add contextengine -- contextengine-mcp --agent codex
  claude mcp add contextengine -- contextengine-mcp --agent claude-code
  contextengine-mcp --agent support --session-id case-1
"""


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command that was typed; its exit status."""
    given = _parser().parse_args(words)
    try:
        if given.command == "hook":
            return _hook(given)
        return asyncio.run(_serve(given))
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="contextengine-mcp",
        description="Offers a model the tools by which it finds what its context does not show.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--address",
        default=os.environ.get("CONTEXTENGINE_ADDRESS", "127.0.0.1:50051"),
        help="the server (CONTEXTENGINE_ADDRESS; default 127.0.0.1:50051)",
    )
    parser.add_argument(
        "--agent",
        default=os.environ.get("CONTEXTENGINE_AGENT", "default"),
        help="the agent whose sessions these are (CONTEXTENGINE_AGENT)",
    )
    parser.add_argument(
        "--session-id",
        default=os.environ.get("CLAUDE_CODE_SESSION_ID", ""),
        help="one session for all calls; default: what the host says (Codex, Claude Code)",
    )
    parser.add_argument(
        "--session-key",
        default=os.environ.get("CLAUDE_PROJECT_DIR") or _folder(),
        help="whose current session it is where the host says nothing; default: this folder",
    )
    parser.add_argument("--tls", action="store_true", help="speak TLS")
    commands = parser.add_subparsers(dest="command", metavar="")
    commands.add_parser("serve", help="serve tools on standard input and output (the default)")
    hook = commands.add_parser(
        "hook",
        help="as a hook of Codex or Claude Code: record the transcript that standard input names",
        description="Reads a hook's JSON from standard input. Never stops its host: what goes wrong"
        " is said on standard error, with exit status 0.",
    )
    hook.add_argument("--probe", action="store_true", help=argparse.SUPPRESS)
    return parser


def _folder() -> str:
    """The folder that is worked in. Empty: it was deleted meanwhile."""
    try:
        return os.getcwd()
    except OSError:
        return ""


async def _serve(given: argparse.Namespace) -> int:
    from .stdio import serve

    # Nothing is left to be done at the end. Python would wait for whoever reads standard input.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    names = Names(given.agent, given.session_id, given.session_key)
    async with AsyncClient(
        given.address, token=_token(), tls=given.tls, retry_for=0, breaker=True
    ) as client:
        await serve(client, names, _away(given))
    return 0


def _hook(given: argparse.Namespace) -> int:
    away = _away(given)
    try:
        if given.probe:
            with _client(given) as client:
                away.probe(lambda seconds: client.engines.list(timeout=seconds))
            return 0
        event = hooks.read(sys.stdin.read())
        # First: what the model is told does not hang on what becomes of the recording.
        sys.stdout.write(hooks.note(event))
        with _client(given) as client:
            hooks.record(client, given.agent, event, HOOK_S, away)
    except (hooks.HookError, TranscriptError, ContextEngineError, OSError) as error:
        sys.stderr.write(f"contextengine-mcp: not recorded: {error}\n")
    return 0


def _away(given: argparse.Namespace) -> Away:
    return Away(given.address, lambda: _probing(given))


def _probing(given: argparse.Namespace) -> subprocess.Popen[bytes]:
    """Begins to ask whether the service is back. The host ends a hook together with what the hook
    started, and waits for whoever holds its streams: this process has its own."""
    words = ["--address", given.address, *(["--tls"] if given.tls else []), "hook", "--probe"]
    nothing = subprocess.DEVNULL
    return subprocess.Popen(
        # The folder that is worked in holds others' modules.
        [sys.executable, "-P", "-m", "contextengine_mcp.command", *words],
        stdin=nothing,
        stdout=nothing,
        stderr=nothing,
        start_new_session=True,
    )


def _client(given: argparse.Namespace) -> Client:
    return Client(given.address, token=_token(), tls=given.tls, retry_for=0)


def _token() -> str:
    """The bearer token, from the environment alone: a command line is read by others."""
    return os.environ.get("CONTEXTENGINE_TOKEN", "")


if __name__ == "__main__":
    raise SystemExit(main())
