"""One session of a file, brought into the server: messages, and what the harness did to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from contextengine import AsyncClient, SessionRef
    from contextengine.formats import HostSummary, Transcript
    from contextengine.types import ExportResponse, ImportRequest, ImportResponse, Message


class ImportedTranscript(msgspec.Struct, frozen=True):
    """What became of a session of a file."""

    session_id: str
    stored: int
    known: int
    tokens: int
    rewound: int
    """Stored messages that the harness has gone back behind since."""
    summaries: int
    """Compactions of the harness that are shown as its summaries."""
    longer: int
    """Those that are no shorter than what they stand for: the messages stay."""
    left_out: dict[str, int]
    """What the file holds besides."""

    def row(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "session_id": self.session_id,
            "stored": self.stored,
            "known": self.known,
            "tokens": self.tokens,
            "rewound": self.rewound,
            "summaries": self.summaries,
            "left_out": self.left_out,
        }


def remarks(done: Sequence[ImportedTranscript]) -> Iterator[str]:
    """What is to be said besides how much was stored."""
    if rewound := sum(one.rewound for one in done):
        yield f"{rewound:,} stored messages are on a branch that was left: they are out of the view"
    if summaries := sum(one.summaries for one in done):
        yield f"{summaries:,} compactions of the harness are shown as its summaries"
    if longer := sum(one.longer for one in done):
        yield f"{longer:,} compactions are no shorter than their messages, which stay"
    left_out: Counter[str] = Counter()
    for one in done:
        left_out.update(one.left_out)
    if left_out:
        yield f"left out: {', '.join(f'{count:,} {what}' for what, count in left_out.items())}"


async def store(
    client: AsyncClient,
    agent: str,
    transcript: Transcript,
    advance: Callable[[str, int], None],
) -> ImportedTranscript:
    """Stores a session. One that is there already goes on where the file does: with what was
    appended, and on the branch that is the conversation now."""
    from contextengine import SessionRef

    ref = SessionRef(
        agent_id=agent, session_id=transcript.session_id, session_key=transcript.session_key
    )
    advance(transcript.session_id, 0)
    before = await _go_on(client, ref, transcript)
    rewound = await _rewind(client, ref, transcript) if transcript.abandoned else 0
    reply = await _import(client, ref, transcript, advance)
    shown = longer = 0
    if transcript.summaries:
        rows = await _rows(client, ref)
        for summary in transcript.summaries:
            took = await _summarize(client, ref, summary, rows)
            shown, longer = shown + (took is True), longer + (took is False)
    came = before.stored if before is not None else 0
    return ImportedTranscript(
        reply.session_id,
        reply.stored_count + came,
        reply.duplicate_count - came,
        reply.tokens,
        rewound + (before.rewound if before is not None else 0),
        shown,
        longer,
        dict(transcript.left_out),
    )


async def _go_on(
    client: AsyncClient, ref: SessionRef, transcript: Transcript
) -> ImportedTranscript | None:
    """A conversation that its harness has given another id since it was imported: what is stored
    under the id that it had stays there, and the new session continues it. What came to the one
    before; None: there is none to continue."""
    from contextengine import SessionRef
    from contextengine.errors import SessionExists

    if not transcript.earlier or await _is_stored(client, ref):
        return None
    for name in reversed(transcript.earlier):
        old = SessionRef(agent_id=ref.agent_id, session_id=name.session_id)
        if not await _is_stored(client, old):
            continue
        until_then = replace(
            transcript,
            session_id=name.session_id,
            messages=transcript.messages[: name.count],
            summaries=(),
            # The key is the newest session's.
            session_key="",
            earlier=(),
        )
        try:
            done = await store(client, ref.agent_id, until_then, lambda *_: None)
        except SessionExists:
            continue  # another conversation of that id
        await client.bootstrap(ref, continues=old)
        return done
    return None


async def _is_stored(client: AsyncClient, ref: SessionRef) -> bool:
    """Whether there is a session with anything in it, or behind it."""
    from contextengine.errors import SessionNotFound

    try:
        found = (await client.sessions.get(ref)).session
    except SessionNotFound:
        return False
    return found.message_count > 0 or found.HasField("continues")


async def _import(
    client: AsyncClient,
    ref: SessionRef,
    transcript: Transcript,
    advance: Callable[[str, int], None],
) -> ImportResponse:
    from contextengine.calls import IMPORT
    from contextengine.requests import import_requests

    header = {"model": transcript.model, "provider": transcript.provider}
    requests = import_requests(ref, transcript.messages, header)

    def sent() -> Iterator[ImportRequest]:
        for request in requests:
            yield request
            advance(transcript.session_id, request.HasField("message"))

    return await client.stream_unary(IMPORT, sent())


async def _rewind(client: AsyncClient, ref: SessionRef, transcript: Transcript) -> int:
    """Takes stored messages out of the view that the file holds on a branch that was left. The
    number of them; 0 where the session is another than the file's, which Import says."""
    from contextengine.types import RecordHostChangeRequest

    rows = await _rows(client, ref)
    same = _same(rows, transcript.messages)
    behind = rows[same:]
    if not behind or any(row.message.id not in transcript.abandoned for row in behind):
        return 0
    await client.record_host_change(
        ref,
        change_id=f"import:left:{behind[0].message.id}:{behind[-1].sequence}",
        rewind=RecordHostChangeRequest.Rewind(
            after_sequence=rows[same - 1].sequence if same else 0
        ),
    )
    return len(behind)


def _same(rows: Sequence[ExportResponse.ExportedMessage], messages: Sequence[Message]) -> int:
    """How many rows, from the first, are the file's messages."""
    count = 0
    for row, message in zip(rows, messages, strict=False):
        if (row.message.id, row.message.parts) != (message.id, message.parts):
            break
        count += 1
    return count


async def _rows(client: AsyncClient, ref: SessionRef) -> list[ExportResponse.ExportedMessage]:
    """The session's own messages in its view; none where there is no session."""
    from contextengine.errors import SessionNotFound

    rows: list[ExportResponse.ExportedMessage] = []
    try:
        async with client.sessions.export(ref) as exported:
            async for row in exported:
                if row.WhichOneof("kind") == "message":
                    rows.append(row.message)
    except SessionNotFound:
        return []
    return rows


async def _summarize(
    client: AsyncClient,
    ref: SessionRef,
    summary: HostSummary,
    rows: Sequence[ExportResponse.ExportedMessage],
) -> bool | None:
    """Shows a compaction of the harness as its summary. False: it is no shorter than what it stands
    for. None: nothing whole lies before what it kept."""
    from contextengine import ContextEngineError
    from contextengine.types import RecordHostChangeRequest

    if not summary.first < summary.count <= len(rows) or not summary.text.strip():
        return None
    last = rows[summary.count - 1].sequence
    try:
        done = await client.record_host_change(
            ref,
            change_id=f"import:{summary.id or 'compaction'}:{last}",
            compacted=RecordHostChangeRequest.HostCompaction(
                first_sequence=rows[summary.first].sequence,
                last_sequence=last,
                summary=summary.text,
            ),
        )
    except ContextEngineError as error:
        if [one.field for one in error.violations] == ["compacted.first_sequence"]:
            return None  # leading messages alone, or steps that a summary of ours reaches into
        raise
    return done.HasField("summary") if done.recorded else None
