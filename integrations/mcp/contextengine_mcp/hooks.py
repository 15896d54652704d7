"""Hooks of Codex and Claude Code: what happened in a conversation is stored, and a model that
begins anew is told where to find what it no longer sees.

Both hosts hand a hook one JSON object on standard input, with `session_id`, `transcript_path` and
`hook_event_name`, and take one on standard output. History is never put into their context: Codex
shows what a hook adds as a developer message, and what users said is no instruction of a developer.
What is added is one constant note.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contextengine import Client, ContextEngineError, Feed, SessionRef
from contextengine.formats import Transcript, TranscriptError, read_transcript
from contextengine.types import RecordHostChangeRequest

from .away import Away

HostCompaction = RecordHostChangeRequest.HostCompaction

NOTE = (
    "This conversation is recorded by contextengine. What is no longer in your context can be found"
    " with the tools whose names begin with ctx_ (ctx_search first) before you ask the user again."
)
"""Constant, so that it never changes what the provider has cached."""


class HookError(Exception):
    """What a hook was given is not what its host gives. The text says what is missing."""


def read(given: str) -> Mapping[str, Any]:
    """What a host tells its hook. Raises HookError."""
    try:
        event: Any = json.loads(given)
    except ValueError as error:
        raise HookError(f"standard input is no JSON: {error}") from None
    for key in ("session_id", "hook_event_name"):
        if not isinstance(event, dict) or not isinstance(event.get(key), str):
            raise HookError(f"{key} is missing: this command is for hooks of Codex and Claude Code")
    return dict(event)


def record(
    client: Client, agent: str, event: Mapping[str, Any], seconds: float, away: Away
) -> None:
    """Stores what the host's transcript holds beyond what is stored, as far as `seconds` go.
    Raises TranscriptError, ContextEngineError."""
    if transcript := _transcript(event):
        until = time.monotonic() + seconds
        away.ask(lambda patience: client.engines.list(timeout=patience), seconds)
        ref = SessionRef(agent_id=agent, session_id=str(event["session_id"]))
        recorder = Recorder(client, ref, until)
        recorder.record(transcript, ended=event["hook_event_name"] == "Stop")


def note(event: Mapping[str, Any]) -> str:
    """What to print, whatever became of the recording."""
    if event["hook_event_name"] != "SessionStart":
        return ""
    added = {"hookEventName": "SessionStart", "additionalContext": NOTE}
    return json.dumps({"hookSpecificOutput": added})


class Recorder:
    """Brings a session to where its host's transcript is. Safe to call at every event: what is
    there already is not stored again, and what there was no time for comes with the next."""

    def __init__(self, client: Client, ref: SessionRef, until: float) -> None:
        """until: when its time is over, by the monotonic clock."""
        self._client = client
        self._ref = ref
        self._until = until

    def record(self, transcript: Transcript, *, ended: bool) -> int:
        """Stores the messages that are not stored, takes back what the user went back behind, and
        shows the host's compactions as its summaries. How many messages came.

        ended: whether the turn is over, so that the service may compact.
        """
        feed = Feed(self._client, self._ref)
        came = feed.bring(
            transcript.messages,
            left=transcript.abandoned,
            # Hosts write a reply down piece by piece, and call hooks meanwhile.
            grows=True,
            ended=ended,
            timeout=self._left(),
        )
        ids = [message.id for message in transcript.messages]
        for summary in transcript.summaries:
            if summary.first < summary.count <= len(ids):
                self._summarize(ids[summary.first], ids[summary.count - 1], summary.text)
        return came or 0

    def _left(self) -> float:
        """Seconds that are left; a call that has none fails at once."""
        return max(self._until - time.monotonic(), 0.001)

    def _summarize(self, first: str, last: str, text: str) -> None:
        """Where it is no shorter than its messages, or parts a step of ours, the messages stay."""
        try:
            self._client.record_host_change(
                self._ref,
                change_id=f"compaction:{first}:{last}",
                compacted=HostCompaction(
                    first_message_id=first, last_message_id=last, summary=text
                ),
                timeout=self._left(),
            )
        except ContextEngineError as error:
            if not error.violations:
                raise


def _transcript(event: Mapping[str, Any]) -> Transcript | None:
    """The conversation so far. None: nothing was written down yet."""
    path = event.get("transcript_path")
    if not isinstance(path, str) or not path:
        return None
    try:
        found = list(read_transcript(path))
    except FileNotFoundError:
        return None
    except TranscriptError as error:
        if error.line == 1 and not Path(path).read_bytes().strip():
            return None
        raise
    return found[0] if found else None
