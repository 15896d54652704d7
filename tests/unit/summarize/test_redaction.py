"""No secret leaves with a text, whatever it is called, wherever it stands and whatever surrounds
it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextengine_server.summarize import redaction
from contextengine_server.summarize.redaction import MARK, redact, redact_all

DATA = Path(__file__).parents[2] / "data"
BODY = "\n".join(["MIIEpAIBAAKCAQEAx7f3kQ2mN8sLw0pYt5uVbJzR1cXe9dHgKqAoWn4TiS6yUlFb"] * 3)

# (text, what must not be left of it)
SECRETS = [
    ("key is sk-proj-AbCdEf0123456789GhIjKl", "AbCdEf0123456789GhIjKl"),
    ("sk-ant-api03-AAAAbbbb-CCCCdddd1234EEEEffff-xyz", "AAAAbbbb"),
    ("sk-or-v1-0123456789abcdef0123456789abcdef", "0123456789abcdef"),
    ("STRIPE sk_live_51HabcdefGHIJKLmnop", "51HabcdefGHIJKLmnop"),
    ("pushed with ghp_0123456789abcdefABCDEF0123456789abcd", "0123456789abcdef"),
    ("github_pat_11ABCDEFG0aBcDeFgHiJkL_mnop", "11ABCDEFG0aBcDeFgHiJkL"),
    ("glpat-abcDEF123456_7890xyz", "abcDEF123456"),
    ("xoxb-123456789012-abcdefABCDEF", "abcdefABCDEF"),
    ("https://hooks.slack.com/services/T00000000/B00000000/XXXXabcdXXXX", "XXXXabcdXXXX"),
    ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLE"),
    ("AIzaSyA-1234567890abcdefghijklmnopqrstu", "1234567890abcdef"),
    ("npm_abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghijklmnop"),
    ("hf_AbCdEfGhIjKlMnOpQrStUv", "AbCdEfGhIj"),
    ("bot 123456789:AAabcdefghijklmnopqrstuvwxyz0123456", "AAabcdefghijkl"),
    (
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        "dozjgNryP4J3jVmNHl0w5N",
    ),
    (f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----", BODY[:40]),
    (f"-----BEGIN OPENSSH PRIVATE KEY-----\n{BODY}", BODY[:40]),
    (f"…{BODY}\n-----END PRIVATE KEY-----", BODY[70:110]),
    (
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,8B5C\n\n"
        + BODY,
        BODY[:40],
    ),
    (
        f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{BODY}\n-----END PGP PRIVATE KEY BLOCK-----",
        BODY[:40],
    ),
    (
        json.dumps(
            {"pem": f"-----BEGIN EC PRIVATE KEY-----\n{BODY}\n-----END EC PRIVATE KEY-----"}
        ),
        BODY[:40],
    ),
    (json.dumps(json.dumps({"pem": f"-----BEGIN PRIVATE KEY-----\n{BODY}"})), BODY[:40]),
    ("postgres://bob:hunter2@db.example/app", "hunter2"),
    ("postgresql+asyncpg://bob:p@ss/w0rd@db/app", "w0rd"),
    ("mongodb+srv://admin:S3cr3t!@cluster0.example.net/?retryWrites=true", "S3cr3t!"),
    ("redis://:hunter2@cache:6379/0", "hunter2"),
    ("https://bob:hunter2@example.com/x", "hunter2"),
    ("git clone https://x0123456789abcdefghij@example.com/r.git", "x0123456789abcdefghij"),
    ("Server=db;Database=app;User Id=sa;Password=Pa55w0rd!;Encrypt=true", "Pa55w0rd"),
    ("Authorization: Bearer abc.def-123", "abc.def-123"),
    ('curl -H "Authorization: Basic Ym9iOmh1bnRlcjI="', "Ym9iOmh1bnRlcjI"),
    ("{'Authorization': 'Token 9944b09199c62bcf'}", "9944b09199c62bcf"),
    ("bearer mF_9.B5f-4.1JqM1234", "mF_9.B5f"),
    ("Cookie: session=abcdef; csrf=123456", "123456"),
    ("set-cookie: sid=s%3Aabcdef; Path=/", "s%3Aabcdef"),
    ("X-Api-Key: 0a1b2c3d", "0a1b2c3d"),
    ("mysql --password hunter2 -u root", "hunter2"),
    ("deploy --api-key=abc --token 'x y z1'", "x y z1"),
    ("curl -u bob:hunter2 https://example.com", "hunter2"),
    ("sshpass -p hunter2 ssh host", "hunter2"),
    ("OPENAI_API_KEY=abc", "abc"),
    ("export DB_PASS=ab\"c'd;e rest", "c'd;e"),
    ("ENCRYPTION_KEY_2 = 'k k k'", "k k k"),
    ("STRIPE_KEY: rk", "rk"),
    ("GITHUB_TOKEN=abcdefgh", "abcdefgh"),
    ("password: hunter", "hunter"),
    ("password=1234", "1234"),
    ('{"password": "hun\\"ter2", "user": "bob"}', "ter2"),
    ('{\\"password\\": \\"hun\\\\\\"ter2\\", \\"user\\": 1}', "ter2"),
    ("{'client_secret': 'it\\'s 5 o clock'}", "5 o clock"),
    ('db.password="unclosed until the line ends', "line ends"),
    ('config["api_key"] = "abc def"', "abc def"),
    ("apiKey: `abc`", "abc"),
    ("access_token := abc123", "abc123"),
    ("secretAccessKey => wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "K7MDENG"),
    ("AccountName=x;AccountKey=Zm9vYmFyCg==;EndpointSuffix=core", "Zm9vYmFyCg"),
    ("//registry.example/:_authToken=abcd-ef", "abcd-ef"),
    ("<password>hunter2</password>", "hunter2"),
    ('<add key="ApiKey" value="hunter2"/>', "hunter2"),
    ("https://example.com/x?sig=abcDEF0123456789&v=1", "abcDEF0123456789"),
    ("https://example.com/?access_token=abcdef&x=1", "abcdef"),
    ("stripe_key: abcdefABCDEF0123456789", "abcdefABCDEF0123456789"),
    ("the password is hunter2, keep it", "hunter2"),
    ('my API key is "letmein"', "letmein"),
    ("密码：hunter2", "hunter2"),
    ("Passwort: Sonnenschein", "Sonnenschein"),
    # What could hide it.
    ("API_\u200bKEY=abc and sk-\u2060proj-AbCdEf0123456789GhIj", "AbCdEf0123456789"),
    ("\x1b[31mAPI_KEY\x1b[0m=\x1b[1mabcdef\x1b[0m", "abcdef"),
    ("pass\x00word=hunter2", "hunter2"),
    ("PASSWORD=$ecret123", "ecret123"),
    (f"PASSWORD={MARK}hunter2", "hunter2"),
    ("PASSWORD=sk-AbCdEf0123456789GhIj:hunter2", "hunter2"),
    ("\ud800 token=abc\udfff1", "abc"),
]

HARMLESS = [
    "",
    "The token count is 1200, max_tokens=4096, tokens: 300, token: 42",
    "author: Bob, tokenizer: gpt2, secretary: Ann, keyboard=de, monkey: yes",
    "commit 9944b09199c62bcf9418ad846dd0e4bbdfc6ee4b touched src/auth/token.py",
    'api_key = os.environ["OPENAI_API_KEY"]',
    "password: str, token: Optional, secret: None",
    "api_key: ${{ secrets.KEY }}, token=$TOKEN, password=<your password>, API_KEY=...",
    "const apiKey = await load()",
    "The password is wrong. No credentials: every caller is refused.",
    "basic understanding of bearer instruments",
    "PRIMARY_KEY=id FOREIGN_KEY: other sort_key: created_at",
    "https://medium.com/@user/post and http://127.0.0.1:8080/a@b",
    "mail bob@example.com, see https://example.com/?q=key&page=2",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "用户要求修改密码页面。",
    "नमस्ते \u200d\u200c 👩\u200d💻",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_gone(text: str, secret: str) -> None:
    for shown in (text, f"before {text} after", f"a\n{text}\nb", "\n".join([text] * 3)):
        redacted = redact(shown)
        assert secret not in redacted, redacted
        assert MARK in redacted


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_is_left(text: str) -> None:
    assert redact(text) == text


def test_what_stands_around_a_secret_is_left() -> None:
    assert redact('{"password": "x1", "user": "bob"}') == '{"password": [redacted], "user": "bob"}'
    assert (
        redact("postgres://bob:x1@db/app?sslmode=on")
        == "postgres://bob:[redacted]@db/app?sslmode=on"
    )
    assert redact("a\nAuthorization: Bearer x1\nb") == "a\nAuthorization: [redacted]\nb"
    assert redact("export A_KEY=x1 && run") == "export A_KEY=[redacted] && run"


TEXTS = st.lists(
    st.sampled_from([text for text, _ in SECRETS] + HARMLESS + list("\"'\\`:=@ \n<>[]{}-_?&"))
    | st.text(max_size=8),
    max_size=6,
).map("".join)


@settings(deadline=None, max_examples=300)
@given(TEXTS)
def test_what_one_look_passes_has_nothing_for_any_rule(text: str) -> None:
    by_rules = text.encode("utf-8", "replace").decode("utf-8")
    for pattern, replacement in redaction._compiled():
        by_rules = pattern.sub(replacement, by_rules)
    assert redact(text) == by_rules


@settings(deadline=None, max_examples=300)
@given(st.lists(st.one_of(TEXTS, st.sampled_from([text for text, _ in SECRETS])), max_size=5))
def test_many_texts_lose_together_what_each_loses_by_itself(texts: list[str]) -> None:
    """However they follow each other, and whatever of a secret stands at an edge."""
    assert redact_all(texts) == [redact(text) for text in texts]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_among_other_texts_is_gone(text: str, secret: str) -> None:
    before, clean, after = redact_all(["word", text, "word"])
    assert (before, after) == ("word", "word")
    assert secret not in clean


@given(TEXTS)
def test_no_text_makes_it_fail(text: str) -> None:
    redacted = redact(f"{text}\nAPI_KEY=hunter2\n{text}")
    assert "API_KEY=hunter2" not in redacted
    assert redacted.encode()


@pytest.mark.parametrize(
    "piece",
    [
        "-----BEGIN PRIVATE KEY-----",
        "A" * 60 + "\n",
        'password: "\\',
        '"token\\":\\"a\\\\\\"',
        "a://b:c@",
        "password=",
        "cookie: ",
        "A_",
        "<password ",
        " ",
        "a",
    ],
)
def test_a_megabyte_that_never_comes_to_its_end_is_still_redacted(piece: str) -> None:
    # A pattern that tried again at each of these would take hours.
    text = (piece * (1_000_000 // len(piece) + 1))[:1_000_000] + "\nAPI_KEY=hunter2"
    assert "hunter2" not in redact(text)


def test_real_conversations_lose_next_to_nothing() -> None:
    texts = (DATA / "airline_transcripts.jsonl").read_text(encoding="utf-8")
    assert redact(texts) == texts
    coding = (DATA / "coding_session.pi.jsonl").read_text(encoding="utf-8")
    assert redact(coding).count(MARK) < 30
