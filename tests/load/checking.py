"""Whether calls do what their profile says: an answer with status OK alone does not show it."""

from __future__ import annotations

from typing import Any

from google.protobuf import message_factory

from tests.bench.house import BenchError
from tests.bench.talk import Talk

from .profiles import Call, Profile
from .seed import WRITTEN

PROBES = 3
"""Calls of each profile that are looked at closely; the last one's reply is the floor's. They touch
three sessions at most."""

STORING = ("Assemble", "Ingest", "IngestBatch", "AfterTurn")
"""The rpcs that store the messages they are given."""

_SIZES = {"assemble-10kb": 10_000, "assemble-100kb": 100_000, "assemble-1mb": 1_000_000}
"""Bytes of the reply."""


def probe(talk: Talk, profile: Profile, run: str) -> bytes:
    """Calls a profile's rpc a few times as ghz would and answers the last reply. Raises BenchError
    where it is not what the profile is for."""
    encoded = b""
    for number in range(PROBES):
        request: Any = profile.request(Call(number, run=run))
        if profile.carries:
            held: Any = profile.request(Call(number, run=run))
            held.ClearField("ingest")
            request.known_context_hash = talk.assemble(held).context_hash
        encoded = talk.raw(profile.call, request.SerializeToString())
    reply = message_factory.GetMessageClass(profile.method.output_type).FromString(encoded)
    if not _sensible(profile, reply):
        raise BenchError(f"{profile.path} is answered, but not as it should be: {str(reply)[:500]}")
    return encoded


def _sensible(profile: Profile, reply: Any) -> bool:
    if profile.name in _SIZES:
        return (
            bool(reply.outcome == reply.OUTCOME_FITS)
            and 0.8 < reply.ByteSize() / _SIZES[profile.name] < 1.3
        )
    match profile.rpc:
        case "Assemble":
            return (
                bool(reply.outcome == reply.OUTCOME_FITS and reply.cache.delta)
                and len(reply.items) == 2
            )
        case "Ingest":
            return bool(reply.stored.sequence)
        case "IngestBatch":
            return len(reply.stored) == 10
        case "AfterTurn":
            return bool(reply.status == reply.STATUS_COMMITTED) and len(reply.stored) == 2
        case "Compact":
            return bool(reply.summaries and reply.ok)
        case "PrepareSubagentSpawn":
            return bool(reply.spawn_token) and not reply.note
        case "EndSubagent":
            return bool(reply.ended)
        case "Search":
            return len(reply.hits) > 0
        case "Project":
            return len(reply.prompt) > 10_000
    raise BenchError(
        f"{profile.path}: say in {__name__} how a good reply of {profile.rpc} is known"
    )


def group(profile: Profile) -> str:
    """The name of the seeded sessions that a profile writes to, or that are the parents. Empty: it
    writes to none."""
    request: Any = profile.request(Call())
    if profile.rpc == "EndSubagent":
        return "parent"
    session = request.parent if profile.rpc == "PrepareSubagentSpawn" else request.session
    name: str = session.session_id.rpartition("-")[0]
    return name if name in WRITTEN else ""


def written(talk: Talk, profile: Profile, run: str, count: int) -> int:
    """A count of what a profile writes to the first `count` sessions of its group, which each of
    its calls raises by `share`."""
    found = [talk.status(f"{run}{group(profile)}-{index}") for index in range(count)]
    match profile.rpc:
        case "Compact":
            # A call makes as many summaries as its session needs, and finds another session each
            # time.
            return sum(one.compaction_count > 0 for one in found)
        case "PrepareSubagentSpawn" | "EndSubagent":
            return sum(one.live_child_count for one in found)
    return sum(one.last_sequence for one in found)


def share(profile: Profile) -> int:
    """What a call of a profile adds to the count."""
    request: Any = profile.request(Call())
    match profile.rpc:
        case "Compact" | "PrepareSubagentSpawn" | "Ingest":
            return 1
        case "EndSubagent":
            return -1
        case "IngestBatch" | "AfterTurn":
            return len(request.messages)
        case "Assemble":
            return len(request.ingest)
    return 0
