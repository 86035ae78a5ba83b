"""The scrubber finds a secret in every spelling that texts give it, and nothing that is none."""

from __future__ import annotations

import html
import json
import shlex
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus

import pytest
import yaml

from engine.secrets import scrubber as secrets
from engine.secrets.scrubber import MASK, names_credential, names_secret_setting, register_settings, scrub

VALUES = [
    "plain-value-1", 'with "quotes" and \\', "päss wörd/%?", "<b>&'x'</b>;$HOME", "a+b=c/d:e#f!g", " spaces around it", "tab\tand\nline",
    "Ünïcödé 😀 text", "{{braces}}%s", "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
]  # fmt: skip
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASCBKcwggSjAgEAAoIBAQC7\nxy==\n-----END PRIVATE KEY-----\n"


def properties(text: str) -> str:
    escaped = "".join(
        f"\\{c}" if c in ":=#! \\" else c if c.isascii() else "".join(f"\\u{u:04X}" for u in units(c)) for c in text
    )
    return escaped.replace("\n", "\\n").replace("\t", "\\t")


def units(c: str) -> list[int]:
    data = c.encode("utf-16-be")
    return [int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2)]


def b64(text: str) -> str:
    return b64encode(text.encode()).decode()


FORMS = {
    "as it is": lambda v: v,
    "stripped": str.strip,
    "JSON": json.dumps,
    "JSON with all characters": lambda v: json.dumps(v, ensure_ascii=False),
    "JSON in JSON": lambda v: json.dumps(json.dumps(v)),
    "Python": repr,
    "bytes": lambda v: repr(v.encode()),
    "ascii": ascii,
    "address": lambda v: quote(v, safe=""),
    "address with slashes": quote,
    "form": quote_plus,
    "address in lower case": lambda v: quote(v, safe="").replace("%C3", "%c3").replace("%2F", "%2f").replace("%3C", "%3c"),
    "address in an address": lambda v: quote(quote(v, safe=""), safe=""),
    "HTML": html.escape,
    "HTML by numbers": lambda v: "".join(c if c.isalnum() and c.isascii() else f"&#{ord(c)};" for c in v),
    "HTML by hexadecimal numbers": lambda v: "".join(c if c.isalnum() and c.isascii() else f"&#x{ord(c):X};" for c in v),
    "YAML": lambda v: yaml.safe_dump({"a": v}),
    "YAML with all characters": lambda v: yaml.safe_dump({"a": v}, allow_unicode=True, width=20),
    "YAML in quotes": lambda v: yaml.safe_dump({"a": v}, default_style='"', width=1000),
    "shell": shlex.quote,
    "SQL": lambda v: "'" + v.replace("'", "''") + "'",
    "names in SQL": lambda v: '"' + v.replace('"', '""') + '"',
    "backslashes": lambda v: v.replace("\\", "\\\\").replace("'", "\\'").replace('"', '\\"'),
    "properties": properties,
    "JAAS": lambda v: 'password="' + v.replace("\\", "\\\\").replace('"', '\\"') + '";',
    "upper case": str.upper,
    "lower case": str.lower,
    "hexadecimal": lambda v: v.encode().hex(),
    "HEXADECIMAL": lambda v: v.encode().hex().upper(),
    "base64": b64,
    "base64 for addresses": lambda v: urlsafe_b64encode(v.encode()).decode(),
    "base64 without padding": lambda v: b64(v).rstrip("="),
    "Basic": lambda v: "Basic " + b64(f"user:{v}"),
    "base64 behind one": lambda v: b64(f"x{v}y"),
    "base64 behind two": lambda v: b64(f"xy{v}zzz"),
    "base64 behind three": lambda v: b64(f"xyz{v}"),
    "base64 in an address": lambda v: quote(b64(v), safe=""),
    "base64 in JSON of PHP": lambda v: b64(v).replace("/", "\\/"),
    "of two": lambda v: f"{v}{v}",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_masked_in_each_spelling(form, value):
    written = FORMS[form](value)
    text = scrub(f"before\n{written}\nafter", {"ENGINE_SECRET_A": value})
    assert MASK in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter")
    kept = text.removeprefix("before\n").removesuffix("\nafter").replace(MASK, "")
    assert len(kept) <= 14 if "base64" in form or form == "Basic" else len(kept.strip()) <= 14, kept
    assert value.strip() not in text
    assert written.strip() not in text


@pytest.mark.parametrize("form", ["JSON", "bytes", "YAML", "base64", "Basic", "address"])
def test_a_key_in_pem_is_masked_whole_and_line_by_line(form):
    text = scrub(FORMS[form](PEM), {"ENGINE_SECRET_A": PEM})
    assert MASK in text
    assert "MIIEvQ" not in text
    assert "AASCBK" not in text
    assert "TUlJRXZR" not in text


def test_lines_that_every_key_has_and_short_ones_stay():
    text = "-----BEGIN PRIVATE KEY----- xy=="
    assert scrub(text, {"ENGINE_SECRET_A": PEM}) == text


def test_the_longer_of_two_secrets_goes_first():
    assert scrub("xabcdx, abcd", {"ENGINE_SECRET_A": "abcd", "ENGINE_SECRET_B": "xabcdx"}) == f"{MASK}, {MASK}"
    assert scrub("abcd", {"ANOTHER": "abcd"}) == "abcd"


def test_text_without_a_secret_stays_as_it_is():
    env = {"ENGINE_SECRET_A": "the", "ENGINE_SECRET_B": "", "ENGINE_SECRET_C": "   ", "ENGINE_SECRET_D": "Password1"}
    text = "select the password from passwords where pass word 1 = 'the' -- Passwords 10"
    assert scrub(text, env) == text


def test_the_password_of_an_address_is_masked_in_any_text():
    text = (
        "jdbc:postgresql://reader:pa$$:w0rd@db:5432/x and s3a://key:secret@bucket; http://h:8080/a@b mail@example.org"
    )
    expected = (
        f"jdbc:postgresql://reader:{MASK}@db:5432/x and s3a://key:{MASK}@bucket; http://h:8080/a@b mail@example.org"
    )
    assert scrub(text, {}) == expected


def test_settings_that_say_they_are_secret_are_masked_once_they_are_used(monkeypatch):
    monkeypatch.setattr(secrets, "_registered", frozenset())
    register_settings({
        "url": "https://user:in-an-address@host/x",
        "security": {"username": "the-user-name", "password": "first-password", "key": "the-key-itself", "ca": "a-certificate"},
        "options": [{"fs.s3a.secret.key": "second-password", "api_key": "third-password", "topic": "some-topic", "token": "short"}],
    })  # fmt: skip
    for hidden in ("in-an-address", "first-password", "second-password", "third-password", "the-key-itself"):
        assert scrub(f"a {hidden} b") == f"a {MASK} b"
        assert scrub(b64(f"user:{hidden}")) != b64(f"user:{hidden}")
    for shown in ("the-user-name", "some-topic", "short", "a-certificate"):
        assert scrub(shown) == shown


@pytest.mark.parametrize(
    "name", ["A_TOKEN", "TOKEN", "DB_PASSWORD", "db_pwd", "SECRET_KEY", "API_KEY", "SSH_KEY", "CREDENTIALS_FILE"]
)
def test_names_of_credentials(name):
    assert names_credential(name)


@pytest.mark.parametrize(
    "key", ["password", "ssl.key.password", "fs.azure.account.key.x", "sasl.jaas.config", "apiKey", "key", "passphrase"]
)
def test_names_of_secret_settings(key):
    assert names_secret_setting(key)


@pytest.mark.parametrize(
    "key",
    [
        "username",
        "topic",
        "keys",
        "primary_key",
        "bootstrap_servers",
        "ca",
        "fs.s3a.aws.credentials.provider",
        "oauthTokenFile",
    ],
)
def test_names_of_other_settings(key):
    assert not names_secret_setting(key)


@pytest.mark.slow
def test_long_texts_of_one_kind_take_no_longer_than_their_length():
    env = {"ENGINE_SECRET_A": "aaaa aaaa", "ENGINE_SECRET_B": "\\" * 20, "ENGINE_SECRET_C": "' \" ' \" '"}
    for text in (
        "a " * 200_000,
        "\\" * 100_000,
        " " * 200_000,
        "' \" " * 50_000,
        "://" * 100_000 + "@",
        "://a:" * 50_000 + "@",
        "+" * 100_000,
    ):
        assert scrub(text + "x", env).endswith("x")
