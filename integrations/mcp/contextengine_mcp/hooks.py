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

from contextengine import Client, ContextEngineError, SessionRef
from contextengine.errors import SessionNotFound
from contextengine.formats import Transcript, TranscriptError, read_transcript
from contextengine.types import RecordHostChangeRequest

Rewind = RecordHostChangeRequest.Rewind
HostCompaction = RecordHostChangeRequest.HostCompaction

NOTE = (
    "This conversation is recorded by contextengine. What is no longer in your context can be found"
    " with the tools whose names begin with ctx_ (ctx_search first) before you ask the user again."
)
"""Constant, so that it never changes what the provider has cached."""
AT_ONCE = 100
"""Messages of one call."""
MOST_BACK = 200
"""How many messages of the branch are looked at for the newest that is stored, where the user went
back: as many as one prompt's work has, and more."""


class HookError(Exception):
    """What a hook was given is not what its host gives. The text says what is missing."""


def run(client: Client, agent: str, given: str, seconds: float) -> str:
    """Stores what the host's transcript holds beyond what is stored, as far as `seconds` go; what
    to print. Raises HookError, TranscriptError, ContextEngineError."""
    event = _event(given)
    if transcript := _transcript(event):
        ref = SessionRef(agent_id=agent, session_id=str(event["session_id"]))
        recorder = Recorder(client, ref, seconds)
        recorder.record(transcript, ended=event["hook_event_name"] == "Stop")
    if event["hook_event_name"] != "SessionStart":
        return ""
    added = {"hookEventName": "SessionStart", "additionalContext": NOTE}
    return json.dumps({"hookSpecificOutput": added})


class Recorder:
    """Brings a session to where its host's transcript is. Safe to call at every event: what is
    there already is not stored again, and what there was no time for comes with the next."""

    def __init__(self, client: Client, ref: SessionRef, seconds: float) -> None:
        self._client = client
        self._ref = ref
        self._until = time.monotonic() + seconds

    def record(self, transcript: Transcript, *, ended: bool) -> int:
        """Stores the messages that are not stored, takes back what the user went back behind, and
        shows the host's compactions as its summaries. How many messages came.

        ended: whether the turn is over, so that the service may compact.
        """
        newest = self._newest()
        if newest in transcript.abandoned:
            newest = self._rewind(transcript)
        ids = [message.id for message in transcript.messages]
        after = ids.index(newest) + 1 if newest in ids else 0
        new = transcript.messages[after:]
        for start in range(0, len(new), AT_ONCE):
            some = new[start : start + AT_ONCE]
            if ended and start + AT_ONCE >= len(new):
                self._client.after_turn(self._ref, some, timeout=self._left())
            else:
                self._client.ingest_batch(self._ref, some, timeout=self._left())
        for summary in transcript.summaries:
            if summary.first < summary.count <= len(ids):
                self._summarize(ids[summary.first], ids[summary.count - 1], summary.text)
        return len(new)

    def _left(self) -> float:
        """Seconds that are left; a call that has none fails at once."""
        return max(self._until - time.monotonic(), 0.001)

    def _newest(self) -> str:
        """The id of the newest message that is stored. Empty: none is."""
        try:
            return self._client.get_status(self._ref, timeout=self._left()).last_message_id
        except SessionNotFound:
            return ""

    def _rewind(self, transcript: Transcript) -> str:
        """Takes what is stored of a branch that was left out of the view; the id of the message
        that is the newest then. Empty: none."""
        for message in reversed(transcript.messages[-MOST_BACK:]):
            if self._changed(f"left:{message.id}", rewind=Rewind(after_message_id=message.id)):
                return message.id
        first = transcript.messages[0].id if transcript.messages else ""
        self._changed(f"left:all:{first}", rewind=Rewind(after_sequence=0))
        return ""

    def _summarize(self, first: str, last: str, text: str) -> None:
        """Where it is no shorter than its messages, or parts a step of ours, the messages stay."""
        compacted = HostCompaction(first_message_id=first, last_message_id=last, summary=text)
        self._changed(f"compaction:{first}:{last}", compacted=compacted)

    def _changed(self, change_id: str, **change: Any) -> bool:
        """Says what the host did. False: it is about messages that are not there so."""
        try:
            self._client.record_host_change(
                self._ref, change_id=change_id, timeout=self._left(), **change
            )
        except ContextEngineError as error:
            if not error.violations:
                raise
            return False
        return True


def _event(given: str) -> Mapping[str, Any]:
    try:
        event: Any = json.loads(given)
    except ValueError as error:
        raise HookError(f"standard input is no JSON: {error}") from None
    for key in ("session_id", "hook_event_name"):
        if not isinstance(event, dict) or not isinstance(event.get(key), str):
            raise HookError(f"{key} is missing: this command is for hooks of Codex and Claude Code")
    return dict(event)


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
