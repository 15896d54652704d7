"""ghz as the load: a process a profile, and what the calls in its report come to."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tests.bench.house import BenchError, Process

from .profiles import Profile

VERSION = "v0.121.0"
"""As the Makefile pins it."""

WARM_S = 0.5
"""Connecting, and the first calls, which find caches cold. Does not count, but where the number of
calls is fixed."""

GRACE_S = 90.0
"""What a run may take beyond its seconds before it is given up: a fixed number of calls takes what
it takes."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What is run."""

    ghz: Path
    deltas: Path
    """Our program on ghz's runner, for a profile that carries a reply into the next request."""
    protoset: Path
    """The descriptors: the floor describes nothing."""


@dataclass(frozen=True, slots=True)
class Made:
    """One call."""

    began: float
    """Seconds since 1970, as `ended` is."""
    ended: float
    error: str
    """Empty: it was answered OK."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a load. Latencies in seconds; 0 where no call counts."""

    calls: int
    """Answered OK, and counted: within the window in which all processes were at work."""
    rate: float
    """Of these, a second."""
    p50: float
    p95: float
    p99: float
    all_calls: int
    """Before and after the window too, failed ones too."""
    errors: int
    """Of all calls."""
    kinds: dict[str, int]
    """The errors, by what they say."""


@dataclass(frozen=True, slots=True)
class Drive:
    """Drives profiles."""

    tools: Tools
    out: Path
    """Where ghz's own reports go."""
    seconds: float
    """How long a load counts, where its number of calls is not fixed."""

    def __call__(
        self,
        side: Process,
        parts: Sequence[Profile],
        run: str,
        *,
        concurrency: int | None = None,
        rates: Sequence[int] | None = None,
    ) -> list[Outcome]:
        """Drives profiles at the same time: what they came to together, where they are several, and
        then each. `rates` are calls a second. Raises BenchError where ghz cannot run, or no call
        was answered."""
        reports = [self.out / f"{run}{profile.name}.{side.name}.json" for profile in parts]
        children = []
        try:
            for index, (profile, report) in enumerate(zip(parts, reports, strict=True)):
                rate = rates[index] if rates else None
                report.unlink(missing_ok=True)
                children.append(self._start(profile, side.address, report, run, concurrency, rate))
            deadline = time.monotonic() + self.seconds + GRACE_S
            made = [
                _ended(child, profile, report, deadline)
                for child, profile, report in zip(children, parts, reports, strict=True)
            ]
        finally:
            for child in children:
                if child.poll() is None:
                    child.kill()
                    child.wait()
        if parts[0].counted:
            begin, end = min(call.began for call in made[0]), max(call.ended for call in made[0])
        else:
            starts = [min(call.began for call in calls) + WARM_S for calls in made]
            begin, end = max(starts), min(starts) + self.seconds
        outcomes = [_outcome(calls, begin, end) for calls in made]
        if len(parts) > 1:
            outcomes.insert(0, _outcome([call for calls in made for call in calls], begin, end))
        if not outcomes[0].calls:
            told = next(iter(outcomes[0].kinds), f"the machine is too slow for {self.seconds:g} s")
            raise BenchError(f"no call of {parts[0].path} was answered: {told}")
        return outcomes

    def _start(
        self,
        profile: Profile,
        address: str,
        report: Path,
        run: str,
        concurrency: int | None,
        rate: int | None,
    ) -> subprocess.Popen[bytes]:
        flags: dict[str, object] = {
            "config": profile.path,
            "protoset": self.tools.protoset,
            "format": "json",
            "output": report,
        }
        if not profile.counted:
            flags["duration"] = f"{round((WARM_S + self.seconds) * 1000)}ms"
        if concurrency:
            flags["concurrency"] = concurrency
            flags["connections"] = min(concurrency, profile.config["connections"])
        if rate:
            flags["rps"] = rate
        program = self.tools.deltas if profile.carries else self.tools.ghz
        return subprocess.Popen(
            [str(program), *(f"--{name}={value}" for name, value in flags.items()), address],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "RUN": run},
        )


def _ended(
    child: subprocess.Popen[bytes], profile: Profile, report: Path, deadline: float
) -> list[Made]:
    """Waits for ghz and reads which calls it made."""
    try:
        output, _ = child.communicate(timeout=max(1.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise BenchError(f"ghz did not end in time ({profile.path})") from None
    details = (
        json.loads(report.read_text(encoding="utf-8"))["details"] if report.is_file() else None
    )
    if child.returncode or not details:
        raise BenchError(f"ghz could not run {profile.path}:\n{output.decode()[-2000:]}")
    calls = []
    for call in details:
        ended = datetime.fromisoformat(call["timestamp"]).timestamp()
        calls.append(Made(ended - call["latency"] / 1e9, ended, call["error"]))
    return calls


def _outcome(calls: Sequence[Made], begin: float, end: float) -> Outcome:
    counted = sorted(
        call.ended - call.began for call in calls if not call.error and begin < call.ended <= end
    )
    kinds = Counter(call.error for call in calls if call.error)
    return Outcome(
        calls=len(counted),
        rate=len(counted) / (end - begin) if counted else 0.0,
        p50=quantile(counted, 0.5) if counted else 0.0,
        p95=quantile(counted, 0.95) if counted else 0.0,
        p99=quantile(counted, 0.99) if counted else 0.0,
        all_calls=len(calls),
        errors=kinds.total(),
        kinds=dict(kinds),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which this share of the values lies."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
