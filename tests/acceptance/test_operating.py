"""What operators type: doctor, engines, config, token, sessions, compact, watch."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.shell import AIRLINE, COMMAND, PATIENCE_S, Shell, serving

HOSTS = Path(__file__).parent / "hosts"


def imported(shell: Shell, agent: str, session: str = "airline-000") -> None:
    one = shell.directory / "one.jsonl"
    one.write_text(AIRLINE.read_text(encoding="utf-8").splitlines()[0], encoding="utf-8")
    shell.run("import", one, "--agent", agent, "--session", session)


def test_doctor_asks_the_server(shell: Shell) -> None:
    found = shell.run("doctor", "--json").json()
    assert found["ok"] is True
    assert found["source"] == f"the server at {shell.address}"
    assert {"server.address", "budget", "tokens.ranks", "store", "engine.default"} <= {
        c["name"] for c in found["checks"]
    }
    assert "tokens.ranks" in shell.run("doctor").text


def test_doctor_looks_for_itself_where_no_server_runs(alone: Shell) -> None:
    found = alone.run("doctor", "--json", CONTEXTENGINE_SERVER__ADDRESS="127.0.0.1:0").json()
    assert found["ok"] is True
    names = {check["name"]: check for check in found["checks"]}
    assert {"server.port", "tokens.ranks", "store", "engine.default"} <= names.keys()
    assert "the first start makes it" in names["store"]["found"]
    assert not (alone.directory / "var").exists()  # to look changes nothing


def test_doctors_exit_status_says_it_all(alone: Shell) -> None:
    (alone.directory / "text.db").write_text("no database " * 400)
    broken = alone.run(
        "doctor",
        "--store",
        "text.db",
        "--json",
        status=1,
        CONTEXTENGINE_SERVER__ADDRESS="127.0.0.1:0",
    )
    [store] = [check for check in broken.json()["checks"] if check["name"] == "store"]
    assert store["status"] == "error"
    assert "is not an SQLite database" in store["found"]
    settings = alone.run("doctor", "--json", status=1, CONTEXTENGINE_SERVER__DRAIN_GRACE="-3")
    assert "server.drain_grace" in settings.json()["checks"][0]["found"]
    unknown = alone.run("doctor", "--json", status=1, CONTEXTENGINE_ENGINE__DEFAULT="nope")
    assert {c["name"] for c in unknown.json()["checks"] if c["status"] == "error"} >= {
        "engine.default"
    }
    nobody = alone.run("doctor", "--address", "127.0.0.1:1", status=1)
    assert "no server answers at 127.0.0.1:1" in nobody.err


@pytest.mark.parametrize("sample", sorted(HOSTS.iterdir()), ids=lambda path: path.name)
def test_a_hosts_configuration_becomes_ours(alone: Shell, sample: Path) -> None:
    made = alone.run("config", "import", sample, "-o", "contextengine.yaml")
    assert f"mapped from {sample.stem}" in made.err
    assert "left out" in made.err
    values = yaml.safe_load((alone.directory / "contextengine.yaml").read_text())
    engine = {
        "openclaw": "dag",
        "genesis": "legacy",
        "hermes": "compressor",
        "comis": "dag",
        "pyclaw": "layered",
    }
    assert values["engine"]["default"] == engine[sample.stem]
    assert alone.run("config", "check", "--json").json()["ok"]


def test_our_file_is_printed_and_never_overwritten_by_surprise(alone: Shell) -> None:
    printed = alone.run("config", "import", HOSTS / "comis.yaml")
    assert yaml.safe_load(printed.text)["engine"]["dag"]["freshTailTurns"] == 12
    (alone.directory / "contextengine.yaml").write_bytes(printed.out)
    refused = alone.run(
        "config", "import", HOSTS / "genesis.json", "-o", "contextengine.yaml", status=1
    )
    assert "--force" in refused.err
    shown = yaml.safe_load(alone.run("config", "show").text)
    assert shown["engine"]["dag"]["freshTailTurns"] == 12


def test_a_configuration_of_nobody_is_refused(alone: Shell) -> None:
    (alone.directory / "other.json").write_text('{"editor": {"theme": "dark"}}')
    assert alone.run("config", "import", "other.json", status=1).err.startswith("error: ")


def test_settings_are_shown_without_secrets(alone: Shell) -> None:
    digest = hashlib.sha256(b"t").hexdigest()
    shown = alone.run(
        "config", "show", "--set", f"auth.tokens=[{{sha256: {digest}, tenant: a}}]", "--json"
    )
    assert digest not in shown.text
    assert shown.json()["auth"]["tokens"][0]["tenant"] == "a"


def test_a_token_is_hashed_and_then_opens_its_tenant(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    digest = shell.run("token", "hash", stdin=b"the token\n".replace(b" ", b"-")).text.strip()
    assert digest == hashlib.sha256(b"the-token").hexdigest()
    assert "no token" in shell.run("token", "hash", stdin=b"\n", status=1).err
    with serving(
        tmp_path, "--set", f"auth.tokens=[{{sha256: '{digest}', tenant: acme, role: runtime}}]"
    ) as server:
        asking = Shell(tmp_path, server.address)
        refused = asking.run("sessions", "list", status=1)
        assert refused.err.startswith("error: UNAUTHENTICATED: ")
        assert "--token" in refused.err
        assert (
            asking.run("sessions", "list", "--json", CONTEXTENGINE_TOKEN="the-token").json() == []
        )
        denied = asking.run("engines", "use", "legacy", "--token", "the-token", status=1)
        assert denied.err.startswith("error: PERMISSION_DENIED: ")


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_a_server_with_tls_is_trusted_by_its_authority(tmp_path: Path) -> None:
    subprocess.run(
        shlex.split(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout"
            " key.pem -out cert.pem -days 2 -subj /CN=localhost -addext"
            " subjectAltName=DNS:localhost,IP:127.0.0.1"
        ),
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    tls = ("--set", "server.tls.cert_file=cert.pem", "--set", "server.tls.key_file=key.pem")
    with serving(tmp_path, *tls) as server:
        assert "(TLS; " in server.line
        asking = Shell(tmp_path, server.address)
        assert asking.run("doctor", "--ca", "cert.pem", "--json").json()["ok"]
        refused = asking.run("engines", "list", status=1)
        assert "does it speak TLS (--tls, --ca)" in refused.err
        assert len(refused.err.splitlines()) == 1


def test_engines_are_listed_shown_and_chosen(shell: Shell) -> None:
    imported(shell, "choosing")
    assert "dag (default)" in shell.run("engines", "list").text
    assert "freshTailTurns" in shell.run("engines", "show", "dag").text
    assert (
        "dag, layered, legacy"
        in shell.run("engines", "use", "nope", "--agent", "choosing", status=1).err
    )
    wrong = shell.run(
        "engines", "use", "dag", "--agent", "choosing", "--option", "freshTailTurns=0", status=1
    )
    assert "freshTailTurns" in wrong.err
    used = shell.run(
        "engines", "use", "dag", "--agent", "choosing", "--option", "freshTailTurns=3"
    ).text
    assert used == "agent 'choosing': dag 1.0.0, by agent\n"
    shell.run("engines", "use", "legacy", "--agent", "choosing", "--session", "airline-000")
    status = shell.run("status", "airline-000", "--agent", "choosing", "--json").json()
    assert (status["engine"]["id"], status["engine_source"]) == ("legacy", "session")
    shell.run("engines", "use", "--clear", "--agent", "choosing", "--session", "airline-000")
    shown = shell.run(
        "engines", "show", "--agent", "choosing", "--session", "airline-000", "--json"
    ).json()
    [tail] = [option for option in shown["options"] if option["name"] == "freshTailTurns"]
    assert (shown["source"], tail["source"]) == ("agent", "agent")


def test_compact_show_and_delete(shell: Shell) -> None:
    imported(shell, "compacting")
    refused = shell.run("compact", "airline-000", "--agent", "compacting").text
    assert "below threshold" in refused
    done = shell.run(
        "compact",
        "airline-000",
        "--agent",
        "compacting",
        "--force",
        "--focus",
        "zebra voucher",
        "--budget",
        "2500",
    )
    assert "extractive" in done.text
    shown = shell.run("show", "airline-000", "--agent", "compacting", "--full").text
    assert "summary of " in shown
    assert "zebra voucher" not in shown  # the focus steers, and is never shown
    assert "summaries  " in shell.run("status", "airline-000", "--agent", "compacting").text
    unsure = shell.run(
        "sessions", "delete", "airline-000", "--agent", "compacting", stdin=b"n\n", status=1
    )
    assert "Aborted" in unsure.err
    gone = shell.run("sessions", "delete", "airline-000", "--agent", "compacting", "--yes").text
    assert gone.startswith("erased airline-000: 32 messages, ")
    for words in (
        ("show",),
        ("status",),
        ("export",),
        ("compact",),
        ("sessions", "delete", "--yes"),
    ):
        missing = shell.run(*words, "airline-000", "--agent", "compacting", status=1)
        assert "no session 'airline-000' of agent 'compacting'" in missing.err


def test_watch_prints_what_happens(shell: Shell) -> None:
    words = ["watch", "--agent", "watched", "--event", "session:", "--limit", "2", "--json"]
    with subprocess.Popen(
        [COMMAND, *words],
        stdout=subprocess.PIPE,
        cwd=shell.directory,
        env=shell.environment(),
        text=True,
    ) as watching:
        assert watching.stdout is not None
        # Events are from now on, and the command says nothing before the first: sessions are made
        # until it has seen two.
        for number in range(100):
            imported(shell, "watched", f"s-{number}")
            if watching.poll() is not None:
                break
        events = [json.loads(line) for line in watching.stdout]
        assert watching.wait(PATIENCE_S) == 0
    assert len(events) == 2
    assert {event["agent_id"] for event in events} == {"watched"}


def test_version(alone: Shell) -> None:
    assert alone.run("version").text.startswith("contextengine-server")


def test_a_store_is_opened_whatever_transport_servers_have(alone: Shell) -> None:
    """Over a socket, which only one of them serves; the other may not even be installed here."""
    said = alone.run("engines", "list", CONTEXTENGINE_SERVER__TRANSPORT="native")
    assert "dag (default)" in said.text


def test_a_store_that_is_not_there_is_not_made_by_looking(alone: Shell) -> None:
    missing = alone.run("show", "s", status=1)
    assert "there is no database at /" in missing.err
    assert "/var/contextengine.db: start a server" in missing.err
    assert "dag (default)" in alone.run("engines", "list").text
    assert not (alone.directory / "var").exists()


def test_doctor_looks_at_the_local_settings_beside_a_server(shell: Shell) -> None:
    """The server goes on with the settings that it was started with; its next start has these."""

    def doctor(status: int, engine: str) -> Any:
        near = shell.run(
            "doctor",
            "--json",
            status=status,
            CONTEXTENGINE_ADDRESS="",
            CONTEXTENGINE_SERVER__ADDRESS=shell.address,
            CONTEXTENGINE_ENGINE__DEFAULT=engine,
        )
        return near.json()

    assert doctor(0, "dag")["ok"] is True
    broken = doctor(1, "nonesuch")
    wrong = {check["name"] for check in broken["checks"] if check["status"] == "error"}
    assert wrong == {"local.engine.default"}
