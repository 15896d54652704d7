"""The profiles of the load: each names an rpc of ours and renders to its request, so that none
drifts from the protos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

from tests.load.driving import CASES
from tests.load.profiles import Call, Profile, ProfileError, mix, profiles, render, write_protoset

ALL = [*profiles().values(), *mix().values()]
IDS = [f"{profile.path.parent.name}/{profile.name}" for profile in ALL]

KNOWN_TO_GHZ = {
    "call", "host", "insecure", "concurrency", "connections", "rps", "total", "duration",
    "duration-stop", "tags", "data",
}  # fmt: skip
"""ghz says nothing of a key that it does not know."""


@pytest.mark.parametrize("profile", ALL, ids=IDS)
def test_a_profile_renders_to_requests_of_an_rpc_of_ours(profile: Profile) -> None:
    assert profile.config.keys() <= KNOWN_TO_GHZ
    assert profile.method.containing_service.file.package == "contextengine.v1"
    assert profile.config["duration-stop"] == "wait", (
        "calls in flight would be cut off, and count as errors"
    )
    for number in range(3):
        request = profile.request(Call(number, worker=f"g{number}c0", run="r-"))
        assert request.DESCRIPTOR.full_name == profile.method.input_type.full_name
        assert request.ByteSize() > 10


@pytest.mark.parametrize("profile", ALL, ids=IDS)
def test_what_is_written_has_its_own_ids_and_sessions_of_its_run(profile: Profile) -> None:
    ids: list[str] = []
    for number in range(3):
        request: Any = profile.request(Call(number, worker=f"g{number}c0", run="r-"))
        fields = {field.name for field in request.DESCRIPTOR.fields}
        messages = [*getattr(request, "messages", ()), *getattr(request, "ingest", ())]
        messages += [request.message] if "message" in fields else []
        ids += [message.id for message in messages]
        if messages or profile.rpc in {"Compact", "PrepareSubagentSpawn", "EndSubagent"}:
            named = [
                getattr(request, name) for name in ("session", "parent", "child") if name in fields
            ]
            assert all(one.session_id.startswith("r-") for one in named)
    assert all(ids)
    assert len(set(ids)) == len(ids)


def test_the_profiles_cover_what_an_agent_calls() -> None:
    wanted = {
        "Ingest", "IngestBatch", "Assemble", "AfterTurn", "Compact", "PrepareSubagentSpawn",
        "EndSubagent", "Search", "Project",
    }  # fmt: skip
    assert {profile.rpc for profile in profiles().values()} == wanted
    assert {profile.rpc for profile in mix().values()} == wanted
    assert all(profile.config["rps"] > 0 for profile in mix().values())
    assert profiles()["end"].config["total"] == profiles()["spawn"].config["total"], (
        "each child ends once"
    )


def test_the_page_tells_of_every_profile_and_load() -> None:
    page = (Path(__file__).parents[3] / "docs" / "load.md").read_text(encoding="utf-8")
    assert {name for name in CASES if f"`{name}`" not in page} == set()


def _broken(**changes: Any) -> Profile:
    profile = profiles()["ingest"]
    return Profile("broken", Path("broken.json"), {**profile.config, **changes})


def test_a_profile_that_drifted_is_refused() -> None:
    with pytest.raises(ProfileError, match=r"no rpc .*/Inject"):
        _broken(call="contextengine.v1.ContextEngine/Inject").request(Call())
    with pytest.raises(ProfileError, match="sesion"):
        _broken(data={"sesion": {}}).request(Call())
    with pytest.raises(ProfileError, match="ROLE_NOBODY"):
        _broken(data={"message": {"role": "ROLE_NOBODY"}}).request(Call())
    with pytest.raises(ProfileError, match=r"the action \{\{randomString 8\}\}"):
        _broken(data={"request_id": "{{randomString 8}}"}).request(Call())


def test_actions_mean_what_they_mean_to_ghz() -> None:
    call = Call(number=7, worker="g12c3", run="a-")
    template = (
        "{{mod .RequestNumber 4}} {{sub .RequestNumber 2}} {{regexFind `[0-9]+` .WorkerID}} {{env"
        " `RUN`}}x"
    )
    assert render(template, call) == "3 5 12 a-x"
    first, second = render("{{.UUID}} {{.UUID}}", call).split()
    assert first == second, "one for each call"
    first, second = render("{{newUUID}} {{newUUID}}", call).split()
    assert first != second, "one for each place"


def test_the_descriptors_stand_alone(tmp_path: Path) -> None:
    write_protoset(tmp_path / "all.protoset")
    pool = descriptor_pool.DescriptorPool()
    written = descriptor_pb2.FileDescriptorSet.FromString((tmp_path / "all.protoset").read_bytes())
    for file in written.file:  # raises where one needs a file that is not there before it
        pool.Add(file)
    for profile in ALL:
        assert pool.FindMethodByName(profile.call.replace("/", "."))
