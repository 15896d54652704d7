"""The settings of issuers and of client certificates: what is refused, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine_server.app import server_options
from contextengine_server.config.lint import config_lint
from contextengine_server.config.load import SettingsError, load_settings

ISSUER = {"issuer": "https://i.example/", "audiences": ["us"], "keys_file": "keys.json"}
FILES = {"cert_file": "c.pem", "key_file": "k.pem", "client_ca_file": "ca.pem"}


def loaded(**auth: Any) -> Any:
    flags = {f"auth.{name}": value for name, value in auth.items()}
    return load_settings(None, {"server.tls": FILES, **flags}, {})


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"keys_file": ""}, "give keys_file or keys_url"),
        ({"keys_url": "https://i.example/keys"}, "give keys_file or keys_url"),
        ({"keys_file": "", "keys_url": "http://i.example/keys"}, "keys_url must be https"),
        ({"keys_file": "", "keys_url": "http://127.0.0.1.evil.example/"}, "must be https"),
        ({"keys_file": "", "keys_url": "http://localhost@evil.example/"}, "must be https"),
        ({"keys_file": "", "keys_url": "file:///etc/passwd"}, "keys_url"),
        ({"audiences": []}, "audiences"),
        ({"algorithms": []}, "algorithms"),
        ({"algorithms": ["none"]}, "algorithms"),
        ({"algorithms": ["HS256"]}, "algorithms"),
        ({"leeway": "1h"}, "leeway"),
        ({"issuer": ""}, "issuer"),
    ],
)
def test_an_issuer_that_cannot_be_trusted_is_refused(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(jwt=[{**ISSUER, **entry}])
    assert said in str(caught.value.problems[0])


@pytest.mark.parametrize("url", ["https://i.example/keys", "http://127.0.0.1:8080/keys"])
def test_keys_come_from_afar_encrypted_only(url: str) -> None:
    settings = loaded(jwt=[{**ISSUER, "keys_file": "", "keys_url": url}])
    [rules] = server_options(settings).issuers
    assert (rules.keys_url, rules.leeway_s, rules.refresh_s) == (url, 30, 600)
    assert rules.algorithms == ("RS256", "ES256")


def test_an_issuer_is_given_once() -> None:
    with pytest.raises(SettingsError, match="given twice"):
        loaded(jwt=[ISSUER, {**ISSUER, "keys_file": "other.json"}])


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({}, "give one of uri, dns and common_name"),
        ({"uri": "a", "dns": "b", "tenant": "c"}, "give one of uri, dns and common_name"),
        ({"uri": "spiffe://a"}, "name the tenant once"),
        ({"uri": "spiffe://{tenant}", "tenant": "acme"}, "name the tenant once"),
        ({"dns": "{tenant}.{tenant}"}, "name the tenant once"),
    ],
)
def test_a_rule_says_once_whose_certificate_it_is(entry: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        loaded(certificates=[entry])


def test_rules_of_certificates_need_an_authority() -> None:
    rules = {"auth.certificates": [{"dns": "{tenant}.example", "role": "operator"}]}
    settings = load_settings(None, rules, {})
    [found] = [one for one in config_lint(settings) if one.status == "error"]
    assert found.name == "server.tls.client_ca_file"
    complete = load_settings(None, {**rules, "server.tls": FILES}, {})
    [rule] = server_options(complete).certificates
    assert (rule.kind, rule.pattern, rule.tenant, rule.role) == (
        "dns",
        "{tenant}.example",
        "",
        "operator",
    )


def test_any_credentials_open_an_address_with_tls() -> None:
    for auth in ({"jwt": [ISSUER]}, {"certificates": [{"dns": "{tenant}.x", "role": "operator"}]}):
        flags = {f"auth.{name}": value for name, value in auth.items()}
        settings = load_settings(
            None, {"server.address": "0.0.0.0:1", "server.tls": FILES, **flags}, {}
        )
        [found] = [one for one in config_lint(settings) if one.name == "server.address"]
        assert (found.status, "with TLS and" in found.found) == ("ok", True)
