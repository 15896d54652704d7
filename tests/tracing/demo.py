"""Shows that a turn of an agent is one trace from the agent's span to the store: python -m
tests.tracing.demo [--keep SECONDS]

Starts Jaeger, a model's service that is made up, and contextengine; runs the example agents of the
languages that CONTEXTENGINE_CLIENTS names, a turn at a time; and asks Jaeger what it saw. Ends with
status 1 and says what is missing where a turn is not whole. Writes the pictures and Jaeger's
answers to build/traces.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from contextengine import AsyncClient
from contextengine import types as t
from contextengine.formats import from_openai
from tests.bench.house import Process, free_port
from tests.clients.drivers import NAMED
from tests.clients.test_examples import EXAMPLES
from tests.integration.summarize.provider import answer, provider
from tests.tracing.checking import SERVICE, Missing, Turn, turns_of
from tests.tracing.jaeger import BINARY, ROOT, Jaeger, Json, jaeger, only, spans_of
from tests.tracing.picture import drawn

TRACES = ROOT / "build" / "traces"
HISTORY = ROOT / "tests" / "data" / "airline_transcripts.jsonl"
MAIL = "I bought a lamp and a chair in your shop last week and have heard nothing since. " * 12
QUESTIONS = (
    f"A customer writes: {MAIL}Where is order 4711?",
    f"Another one: {MAIL}Where is order 4712?",
)
"""Long enough that the second turn makes the first one worth a summary."""
AGENT_WITHIN_S = 60
IDLE_WITHIN_S = 60
SEEN_WITHIN_S = 60
"""Spans are sent in batches, at most a second old by the server and five by the agents."""
SUMMARY = (
    "The customer's flights and the fares were looked up; a change of the return flight was asked"
    " for and confirmed."
)


def settings(otlp: str, model: str) -> Json:
    """A small window, so that each turn makes a compaction due. No call is traced but those of
    callers that trace."""
    return {
        "telemetry": {"traces": {"endpoint": otlp, "sample_ratio": 0}},
        "budget": {"default_window": 4_096, "output_reserve": 0, "safety_margin_min": 0},
        "engine": {"dag": {"contextThreshold": 0.1, "freshTailTurns": 1}},
        "summarizer": {
            "endpoints": [{"name": "made-up", "base_url": model, "model": "made-up-small"}]
        },
    }


@asynccontextmanager
async def server(directory: Path, otlp: str, model: str) -> AsyncIterator[str]:
    """contextengine on a free port; its address. What it has to send is sent when it is left."""
    address, config = f"127.0.0.1:{free_port()}", directory / "contextengine.yaml"
    config.write_text(json.dumps(settings(otlp, model)))
    command = [
        str(Path(sys.executable).with_name("contextengine")),
        "serve",
        "--config",
        str(config),
    ]
    command += ["--address", address, "--store", str(directory / "contextengine.db")]
    process = Process("contextengine", command, address, directory / "contextengine.log")
    try:
        await asyncio.to_thread(process.serving)
        yield address
    finally:
        await asyncio.to_thread(process.stop)


async def talk(language: str, address: str, otlp: str) -> None:
    """Lets an agent go on with a conversation, a turn a process, each after what the one before it
    caused."""
    session = t.SessionRef(agent_id="example", session_id=f"trace-{language}")
    with HISTORY.open(encoding="utf-8") as lines:
        history = from_openai(json.loads(next(lines))["messages"])
    async with AsyncClient(address) as client:
        await client.ingest_batch(session, history)
        for question in QUESTIONS:
            await ask(language, [address, session.session_id, question], otlp)
            await idle(client, session)


async def ask(language: str, arguments: list[str], otlp: str) -> None:
    """One run of an agent."""
    traced = {"OTEL_SERVICE_NAME": agent_of(language), "OTEL_EXPORTER_OTLP_ENDPOINT": otlp}
    done = await asyncio.to_thread(
        subprocess.run,
        [*EXAMPLES[language], *arguments],
        env={**os.environ, **traced},
        capture_output=True,
        text=True,
        timeout=AGENT_WITHIN_S,
        check=False,
    )
    if done.returncode or "It is in Utrecht" not in done.stdout:
        raise Missing(
            f"{agent_of(language)} failed with status {done.returncode}: {done.stdout}{done.stderr}"
        )


def agent_of(language: str) -> str:
    """The service name of a language's agent."""
    return f"agent-{language}"


