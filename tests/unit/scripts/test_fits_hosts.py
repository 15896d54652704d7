"""Whether the client fits beside other packages is judged by what moves because of it."""

from __future__ import annotations

from packaging.requirements import Requirement

from scripts.fits_hosts import moved, requirements, versions


def test_what_a_host_had_must_stay_as_it_was() -> None:
    before = {"langchain-core": "1.7.2", "langsmith": "0.15.0"}
    assert moved(before, before | {"grpcio": "1.85.1"}) == []
    assert moved(before, before | {"langchain-core": "1.1.0"}) == ["langchain-core 1.7.2 -> 1.1.0"]
    assert moved(before, {"langchain-core": "1.7.2"}) == ["langsmith 0.15.0 -> gone"]


def test_a_report_of_pip_names_versions() -> None:
    report = {"install": [{"metadata": {"name": "Uuid_Utils", "version": "0.19.0"}}]}
    assert versions(report) == {"uuid-utils": "0.19.0"}


def test_the_client_asks_for_no_more_than_it_uses() -> None:
    """What the LangChain packages hold back: langsmith wants uuid-utils below 1.0."""
    needed = {(one := Requirement(text)).name: one.specifier for text in requirements()}
    assert "0.12.0" in needed["uuid-utils"]
    assert "0.19.0" in needed["uuid-utils"]
    assert "1.2.0" in needed["uuid-utils"]
    assert not any(name.startswith("contextengine") for name in needed)
