"""`make bench-recall`: answers in the context and in Search, and the share that stays cached, with
the goal beside each figure.

python tests/bench/recall/run.py [--only quality,cache] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from rich.console import Console
from rich.table import Table

from tests.bench.recall.caching import Cached, replay
from tests.bench.recall.memories import memories
from tests.bench.recall.quality import FIRST, SHARES, Answered, measure
from tests.integration.harness import house as living

PARTS = ("quality", "cache")
GOAL_ANSWERS = {25: 120}
GOAL_CACHED = {50_000: 0.97, 100_000: 0.98}
GOAL_STEPS_AN_EPOCH = 40


def main() -> int:
    """Runs what was asked for. A goal that is missed is shown and no failure."""
    parser = argparse.ArgumentParser(prog="make bench-recall", description=__doc__)
    parser.add_argument(
        "--only", default=",".join(PARTS), help=f"parts, by commas: {', '.join(PARTS)}"
    )
    parser.add_argument("--json", action="store_true", help="print JSON in place of the tables")
    given = parser.parse_args()
    wanted = given.only.split(",")
    if strangers := [part for part in wanted if part not in PARTS]:
        parser.error(f"--only {strangers[0]}: there is no such part; there are {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory(prefix="contextengine-bench-") as directory:
        results = asyncio.run(_run(Path(directory), wanted))
    if given.json:
        print(json.dumps(results, default=asdict))
        return 0
    console = Console(width=None if sys.stdout.isatty() else 140)
    if "quality" in wanted:
        console.print(_quality(results["quality"]))
    if "cache" in wanted:
        console.print(_cache(results["cache"]))
    return 0


async def _run(directory: Path, wanted: list[str]) -> dict[str, dict]:
    results: dict[str, dict] = {part: {} for part in PARTS}
    async with living(directory) as house:
        if "quality" in wanted:
            total, plain = Answered(), Answered()
            for memory in memories():
                one = results["quality"][memory.name] = await measure(house, memory)
                total.add(one)
                plain.add(await measure(house, memory, None))
            results["quality"] |= {"all": total, "all, default options": plain}
        if "cache" in wanted:
            for size in GOAL_CACHED:
                results["cache"][size] = await replay(house, size)
    return results


def _quality(results: dict[str, Answered]) -> Table:
    table = Table(
        title="Answers to 155 questions about five long sessions: budgets in % of the session"
    )
    table.add_column("session")
    for name in (
        "verbatim",
        *(f"context {share} %" for share in SHARES),
        f"Search, first {FIRST}",
        "reached",
    ):
        table.add_column(name, justify="right")
    for name, one in results.items():
        table.add_row(
            name,
            f"{one.verbatim} of {one.questions}",
            *(f"{one.context[share]} ({one.context_by_words[share]})" for share in SHARES),
            str(one.found),
            str(one.reachable),
        )
    total = results["all"]
    table.add_section()
    newest = (str(total.newest[share]) for share in SHARES)
    table.add_row("keep newest; plain BM25", "", *newest, str(total.found_plainly), "")
    goals = (f"≥ {GOAL_ANSWERS[share]}" if share in GOAL_ANSWERS else "" for share in SHARES)
    table.add_row("goal", "", *goals, "", f"≥ {total.verbatim}")
    table.caption = "In brackets: counted strictly, where a number within a number is no answer."
    return table


def _cache(results: dict[int, Cached]) -> Table:
    table = Table(title="The coding session, step by step: what begins as the step before did")
    names = (
        "budget",
        "steps",
        "tokens sent",
        "cached",
        "goal",
        "new epochs",
        "steps an epoch",
        "goal",
    )
    for name in names:
        table.add_column(name, justify="right")
    for size, one in results.items():
        table.add_row(
            f"{size:,}",
            str(one.steps),
            f"{one.sent:,}",
            f"{one.share:.2%}",
            f"≥ {GOAL_CACHED[size]:.0%}",
            str(one.epochs),
            f"{one.steps_an_epoch:.1f}",
            f"≥ {GOAL_STEPS_AN_EPOCH}",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
