"""Each profile of the load, as ghz would send it, against a real server: answered, and doing what
it is for."""

from __future__ import annotations

import asyncio

import pytest

from tests.bench.house import BenchError
from tests.bench.talk import Talk
from tests.integration.harness import House
from tests.load.checking import PROBES, group, probe, share, written
from tests.load.profiles import Call, Profile, mix, profiles
from tests.load.seed import seed_read, seed_written


async def test_every_profile_does_what_it_is_for(house: House) -> None:
    await asyncio.to_thread(_call_all, house.app.address)


def _call_all(address: str) -> None:
    talk = Talk(address)
    try:
        seed_read(talk)
        for run, part in (("one-", profiles()), ("mixed-", mix())):
            groups = {name: PROBES for profile in part.values() if (name := group(profile))}
            seed_written(talk, run, groups)
            for profile in part.values():
                where = PROBES if group(profile) else 0
                before = written(talk, profile, run, where)
                probe(talk, profile, run)
                if profile.path.parent.name != "mixed" or profile.rpc != "EndSubagent":
                    assert written(talk, profile, run, where) - before == PROBES * share(profile), (
                        profile.path
                    )
        _a_useless_answer_is_told(talk)
    finally:
        talk.close()


def _a_useless_answer_is_told(talk: Talk) -> None:
    """A profile that is answered OK but finds nothing."""
    profile = profiles()["search"]
    asked = {
        **profile.config,
        "data": {"session": {"agent_id": "bench", "session_id": "search"}, "query": "xyzzy"},
    }
    with pytest.raises(BenchError, match="not as it should be"):
        probe(talk, Profile("search", profile.path, asked), "")
    assert profile.request(Call(1)) != profile.request(Call(2)), "each search is another"
