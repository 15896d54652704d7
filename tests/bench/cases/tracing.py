"""Assemble of 100 KB, asked anew, with tracing off, at 1 % and at 100 %, spans exported to a sink
on this machine."""

from __future__ import annotations

from ..bench import Bench, median, rate
from ..house import start_sink
from ..load import SERIAL, Load, Slice, Step, drive
from ..report import of_rounds
from ..talk import ENGINE, assemble, conversation


def run(bench: Bench) -> None:
    """Three servers in turns."""
    directory = bench.directory / "tracing"
    directory.mkdir()
    sink = bench.stack.enter_context(start_sink(directory))
    servers = [
        bench.serve(
            f"tracing/{ratio}",
            {
                "CONTEXTENGINE_TELEMETRY__TRACES__ENDPOINT": f"http://{sink.address}"
                if ratio
                else "",
                "CONTEXTENGINE_TELEMETRY__TRACES__SAMPLE_RATIO": str(ratio),
            },
        )
        for ratio in (0, 0.01, 1)
    ]
    asked = assemble("traced")
    asked.known_epoch = SERIAL
    request = asked.SerializeToString()
    for server in servers:
        talk = bench.talk(server)
        talk.fill("traced", list(conversation(220, 400)))
        talk.raw(f"{ENGINE}/Assemble", request)
    load = Load([Step(f"{ENGINE}/Assemble", [request])])

    def side(index: int) -> Slice:
        return drive(load, servers[index], bench.seconds)

    off, some, every = bench.turns([lambda: side(0), lambda: side(1), lambda: side(2)])
    for taken, share, goal in ((some, "1 %", 0.97), (every, "100 %", 0.6)):
        bench.add(
            of_rounds(
                "tracing",
                f"throughput at {share} against off",
                [one.rate / plain.rate for one, plain in zip(taken, off, strict=True)],
                goal=goal,
                floor=f"off: {median(off, rate):,.0f}/s",
                ours=f"{median(taken, rate):,.0f}/s",
            )
        )
