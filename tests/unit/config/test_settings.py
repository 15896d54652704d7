"""Settings: where they come from, which source wins, and what is said about wrong ones."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from contextengine_server.api.pipeline.server import ServerOptions
from contextengine_server.app import server_options
from contextengine_server.config.docs import document
from contextengine_server.config.load import SettingsError, load_settings
from contextengine_server.config.schema import describe
from contextengine_server.config.settings import Settings, settings_with
from contextengine_server.plugins.engines import installed_engines

ROOT = Path(__file__).parents[3]
DIGEST = "ab" * 32


pytestmark = pytest.mark.usefixtures("in_an_empty_directory")


def load(
    text: str = "", environ: dict[str, str] | None = None, flags: dict[str, Any] | None = None
) -> Settings:
    Path("contextengine.yaml").write_text(text, encoding="utf-8")
    return load_settings(flags=flags, environ=environ or {})


def complaints(*args: Any, **kwargs: Any) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(*args, **kwargs)
    assert str(caught.value) == "\n".join(map(str, caught.value.problems))
    return [str(problem) for problem in caught.value.problems]


def test_without_any_source_the_defaults() -> None:
    settings = load_settings(environ={})
    assert settings.model_dump(exclude={"engine"}) == Settings().model_dump(exclude={"engine"})
    assert settings.server.address == "127.0.0.1:50051"
    assert settings.server.max_message_bytes == 64 << 20
    assert settings.server.drain_grace == timedelta(seconds=10)
    assert settings.sessions.cache_bytes == 256 << 20
    assert settings.sessions.idle_end is None
    assert settings.tokens.encoding == "o200k_base"
    assert settings.engine.default == "dag"
    assert settings.engine.on_engine_failure == "fail_closed"
    assert settings.store.url == "var/contextengine.db"
    assert settings.budget.rules.output_reserve == 8192


def test_flags_beat_the_environment_beats_the_file_beats_defaults() -> None:
    text = "engine: {dag: {freshTailTurns: 1, leafChunkTokens: 1001, leafTargetTokens: 101}}"
    environ = {
        "CONTEXTENGINE_ENGINE__DAG__FRESH_TAIL_TURNS": "2",
        "CONTEXTENGINE_ENGINE__DAG__LEAF_CHUNK_TOKENS": "1002",
    }
    dag = load(
        text, environ, {"engine.dag.fresh_tail_turns": 3, "server": {"address": "[::1]:1"}}
    ).engine.options("dag")
    assert (dag.fresh_tail_turns, dag.leaf_chunk_tokens, dag.leaf_target_tokens) == (3, 1002, 101)
    assert dag.condensed_min_fanout == 4


@pytest.mark.parametrize("flag", ["engine.dag.freshTailTurns", "engine.dag.fresh_tail_turns"])
@pytest.mark.parametrize("key", ["freshTailTurns", "fresh_tail_turns"])
def test_both_spellings_are_the_same_setting_in_every_source(flag: str, key: str) -> None:
    assert load(f"engine: {{dag: {{{key}: 7}}}}").engine.options("dag").fresh_tail_turns == 7
    assert (
        load(f"engine: {{dag: {{{key}: 7}}}}", {}, {flag: 9}).engine.options("dag").fresh_tail_turns
        == 9
    )


def test_a_flag_that_was_not_given_changes_nothing() -> None:
    assert load("server: {insecure: true}", {}, {"server.insecure": None}).server.insecure


def test_the_file_is_the_one_asked_for() -> None:
    for name, port in (("a.yaml", 1), ("b.yaml", 2), ("contextengine.yaml", 3)):
        Path(name).write_text(f"server: {{address: '127.0.0.1:{port}'}}")
    environ = {"CONTEXTENGINE_CONFIG": "b.yaml"}
    assert load_settings("a.yaml", environ=environ).server.address.endswith(":1")
    assert load_settings(environ=environ).server.address.endswith(":2")
    assert load_settings(environ={}).server.address.endswith(":3")


def test_a_file_that_was_asked_for_must_be_there() -> None:
    for config, environ in (("none.yaml", {}), (None, {"CONTEXTENGINE_CONFIG": "none.yaml"})):
        with pytest.raises(SettingsError, match=r"none.yaml: cannot be read: No such file"):
            load_settings(config, environ=environ)


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_is_no_setting(text: str) -> None:
    assert load(text) == load_settings(environ={})


def test_lists_and_groups_come_from_the_environment_as_json() -> None:
    environ = {
        "CONTEXTENGINE_AUTH__TOKENS": (
            f'[{{"sha256": "{DIGEST}", "tenant": "acme", "role": "operator"}}]'
        ),
        "CONTEXTENGINE_BUDGET": '{"window_cap": 64000}',
        "CONTEXTENGINE_SERVER__TLS__CERT_FILE": "c.pem",
        "CONTEXTENGINE_SERVER__TLS__KEY_FILE": "k.pem",
    }
    settings = load("", environ)
    assert (settings.auth.tokens[0].tenant, settings.auth.tokens[0].role) == ("acme", "operator")
    assert settings.budget.window_cap == 64_000
    assert settings.server.tls.enabled


def test_variables_that_are_no_settings_are_let_be() -> None:
    # What Kubernetes sets for a service named contextengine.
    load(
        "",
        {
            "CONTEXTENGINE_SERVICE_HOST": "10.0.0.1",
            "CONTEXTENGINE_PORT_50051_TCP": "tcp://10.0.0.1:50051",
        },
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "server: {adress: x}",
            (
                "server.adress: is not a known name; did you mean server.address? (in"
                " contextengine.yaml)"
            ),
        ),
        ("sever: {}", "sever: is not a known name; did you mean server? (in contextengine.yaml)"),
        (
            "engine: {dag: {fresh-tail-turn: 3}}",
            (
                "engine.dag.fresh-tail-turn: is not a known name; did you mean"
                " engine.dag.freshTailTurns? (in contextengine.yaml)"
            ),
        ),
        (
            "tokens: {zzz: 1}",
            "tokens.zzz: is not a known name; known here: encoding (in contextengine.yaml)",
        ),
        (
            "engine: {dag: {freshTailTurns: 99}}",
            (
                "engine.dag.freshTailTurns: must be at least 1 and at most 50, got 99 (in"
                " contextengine.yaml)"
            ),
        ),
        (
            "engine: {dag: {freshTailTurns: 3, fresh_tail_turns: 3}}",
            (
                "engine.dag.fresh_tail_turns: is given twice, also as fresh_tail_turns; keep one"
                " (in contextengine.yaml)"
            ),
        ),
        (
            "server: {max_message_bytes: 4KiB}",
            (
                "server.max_message_bytes: must be at least 64KiB and at most 2147483647,"
                ' got "4KiB" (in contextengine.yaml)'
            ),
        ),
        (
            "server: {drain_grace: soon}",
            (
                'server.drain_grace: must be a duration such as "500ms", "10s", "5m" or "1h30m",'
                ' got "soon" (in contextengine.yaml)'
            ),
        ),
        (
            "sessions: {cache_bytes: lots}",
            (
                'sessions.cache_bytes: must be a size such as 65536, "512KiB" or "64MiB", got'
                ' "lots" (in contextengine.yaml)'
            ),
        ),
        (
            "budget: {rot_buffer_ratio: 1.0}",
            (
                "budget.rot_buffer_ratio: must be at least 0 and less than 1, got 1.0 (in"
                " contextengine.yaml)"
            ),
        ),
        (
            "budget: {rot_buffer_ratio: .nan}",
            (
                "budget.rot_buffer_ratio: input should be a finite number, got NaN (in"
                " contextengine.yaml)"
            ),
        ),
        (
            "summarizer: {workers: yes}",
            "summarizer.workers: must be a number, got true (in contextengine.yaml)",
        ),
        (
            "summarizer: {workers: 1.5}",
            (
                "summarizer.workers: must be a whole number at least 1 and at most 64, got 1.5 (in"
                " contextengine.yaml)"
            ),
        ),
        (
            "context_pruning: {mode: on}",
            (
                "context_pruning.mode: must be one of off or cache-ttl, got true, as YAML reads on,"
                " off, yes and no without quotes (in contextengine.yaml)"
            ),
        ),
        (
            "engine: {on_engine_failure: retry}",
            (
                'engine.on_engine_failure: must be one of fail_closed or legacy, got "retry" (in'
                " contextengine.yaml)"
            ),
        ),
        ("engine: {default: ''}", "engine.default: must not be empty (in contextengine.yaml)"),
        (
            "server: {address: localhost}",
            (
                "server.address: must be host:port, [ipv6]:port or unix:path, the port from 0 to"
                ' 65535, got "localhost" (in contextengine.yaml)'
            ),
        ),
        (
            "server: 3",
            "server: must be a mapping of names to values, got 3 (in contextengine.yaml)",
        ),
        ("server: {}\nserver: {}", "server: is given twice; keep one (in contextengine.yaml)"),
        ("- a", "contextengine.yaml: must be a mapping of groups, such as `server:`"),
        (
            "server: {tls: {cert_file: x}}",
            (
                "server.tls: cert_file and key_file belong together: set both or neither (in"
                " contextengine.yaml)"
            ),
        ),
        (
            "server: {tls: {client_ca_file: x}}",
            (
                "server.tls: client_ca_file needs cert_file and key_file as well (in"
                " contextengine.yaml)"
            ),
        ),
        (
            "auth: {tokens: [{sha256: " + DIGEST + "}]}",
            "auth.tokens[0].tenant: is required (in contextengine.yaml)",
        ),
        (
            "auth: {tokens: [{sha256: " + DIGEST + ", tenant: a, rol: operator}]}",
            (
                "auth.tokens[0].rol: is not a known name; did you mean auth.tokens[0].role? (in"
                " contextengine.yaml)"
            ),
        ),
        (
            (
                f"auth: {{tokens: [{{sha256: {DIGEST}, tenant: a}}, {{sha256: {DIGEST.upper()},"
                " tenant: b}]}"
            ),
            (
                "auth: tokens[0] and tokens[1] are the same token; a token has one tenant and role"
                " (in contextengine.yaml)"
            ),
        ),
        (
            "telemetry: {traces: {endpoint: '127.0.0.1:4317'}}",
            (
                "telemetry.traces.endpoint: must begin with http:// or https://, or be empty for"
                ' none, got "127.0.0.1:4317" (in contextengine.yaml)'
            ),
        ),
    ],
)
def test_what_is_wrong_is_said_with_path_limit_and_source(text: str, said: str) -> None:
    assert complaints(text) == [said]


def test_all_problems_are_said_at_once_each_with_its_own_source() -> None:
    said = complaints(
        "server: {adress: x}\nbudget: {default_window: 5}",
        {"CONTEXTENGINE_SUMMARIZER__NICE": "77", "CONTEXTENGINE_SERVER__INSECUR": "true"},
        {"engine.dag.contextThreshold": 0.99},
    )
    assert said == [
        "server.adress: is not a known name; did you mean server.address? (in contextengine.yaml)",
        "server.insecur: is not a known name; did you mean server.insecure? (in the environment)",
        (
            "engine.dag.contextThreshold: must be at least 0.1 and at most 0.95, got 0.99 (in the"
            " command line)"
        ),
        "budget.default_window: must be at least 1024, got 5 (in contextengine.yaml)",
        'summarizer.nice: must be at least 0 and at most 19, got "77" (in the environment)',
    ]


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("CONTEXTENGINE_SERVER_ADDRESS", "did you mean CONTEXTENGINE_SERVER__ADDRESS?"),
        ("CONTEXTENGINE_SEVER__ADDRESS", "names no group of settings; groups: SERVER, AUTH,"),
        ("CONTEXTENGINE_AUTH__TOKENS", "must be JSON"),
    ],
)
def test_misspelt_variables_are_refused(variable: str, said: str) -> None:
    assert said in complaints("", {variable: "[{"})[0]


def test_a_token_in_place_of_its_hash_is_never_shown() -> None:
    said = complaints("auth: {tokens: [{sha256: my-very-secret-token, tenant: t}]}")
    assert said == [
        "auth.tokens[0].sha256: must be the SHA-256 of the token as 64 hexadecimal digits, never"
        " the token itself (in contextengine.yaml)"
    ]
    assert "my-very-secret" not in "".join(
        complaints("auth: {tokens: {sha256: my-very-secret-token}}")
    )


def test_what_is_printed_holds_no_secret() -> None:
    settings = load(
        f"auth: {{tokens: [{{sha256: {DIGEST}, tenant: t, name: ci}}]}}\n"
        "telemetry: {traces: {endpoint: 'https://user:pass-word@collector.example:4317/v1'}}"
    )
    shown = settings.redacted()
    assert DIGEST not in repr(shown)
    assert "pass-word" not in repr(shown)
    assert shown["auth"]["tokens"] == [
        {"sha256": "(not shown)", "tenant": "t", "role": "runtime", "name": "ci"}
    ]
    assert (
        shown["telemetry"]["traces"]["endpoint"] == "https://(not shown)@collector.example:4317/v1"
    )
    assert shown["engine"]["dag"]["freshTailTurns"] == 8


def test_settings_cannot_be_changed() -> None:
    settings = Settings()
    with pytest.raises(ValidationError):
        settings.server.address = "0.0.0.0:1"  # type: ignore[misc]


def test_every_setting_is_described_with_its_default_and_limits() -> None:
    docs = {doc.path: doc for doc in describe(settings_with(installed_engines()))}
    assert all(doc.description.endswith(".") for doc in docs.values())
    assert docs["engine.dag.contextThreshold"].minimum == "0.1"
    assert docs["engine.dag.contextThreshold"].maximum == "0.95"
    assert docs["server.drain_grace"].default == "10s"
    assert docs["server.drain_grace"].type == "duration"
    assert docs["server.max_message_bytes"].default == "64MiB"
    assert docs["sessions.idle_end"].type == "duration"
    assert docs["engine.on_engine_failure"].type == "fail_closed or legacy"
    assert docs["auth.tokens[].sha256"].default == ""


def test_the_documentation_is_current() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert page == document(), (
        "run `python -m contextengine_server.config.docs docs/configuration.md`"
    )


def test_the_server_needs_no_parser_and_no_grpc_to_read_its_settings() -> None:
    code = (
        "import sys, contextengine_server.config.load as c; c.load_settings(environ={});"
        "print([m for m in ('grpc', 'yaml', 'json5', 'sqlalchemy', 'tiktoken')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=150, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_server_that_is_told_nothing_keeps_to_the_default_settings() -> None:
    """Tests and benchmarks make servers without settings: what they measure is what is served."""
    assert server_options(Settings()) == ServerOptions()
