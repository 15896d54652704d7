"""The demo: starts a server on a free port with a store of its own, replays real conversations,
shows what a model would see.

Every line that begins with `$` is a command that anyone can type; this script types them.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
COMMAND = Path(sys.executable).with_name("contextengine")

LICENCES = """\
The conversations, copied unchanged into tests/data:
  airline_transcripts.jsonl  120 customer-service sessions of tau-bench
                             MIT, Copyright (c) 2024 Sierra
  coding_session.pi.jsonl    one coding-agent session of pi-mono
                             MIT, Copyright (c) 2025 Mario Zechner
"""


@contextmanager
def server(directory: Path) -> Iterator[str]:
    """A server on a free port of this machine; its address."""
    arguments = ["serve", "--address", "127.0.0.1:0", "--store", str(directory / "demo.db")]
    with (directory / "server.log").open("w") as log:
        process = subprocess.Popen(
            [COMMAND, *arguments], stdout=subprocess.PIPE, stderr=log, text=True, cwd=directory
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("ready on "):
            process.wait(timeout=10)
            sys.exit(f"the server did not start:\n{(directory / 'server.log').read_text()}")
        print(f"$ contextengine {shlex.join(arguments)}\n{line}")
        yield line.split()[2]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def type_command(address: str, *arguments: str) -> None:
    """Runs a command against the server, as typed. Ends the demo where it fails."""
    shown = [
        os.path.relpath(word, ROOT) if word.startswith(str(DATA)) else word for word in arguments
    ]
    print(f"$ contextengine {shlex.join(shown)}", flush=True)
    done = subprocess.run(
        [COMMAND, *arguments],
        env=os.environ | {"CONTEXTENGINE_ADDRESS": address},
        timeout=60,
        check=False,
    )
    print(flush=True)
    if done.returncode:
        sys.exit(f"the command failed with exit status {done.returncode}")


def main() -> None:
    """The demo."""
    airline, coding = str(DATA / "airline_transcripts.jsonl"), str(DATA / "coding_session.pi.jsonl")
    print(LICENCES, flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="contextengine-demo-") as directory,
        server(Path(directory)) as address,
    ):
        print("Three customer-service sessions, with room for 3,000 tokens of messages:\n")
        type_command(address, "replay", airline, "--sessions", "3", "--budget", "3000")
        print("A coding session of 914 messages, with room for 40,000 tokens of messages:\n")
        type_command(address, "replay", coding, "--session", "coding", "--budget", "40000")
        print("What the model would see now:\n")
        type_command(address, "show", "coding", "--agent", "replay", "--budget", "40000")
        type_command(address, "status", "coding", "--agent", "replay")
    print(
        "`contextengine show --full` prints every text whole, `--explain` the decision for each"
        " message."
    )


if __name__ == "__main__":
    main()
