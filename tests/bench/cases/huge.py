"""A message of 10 MB beside other sessions: how long the others wait."""

from __future__ import annotations

import threading
from random import Random

from contextengine_proto.v1 import lifecycle_pb2, message_pb2

from ..bench import Bench, median, p99
from ..load import SERIAL, Load, Slice, Step, drive
from ..report import of_rounds
from ..talk import ENGINE, assemble, conversation, ref, said, text

CALLS_PER_S = 200
"""What the others ask for: far from what the server carries, so that only waiting shows."""


def run(bench: Bench) -> None:
    """Others assemble 100 KB, without and with messages of 10 MB that arrive one after the
    other."""
    talk = bench.talk(bench.server)
    talk.fill("beside", list(conversation(220, 400)))
    asked = assemble("beside")
    asked.known_epoch = SERIAL
    load = Load(
        [Step(f"{ENGINE}/Assemble", [asked.SerializeToString()])], scripts_per_s=CALLS_PER_S
    )
    message = said(message_pb2.ROLE_USER, text(Random(1), 10_000_000))
    stored = 0

    def alone() -> Slice:
        return drive(load, bench.server, max(bench.seconds, 4))

    def beside() -> Slice:
        over = threading.Event()

        def write() -> None:
            nonlocal stored
            while not over.is_set():
                request = lifecycle_pb2.IngestRequest(
                    session=ref(f"huge-{stored}"), message=message
                )
                talk.raw(f"{ENGINE}/Ingest", request.SerializeToString())
                stored += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            return drive(load, bench.server, max(bench.seconds, 4))
        finally:
            over.set()
            writer.join()

    quiet, busy = bench.turns([alone, beside])
    bench.add(
        of_rounds(
            "10 MB message",
            f"p99 of others with it against without, {stored} stored",
            [with_.p99 / without.p99 for with_, without in zip(busy, quiet, strict=True)],
            goal=2,
            more_is_better=False,
            floor=f"without: {median(quiet, p99) * 1e3:.2f} ms",
            ours=f"with: {median(busy, p99) * 1e3:.2f} ms",
        )
    )