async def idle(client: AsyncClient, session: t.SessionRef) -> None:
    """Waits until the session owes no compaction."""
    began = time.monotonic()
    while (await client.get_status(session=session)).jobs:
        if time.monotonic() - began > IDLE_WITHIN_S:
            raise Missing(
                f"{session.session_id}: its compaction is not done after {IDLE_WITHIN_S} s"
            )
        await asyncio.sleep(0.05)


def seen(at: Jaeger, language: str) -> tuple[list[Turn], list[Json]]:
    """The turns of an agent as Jaeger has them, once all is there; and the answers they are
    from."""
    began = time.monotonic()
    while True:
        agent = agent_of(language)
        answers = [at.answer(service) for service in (agent, SERVICE)]
        try:
            spans = [span for each in answers for span in spans_of(each)]
            return turns_of(agent, len(QUESTIONS), spans), answers
        except Missing:
            if time.monotonic() - began > SEEN_WITHIN_S:
                raise
        time.sleep(0.3)


def told(at: Jaeger, turns: list[Turn], answers: list[Json]) -> None:
    """Prints what was found, keeps it and draws it."""
    for number, turn in enumerate(turns, 1):
        print(
            f"{turn.agent}, turn {number}: {len(turn.spans)} spans in one trace "
            f" {at.url(turn.trace_id)}"
        )
        for job in turn.compactions:
            names = " ".join(span.name for span in job if span.name not in ("compact", "load"))
            print(
                f"    caused a compaction ({names or 'nothing to do'})  {at.url(job[0].trace_id)}"
            )
        kept = TRACES / f"{turn.agent}-{number}.json"
        kept.write_text(
            json.dumps(only(answers, turn.trace_ids), indent=1) + "\n", encoding="utf-8"
        )
        kept.with_suffix(".svg").write_text(drawn(turn), encoding="utf-8")


async def show(languages: list[str], keep_s: float) -> None:
    """The demo. Raises Missing."""
    TRACES.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="contextengine-traces-") as name,
        jaeger(Path(name)) as at,
    ):
        async with (
            provider(answer(SUMMARY)) as model,
            server(Path(name), at.otlp, model.base_url) as address,
        ):
            for language in languages:
                await talk(language, address, at.otlp)
        for language in languages:
            turns, answers = await asyncio.to_thread(seen, at, language)
            told(at, turns, answers)
        print(
            f"Each turn of {', '.join(languages)} is one trace from the agent to the store."
            f" Pictures: {TRACES.relative_to(ROOT)}"
        )
        if keep_s:
            print(f"Jaeger answers {at.query} for {keep_s:g} s.", flush=True)
            await asyncio.sleep(keep_s)


def main(arguments: Any = None) -> int:
    """Runs the demo; answers the status to end with."""
    parser = argparse.ArgumentParser(description="Show that a turn of an agent is one trace.")
    parser.add_argument(
        "--keep", type=float, default=0.0, help="let Jaeger answer for so many seconds after"
    )
    keep_s = parser.parse_args(arguments).keep
    if not BINARY.exists():
        print(f"{BINARY} is missing: run `make trace-demo`, which builds it", file=sys.stderr)
        return 1
    languages = [language for language in EXAMPLES if language in NAMED]
    try:
        asyncio.run(show(languages, keep_s))
    except Missing as missing:
        print(f"missing: {missing}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
