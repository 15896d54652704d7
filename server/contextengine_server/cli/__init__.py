"""The command line: `contextengine serve`, and commands that talk to a running server or open the
store.

Each command imports what it needs when it runs, so that `serve` is ready soon and `--help` answers
at once.
"""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main() -> None:
    """Runs the command that was typed. What a user can mend is one line on standard error, never a
    traceback."""
    from contextengine_server.cli.application import app
    from contextengine_server.cli.output import CommandFailed, complain

    try:
        app(prog_name="contextengine")
    except CommandFailed as failure:
        if failure.text:
            complain(failure.text)
        sys.exit(failure.status)
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python would complain again when it flushes at
        # the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
