"""Driving: each profile against the floor and then against the server, the mix, and the ramps."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.bench.house import BenchError, Process, start_floor, start_server
from tests.bench.talk import Talk

from .checking import PROBES, STORING, group, probe, share, written
from .ghz import WARM_S, Drive, Outcome, Tools
from .profiles import Profile, mix, profiles
from .seed import WRITTEN, seed_read, seed_written

CONCURRENCY = (1, 2, 4, 8, 16, 32)
"""Calls in flight at the steps of the ramp of `step`."""

SCALES = (1, 2, 4, 8)
"""What the rates of the mix are multiplied by at the steps of its ramp."""

OVERRUN = 15
"""Calls of Compact that ghz may make after its time: at the end it tosses a coin between stopping
and one call more."""


@dataclass(frozen=True, slots=True)
class Row:
    """A load on both sides."""

    name: str
    about: str
    load: str
    """How much is sent: calls in flight, each followed by the next; or calls offered a second."""
    floor: Outcome
    ours: Outcome

    @property
    def share(self) -> float | None:
        """The throughput of ours over the floor's. None where calls are offered at a rate, which
        both may keep up with."""
        return None if self.load.endswith("calls/s") else self.ours.rate / self.floor.rate


class Driving:
    """One run: a server with a seeded store, and what is driven at it. Whatever is started ends
    with `stack`."""

    def __init__(
        self, scratch: Path, out: Path, tools: Tools, seconds: float, stack: ExitStack
    ) -> None:
        self._scratch = scratch
        self._drive = Drive(tools, out, seconds)
        self._seconds = seconds
        began = time.perf_counter()
        self._server = stack.enter_context(start_server(scratch / "server"))
        self._talk = Talk(self._server.address)
        stack.callback(self._talk.close)
        seed_read(self._talk)
        tell(f"the server is ready, its store seeded, after {time.perf_counter() - began:.0f} s")

    def one(self, profile: Profile) -> list[Row]:
        """A profile, as its file has it."""
        with self._floor(profile.name, {profile.rpc: profile}) as floor:
            return [self._beside(floor, profile, "once-")]

    def ramp_step(self) -> list[Row]:
        """The step with ever more calls in flight, each on a session of its own."""
        profile = profiles()["step"]
        with self._floor("ramp-step", {profile.rpc: profile}) as floor:
            return [self._beside(floor, profile, f"ramp-{count}-", count) for count in CONCURRENCY]

    def together(self) -> list[Row]:
        """All of the mix at once: first what they came to together, then each."""
        with self._floor("mixed", {part.rpc: part for part in mix().values()}) as floor:
            return self._mixed(floor, "mixed", 1)

    def ramp_mixed(self) -> list[Row]:
        """The mix at ever higher rates."""
        with self._floor("ramp-mixed", {part.rpc: part for part in mix().values()}) as floor:
            return [self._mixed(floor, "ramp-mixed", scale)[0] for scale in SCALES]

    def _beside(
        self, floor: Process, profile: Profile, run: str, concurrency: int | None = None
    ) -> Row:
        bare = self._drive(floor, [profile], run, concurrency=concurrency)
        count = concurrency or WRITTEN.get(group(profile), 0)
        if profile.rpc != "EndSubagent":  # its parents are there: spawn ran before
            seed_written(self._talk, run, {group(profile): count})
        before = written(self._talk, profile, run, count)
        ours = self._drive(self._server, [profile], run, concurrency=concurrency)
        _same(profile.name, written(self._talk, profile, run, count) - before, [profile], ours)
        load = f"{concurrency or profile.config['concurrency']} in flight"
        return _told(Row(profile.name, profile.about, load, bare[0], ours[0]))

    def _mixed(self, floor: Process, name: str, scale: int) -> list[Row]:
        run = f"{name}-{scale}-"
        parts = list(mix().values())
        rates = [part.config["rps"] * scale for part in parts]
        bare = self._drive(floor, parts, run, rates=rates)
        compactions = (
            round(mix()["compact"].config["rps"] * scale * (self._seconds + WARM_S)) + OVERRUN
        )
        agents = WRITTEN["agent"]
        seed_written(self._talk, run, {"agent": agents, "compact": compactions})
        before = written(self._talk, mix()["step"], run, agents)
        ours = self._drive(self._server, parts, run, rates=rates)
        storing = [part if part.rpc in STORING else None for part in parts]
        _same(name, written(self._talk, mix()["step"], run, agents) - before, storing, ours[1:])
        names = [name, *(f"{name}: {part.name}" for part in parts)]
        abouts = ["an agent's calls, all at the same time", *(part.about for part in parts)]
        turns = mix()["after-turn"].config["rps"] * scale
        loads = [
            f"{turns} turns/s, {sum(rates):,} calls/s",
            *(f"{rate:,} calls/s" for rate in rates),
        ]
        rows = [Row(*cells) for cells in zip(names, abouts, loads, bare, ours, strict=True)]
        _told(rows[0])
        return rows

    def _floor(self, name: str, answered: Mapping[str, Profile]) -> Process:
        """A floor that answers these rpcs as the server does."""
        replies = self._scratch / f"floor-{name}"
        replies.mkdir()
        probes = {**answered}
        if answered.keys() == {"EndSubagent"}:  # without children there is nothing to end
            probes = {"PrepareSubagentSpawn": profiles()["spawn"], **answered}
        run = f"probe-{name}-"
        seed_written(
            self._talk, run, {name: PROBES for part in probes.values() if (name := group(part))}
        )
        for rpc, profile in probes.items():
            (replies / rpc).write_bytes(probe(self._talk, profile, run))
        return start_floor(replies)


def _same(
    name: str, rise: int, parts: Sequence[Profile | None], outcomes: Sequence[Outcome]
) -> None:
    """Holds what is in the store against what was answered. Raises BenchError where it is another
    count."""
    answered = sum(
        one.all_calls * share(part)
        for part, one in zip(parts, outcomes, strict=True)
        if part is not None
    )
    if not any(one.errors for one in outcomes) and rise != answered:
        raise BenchError(
            f"{name}: the calls that were answered should have written {answered}, not {rise}"
        )


CASES: dict[str, Callable[[Driving], list[Row]]] = {
    **{name: partial(Driving.one, profile=profile) for name, profile in profiles().items()},
    "mixed": Driving.together,
    "ramp-step": Driving.ramp_step,
    "ramp-mixed": Driving.ramp_mixed,
}
"""What can be run, by the name that `--only` takes, in the order in which it runs."""


def tell(line: str) -> None:
    """Progress: a run takes minutes."""
    print(f"  {line}", file=sys.stderr, flush=True)


def _told(row: Row) -> Row:
    tell(
        f"{row.name}, {row.load}: {row.ours.rate:,.0f}/s, p99 {row.ours.p99 * 1e3:,.1f} ms,"
        f" {row.ours.errors} errors (floor {row.floor.rate:,.0f}/s, {row.floor.p99 * 1e3:,.1f} ms,"
        f" {row.floor.errors})"
    )
    return row
