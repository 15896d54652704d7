"""Replays: every engine and way of calling, and what the table says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.shell import AIRLINE, CODING, Shell

WAYS = ("ingest", "separate", "live", "live-ids")


def replayed(shell: Shell, *words: object) -> dict[str, Any]:
    found: dict[str, Any] = shell.run("replay", *words, "--json").json()
    return found


@pytest.mark.parametrize("engine", ["dag", "legacy"])
def test_each_engine_stays_within_a_budget_that_the_session_exceeds(
    shell: Shell, engine: str
) -> None:
    words = (CODING, "--engine", engine, "--budget", 24_000, "--limit", 8, "--explain")
    whole = replayed(shell, *words)
    [session] = whole["sessions"]
    turns, totals = session["turns"], session["totals"]
    assert [turn["messages"] for turn in turns][-1] == totals["messages"] == 245
    assert totals["over_budget"] == 0
    assert all(turn["after"] <= 24_000 for turn in turns)
    assert turns[-1]["summarized"] > 0
    # legacy never evicts: it says OVER_BUDGET and the harness compacts. The dag compacts by itself,
    # in the background.
    assert (totals["forced_compactions"] > 0) == (engine == "legacy")
    assert any("compacted" in turn["causes"] for turn in turns)
    assert (
        len(session["decisions"]) == 244
    )  # what was known at the last call: the reply to it is the transcript's last message
    status = shell.run("status", session["session_id"], "--agent", "replay", "--json").json()
    assert status["engine"]["id"] == engine
    assert int(status["message_count"]) == 245


def test_every_way_of_calling_shows_the_same_context_at_every_turn(shell: Shell) -> None:
    found = {way: replayed(shell, AIRLINE, "--sessions", 2, "--way", way) for way in WAYS}
    hashes = {
        way: [turn["context_hash"] for session in whole["sessions"] for turn in session["turns"]]
        for way, whole in found.items()
    }
    assert len(hashes["ingest"]) == 14
    assert all(hashes[way] == hashes["ingest"] for way in WAYS)
    costs = {way: whole["totals"]["bytes_sent"] for way, whole in found.items()}
    assert costs["ingest"] < costs["separate"] < costs["live"] < costs["live-ids"]


def test_nothing_is_evicted_where_everything_fits_and_only_new_items_travel(shell: Shell) -> None:
    [session] = replayed(shell, AIRLINE, "--sessions", 1)["sessions"]
    totals = session["totals"]
    assert all(
        not turn["evicted"] and not turn["masked"] and not turn["causes"]
        for turn in session["turns"]
    )
    first = session["turns"][0]["sent_tokens"]
    last = session["turns"][-1]["sent_tokens"]
    # Every list begins with all of the one before: what is not prefix is what was new, in sum the
    # last list.
    assert totals["tokens_sent"] - totals["tokens_of_unchanged_prefix"] == last
    assert first < last


def test_the_table_has_a_row_for_each_turn_and_the_totals(shell: Shell) -> None:
    text = shell.run("replay", AIRLINE, "--sessions", 2, "--limit", 3, "--budget", 3000).text
    rows = [line.split() for line in text.splitlines() if line[:5].strip().isdigit()]
    assert [row[0] for row in rows] == ["1", "2", "3"] * 2
    assert text.count("way ingest, budget 3,000 tokens") == 2
    assert "Total: 3 turns, " in text
    assert "All 2 sessions: 6 turns, " in text


def test_one_name_is_for_one_new_session(shell: Shell) -> None:
    several = shell.run("replay", AIRLINE, "--limit", 1, "--session", "one", status=2)
    assert "--sessions 1" in several.err
    known = shell.run(
        "replay", AIRLINE, "--limit", 1, "--session", "one", "--sessions", 1, status=1
    )
    assert "contextengine sessions delete one --agent replay" in known.err


def test_a_replay_where_no_server_runs_stays_in_the_store(alone: Shell) -> None:
    alone.run(
        "replay",
        AIRLINE,
        "--sessions",
        1,
        "--limit",
        2,
        "--session",
        "mine",
        "--store",
        "var/my.db",
    )
    shown = alone.run("show", "mine", "--agent", "replay", "--store", "var/my.db").text
    assert "FITS: 5 items" in shown
