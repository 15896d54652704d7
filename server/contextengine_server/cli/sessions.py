"""`show`, `status`, `sessions list`, `watch` and `compact`: what a session is and what the model
would get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contextengine_server.cli.connection import Where, connected
from contextengine_server.cli.items import print_assembly, print_decisions, print_summaries
from contextengine_server.cli.output import (
    CommandFailed,
    note,
    plain,
    print_facts,
    print_json,
    print_table,
    printable,
    shown,
)

if TYPE_CHECKING:
    from google.protobuf.timestamp_pb2 import Timestamp

    from contextengine.types import GetStatusResponse, SessionInfo, SummarizerStatus


async def show_session(
    where: Where,
    session: str,
    agent: str,
    budget: int | None,
    model: str,
    explain: bool,
    full: bool,
    json: bool,
) -> None:
    """Prints the assembly that the next call would get."""
    from contextengine import SessionRef
    from contextengine.types import Budget

    ref = SessionRef(agent_id=agent, session_id=session)
    more: dict[str, Any] = {} if budget is None else {"budget": Budget(message_tokens=budget)}
    async with connected(where) as client:
        await client.sessions.get(
            ref
        )  # an assembly of a session that is not there would be an empty one
        reply = await client.assemble(ref, model=model, explain=explain, **more)
    if json:
        print_json(plain(reply))
        return
    print_assembly(reply.items, reply, full=full)
    if explain:
        print_decisions(reply.decisions)


async def compact_session(
    where: Where,
    session: str,
    agent: str,
    focus: str,
    force: bool,
    redo: bool,
    budget: int | None,
    json: bool,
) -> None:
    """Compacts a session and prints what came of it."""
    from contextengine import SessionRef
    from contextengine.types import Budget

    more: dict[str, Any] = {} if budget is None else {"budget": Budget(message_tokens=budget)}
    if force:
        more["force_reason"] = "manual"
    async with connected(where) as client:
        reply = await client.compact(
            SessionRef(agent_id=agent, session_id=session),
            focus=focus,
            force=force,
            redo=redo,
            trigger="manual",
            **more,
        )
    if json:
        print_json(plain(reply))
    else:
        after = f"{reply.tokens_after:,}" if reply.HasField("tokens_after") else "unknown"
        print_facts(
            [
                ("compacted", reply.compacted),
                ("reason", reply.reason),
                (
                    "tokens",
                    (
                        f"{reply.tokens_before:,} before, {after} after"
                        if reply.summaries
                        else reply.tokens_before
                    ),
                ),
                ("generation", reply.generation),
                (
                    "verbatim from",
                    f"message {reply.first_kept_sequence:,}" if reply.first_kept_sequence else "",
                ),
            ]
        )
        if reply.summaries:
            print_summaries(reply.summaries)
        if reply.HasField("delegation"):
            asked = reply.delegation
            print(
                f"The host compacts messages {asked.first_sequence:,} to {asked.last_sequence:,}"
                f" into {asked.target_tokens:,} tokens and reports it with RecordHostChange."
                f" {asked.instructions}"
            )
    if not reply.ok and not reply.summaries:
        raise CommandFailed(f"the compaction failed: {reply.reason}")


async def session_status(where: Where, session: str, agent: str, json: bool) -> None:
    """Prints how a session is."""
    from contextengine import SessionRef

    async with connected(where) as client:
        reply = await client.get_status(SessionRef(agent_id=agent, session_id=session))
    if json:
        print_json(plain(reply))
        return
    print_facts(_facts(reply))
    if reply.jobs:
        rows = [
            (job.kind, job.state, _time(job.queue_time), job.attempts, job.last_error)
            for job in reply.jobs
        ]
        print_table(("job", "state", "queued", "#attempts", "last error"), rows)


def _facts(reply: GetStatusResponse) -> list[tuple[str, object]]:
    assumed = " (assumed)" if reply.window_assumed else ""
    failure = reply.engine_failure
    return [
        ("session", reply.session_id + (" (ended)" if reply.ended else "")),
        (
            "key",
            (
                f"{reply.session_key}{' (current)' if reply.current_for_key else ''}"
                if reply.session_key
                else ""
            ),
        ),
        ("continues", reply.continues.session_id),
        ("revision", reply.revision),
        ("engine", f"{reply.engine.id} {reply.engine.version}, by {reply.engine_source}"),
        (
            "engine failure",
            (
                f"{failure.operation}: {failure.reason} ({failure.count} times)"
                if failure.count
                else ""
            ),
        ),
        (
            "messages",
            (
                f"{reply.message_count:,} ({reply.message_tokens:,} tokens), newest"
                f" {reply.last_sequence:,}"
            ),
        ),
        (
            "summaries",
            (
                f"{reply.summary_count:,}, deepest at depth {reply.max_depth}"
                if reply.summary_count
                else 0
            ),
        ),
        ("compactions", f"{reply.compaction_count:,}, generation {reply.generation:,}"),
        ("model", " ".join(filter(None, (reply.provider, reply.model)))),
        ("window", f"{reply.window:,}{assumed}"),
        (
            "view",
            (
                f"{reply.view_tokens:,} tokens, {reply.usage_percent:.1f} % of what is left for"
                " messages"
            ),
        ),
        (
            "compacts at",
            f"{reply.threshold_tokens:,} tokens" if reply.threshold_tokens else "never by itself",
        ),
        ("model factor", f"{reply.model_factor:.3f}, {reply.estimate_method}"),
        ("summarizers", _summarizers(reply.summarizers)),
        ("pending calls", reply.pending_calls or ""),
        ("abandoned calls", reply.abandoned_calls or ""),
        ("host", " ".join(filter(None, (reply.host.host_id, reply.host.version)))),
        ("created", _time(reply.create_time)),
        ("last written", _time(reply.update_time)),
    ]


def _summarizers(status: SummarizerStatus) -> str:
    caps = [
        f"{spent:,} of {f'{most:,}' if most else 'any'} {window}"
        for spent, most, window in (
            (status.tokens_last_hour, status.max_tokens_per_hour, "tokens an hour"),
            (status.tokens_last_day, status.max_tokens_per_day, "a day"),
        )
    ]
    harnesses = f"{status.attached_harness_count} harnesses"
    return ", ".join((f"breaker {status.breaker_state}", *caps, harnesses))


async def list_sessions(where: Where, agent: str, limit: int, json: bool) -> None:
    """Prints sessions, newest write first."""
    found: list[Any] = []
    async with connected(where) as client:
        token = ""
        while len(found) < limit:
            page = await client.sessions.list(
                agent_id=agent, page_size=min(limit - len(found), 1000), page_token=token
            )
            found += page.sessions
            token = page.next_page_token
            if not token:
                break
    if json:
        print_json([plain(info) for info in found])
        return
    rows = [
        (
            info.agent_id,
            info.session_id + _standing(info),
            info.session_key,
            info.message_count,
            info.message_tokens,
            info.summary_count,
            _time(info.update_time),
        )
        for info in found
    ]
    print_table(
        ("agent", "session", "key", "#messages", "#tokens", "#summaries", "last written"), rows
    )
    if token:
        note(f"There are more: --limit {limit * 10} shows more of them.")


async def watch_events(
    where: Where,
    agent: str,
    session: str,
    prefixes: list[str],
    resume: str,
    limit: int | None,
    json: bool,
) -> None:
    """Prints events as they happen."""
    count = 0
    async with (
        connected(where) as client,
        client.sessions.watch(
            agent_id=agent, session_id=session, name_prefixes=prefixes, resume_position=resume
        ) as events,
    ):
        async for event in events:
            if json:
                from google.protobuf.json_format import MessageToJson

                print(
                    MessageToJson(event, preserving_proto_field_name=True, indent=None), flush=True
                )
            else:
                words = [f"{name}={shown(value)}" for name, value in sorted(event.counts.items())]
                words += [f"{name}={value}" for name, value in sorted(event.attributes.items())]
                place = "/".join(filter(None, (event.agent_id, event.session_id)))
                line = f"{_time(event.time)}  {event.name:<24} {place}  {' '.join(words)}".rstrip()
                print(printable(line), flush=True)
            count += 1
            if limit is not None and count >= limit:
                return


def _standing(info: SessionInfo) -> str:
    """What there is to say of where a session stands; empty: nothing."""
    said = [word for word in ("ended", "archived") if getattr(info, word)]
    return f" ({', '.join(said)})" if said else ""


def _time(stamp: Timestamp) -> str:
    return stamp.ToDatetime().strftime("%Y-%m-%d %H:%M:%S") if stamp.seconds else ""
