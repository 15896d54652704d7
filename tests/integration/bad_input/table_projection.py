"""The table of bad requests for the service Projection, and for the projection that Assemble is
asked for."""

from __future__ import annotations

from typing import Any

from contextengine import types as t
from contextengine.messages import user
from tests.integration.bad_input.cases import (
    LONG_ID,
    MAX,
    Case,
    S,
    absent,
    bad,
    bad_budgets,
    bad_messages,
    contradictory,
    refs_of,
)
from tests.integration.harness import ref

CODEX = t.PROJECTION_TARGET_CODEX


def asked(**options: Any) -> t.ProjectRequest:
    return t.ProjectRequest(session=S, options=t.ProjectionOptions(**{"target": CODEX, **options}))


def listed(message: t.Message) -> t.ProjectRequest:
    return t.ProjectRequest(messages=[message], options=t.ProjectionOptions(target=CODEX))


def within(budget: t.Budget) -> t.ProjectRequest:
    return t.ProjectRequest(session=S, budget=budget, options=t.ProjectionOptions(target=CODEX))


def bound(**fields: Any) -> t.ProjectRequest:
    return asked(binding=t.ProjectionBinding(**fields))


CASES: dict[str, list[Case]] = {
    "Projection/Project": [
        *refs_of("Projection/Project"),
        *bad_messages("messages[0]", listed),
        *bad_budgets(within),
        absent(t.ProjectRequest(session=ref("none"), options=t.ProjectionOptions(target=CODEX))),
        bad("no options", t.ProjectRequest(session=S), "options"),
        bad("no target", asked(target=0), "options.target"),
        bad("an unknown target", asked(target=99), "options.target"),
        bad("an unknown name", asked(target=0, target_name="markdown"), "options.target_name"),
        bad("a name beside it", asked(target_name="markdown"), "options.target_name"),
        contradictory(
            "two targets", asked(target_name="gemini"), "options.target", "options.target_name"
        ),
        bad("another's renderer", asked(renderer="anthropic"), "options.renderer"),
        bad("an unknown mode", asked(mode=99), "options.mode"),
        bad("an unknown payload mode", asked(payload_mode=99), "options.payload_mode"),
        bad("no room", asked(max_chars=0), "options.max_chars"),
        *(
            bad(f"{name} is {value}", asked(**{name: value}), f"options.{name}")
            for name in ("max_chars", "token_budget", "reserve_tokens")
            for value in (-1, MAX)
        ),
        bad(
            "fewer than no breakpoints",
            asked(max_cache_breakpoints=-1),
            "options.max_cache_breakpoints",
        ),
        bad("a long model", asked(model=LONG_ID), "options.model"),
        bad("a long product", asked(product_name=LONG_ID), "options.product_name"),
        bad(
            "an event of no kind", asked(host_events=[t.HostEvent()]), "options.host_events[0].kind"
        ),
        bad("a state of another's", bound(state=b"{}"), "options.binding.state"),
        bad("a state that is no JSON", bound(state=b"\xff"), "options.binding.state"),
        bad("seen before all", bound(last_sequence=-1), "options.binding.last_sequence"),
        bad(
            "a file in the prompt",
            t.ProjectRequest(
                session=S,
                prompt=[t.Part(file=t.FilePart(size_bytes=MAX))],
                options=t.ProjectionOptions(target=CODEX),
            ),
            "prompt[0].file.size_bytes",
        ),
        bad(
            "a revision below 0",
            t.ProjectRequest(
                session=S, at_least_revision=-1, options=t.ProjectionOptions(target=CODEX)
            ),
            "at_least_revision",
        ),
        contradictory(
            "a session and a list",
            t.ProjectRequest(
                session=S, messages=[user("x")], options=t.ProjectionOptions(target=CODEX)
            ),
            "session",
            "messages",
        ),
        contradictory(
            "another epoch",
            t.ProjectRequest(session=S, epoch="e", options=t.ProjectionOptions(target=CODEX)),
            "session",
            "epoch",
        ),
        Case(
            "instructions that are too long",
            [asked(base_instructions="x" * 40_000)],
            ["options.base_instructions"],
            "FAILED_PRECONDITION",
            "PROJECTION_IMPOSSIBLE",
        ),
    ]
}
