"""The step's own load: h2load sends one fixed request, but a step names the list that the reply
before it made."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from .house import HERE, BenchError, Process
from .load import WARM_S, Slice, quantile

BUILT_WITHIN_S = 300


def build(directory: Path) -> Path:
    """The program, built into `directory`. Raises BenchError where it cannot be."""
    go = shutil.which("go")
    if go is None:
        raise BenchError(
            "go is not on PATH: install Go 1.23 or newer, which builds the load of this case"
        )
    program = directory / "stepper"
    made = subprocess.run(
        [go, "build", "-buildvcs=false", "-o", str(program), "."],
        check=False,
        cwd=HERE / "stepper",
        capture_output=True,
        text=True,
        timeout=BUILT_WITHIN_S,
    )
    if made.returncode:
        raise BenchError(f"the load of this case could not be built:\n{made.stderr[-2000:]}")
    return program


def drive_steps(
    program: Path,
    method: str,
    requests: Sequence[Path],
    server: Process,
    seconds: float,
    *,
    whole: bool = False,
) -> Slice:
    """A call in flight for each request, for about `seconds`. Each asks for what follows the reply
    before it, or, `whole`, for the whole list in words of its own, which nobody has asked before.
    Raises BenchError where a call failed."""
    lasting = WARM_S + seconds + 0.1
    command = [
        str(program),
        "-address",
        server.address,
        "-method",
        method,
        "-seconds",
        str(lasting),
    ]
    command += ["-whole"] if whole else []
    child = subprocess.Popen(
        [*command, *map(str, requests)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    time.sleep(WARM_S)
    begin, cpu = time.time(), server.cpu()
    time.sleep(seconds)
    end, cpu = time.time(), server.cpu() - cpu
    output = child.communicate(timeout=lasting + 30)[0]
    if child.returncode:
        raise BenchError(f"the load failed:\n{output[-2000:]}")
    report = json.loads(output)
    if report.get("failure"):
        raise BenchError(f"a call of {method} failed: {report['failure']}")
    counted = [
        (took / 1e6, size) for ended, took, size in report["calls"] if begin <= ended / 1e6 < end
    ]
    if not counted:
        raise BenchError(f"no call of {method} was answered in {end - begin:.1f} s")
    latencies = sorted(took for took, _ in counted)
    return Slice(
        rate=len(counted) / (end - begin),
        p50=quantile(latencies, 0.5),
        p99=quantile(latencies, 0.99),
        calls=len(report["calls"]),
        unfinished=0,
        reply_bytes=sum(size for _, size in counted) / len(counted),
        cpu=cpu / len(counted),
    )
