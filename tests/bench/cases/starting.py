"""From the start of the process to the first answer of its health."""

from __future__ import annotations

from ..bench import Bench
from ..house import launch_server
from ..report import of_rounds


def run(bench: Bench) -> None:
    """The first start makes the database; it is not among the rounds."""
    directory = bench.directory / "start"
    took = []
    for _ in range(bench.rounds + 1):
        with launch_server(directory) as server:
            took.append(server.serving())
    bench.add(
        of_rounds(
            "start",
            "until ready",
            took[1:],
            unit="s",
            goal=1.5,
            more_is_better=False,
            ours=f"first {took[0]:.2f} s",
        )
    )
