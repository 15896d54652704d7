"""Printing assemblies: their items, decisions and summaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from contextengine_server.cli.output import one_line, print_table, printable

if TYPE_CHECKING:
    from contextengine.types import AssembleResponse, Decision, Item, Message, Part, SummaryInfo

PREVIEW = 100
"""Characters of an item's text where it is not printed whole."""


def print_assembly(items: Sequence[Item], reply: AssembleResponse, *, full: bool = False) -> None:
    """The whole list of an assembly, then what is said about it."""
    if full:
        for index, item in enumerate(items):
            print(
                f"[{index}] {origin(item)} {role(item.message)}{_formed(item)} {item.tokens:,}"
                " tokens"
            )
            print(printable(text(item.message)) + "\n")
    else:
        rows = [
            (
                index,
                origin(item),
                role(item.message),
                form(item.form),
                item.tokens,
                one_line(text(item.message), PREVIEW),
            )
            for index, item in enumerate(items)
        ]
        print_table(("#", "from", "role", "form", "#tokens", "text"), rows)
    for title, words in (
        ("system prompt addition", reply.system_prompt_addition),
        ("preamble", reply.preamble),
    ):
        if words:
            print(f"{title}: {printable(words) if full else one_line(words, PREVIEW)}")
    print(verdict(reply))
    if reply.biggest:
        biggest = ", ".join(
            f"item {big.index} {big.tokens:,} tokens ({big.rule})" for big in reply.biggest
        )
        print(f"biggest: {biggest}")


def verdict(reply: AssembleResponse) -> str:
    """An assembly in a line: outcome, tokens of the budget, engine, epoch."""
    reason = f" ({reply.outcome_reason})" if reply.outcome_reason else ""
    outcome = reply.Outcome.Name(reply.outcome).removeprefix("OUTCOME_")
    budget = reply.budget
    source = f", window {budget.window:,} by {budget.window_source}" if budget.window else ""
    return (
        f"{outcome}{reason}: {reply.cache.total_count:,} items, {reply.estimated_tokens:,} of"
        f" {budget.available:,} tokens{source}; engine {reply.engine_id} {reply.engine_version},"
        f" revision {reply.revision}"
    )


def print_decisions(decisions: Iterable[Decision]) -> None:
    """What was decided about every message."""
    rows = [
        (
            decision.sequence,
            _word(decision.Kind.Name(decision.kind), "KIND_"),
            role_name(decision.role),
            decision.rule + (f", in {decision.summary_id}" if decision.summary_id else ""),
            decision.tokens or "",
            decision.item_index if decision.HasField("item_index") else "",
        )
        for decision in decisions
    ]
    print_table(("#message", "decision", "role", "rule", "#tokens", "#item"), rows)


def print_summaries(summaries: Iterable[SummaryInfo]) -> None:
    """The rows of summaries."""
    rows = [
        (
            info.id,
            info.depth,
            f"{info.first_sequence:,} to {info.last_sequence:,}",
            info.message_count,
            info.tokens,
            info.source_tokens,
            info.summarizer + (" (fallback)" if info.fallback else ""),
        )
        for info in summaries
    ]
    print_table(("summary", "#depth", "covers", "#messages", "#tokens", "#in place of", "by"), rows)


def origin(item: Item) -> str:
    """Where an item comes from."""
    match item.origin.WhichOneof("kind"):
        case "sequence":
            return f"message {item.origin.sequence}"
        case "summary_id":
            info = item.summary
            return f"summary of {info.first_sequence}-{info.last_sequence}, depth {info.depth}"
        case "live_index":
            return f"live {item.origin.live_index}"
        case _:
            return f"made up: {item.origin.synthetic}"


def role(message: Message) -> str:
    """Who speaks."""
    return message.custom_role or role_name(message.role)


def role_name(number: int) -> str:
    """A role as people read it; a number that this version does not know stays a number."""
    from contextengine.types import Role

    return _word(Role.Name(number), "ROLE_") if number in Role.values() else str(number)


def form(number: int) -> str:
    """How an item is shown; empty: verbatim."""
    from contextengine.types import Form

    if not number:
        return ""
    return _word(Form.Name(number), "FORM_") if number in Form.values() else str(number)


def text(message: Message) -> str:
    """A message for people: every part in order, calls with their arguments, media by their
    kind."""
    return "\n".join(filter(None, map(_part, message.parts)))


def _part(part: Part) -> str:
    match part.WhichOneof("kind"):
        case "text":
            return part.text.text
        case "reasoning":
            return f"(reasoning) {part.reasoning.text or 'hidden'}"
        case "tool_call":
            return (
                f"→ {part.tool_call.name}({part.tool_call.arguments_json.decode(errors='replace')})"
            )
        case "tool_result":
            failed = " failed" if part.tool_result.is_error else ""
            return f"←{failed} " + " ".join(filter(None, map(_part, part.tool_result.parts)))
        case "image":
            return f"(image {part.image.mime_type or part.image.uri})"
        case "file":
            return f"(file {part.file.name or part.file.mime_type or part.file.uri})"
        case "opaque":
            return f"({part.opaque.format} {part.opaque.type})"
        case _:
            return "(a part that this version does not know)"


def _formed(item: Item) -> str:
    return f" ({form(item.form)})" if item.form else ""


def _word(name: str, prefix: str) -> str:
    return name.removeprefix(prefix).lower().replace("_", " ")
