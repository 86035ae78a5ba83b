"""The scrubber: every way in which a secret is written, and nothing that is none."""

from __future__ import annotations

import json
from urllib.parse import quote_plus

import pytest

from engine.secrets import MASK, scrub

PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASCBKcwggSjAgEAAoIBAQC7\nxy==\n-----END PRIVATE KEY-----\n"
VALUES = ["plain-value", 'with "quotes" and \\', "päss wörd/%?", "a\nb\nlonger text", "<b>&'x'</b>"]


@pytest.mark.parametrize("value", VALUES)
def test_a_secret_is_masked_in_each_form(value: str) -> None:
    env = {"ENGINE_SECRET_A": value}
    forms = [value, json.dumps(value), repr(value), f"https://u:{quote_plus(value).replace('+', '%20')}@h"]
    for form in forms:
        text = scrub(f"before {form} after", env)
        assert MASK in text
        assert value not in text
        assert quote_plus(value) not in text
        assert text.startswith("before ")
        assert text.endswith(" after")


def test_a_key_is_masked_line_by_line() -> None:
    env = {"ENGINE_SECRET_KEY": PEM}
    for line in PEM.splitlines()[1:3]:
        assert scrub(f"cannot read '{line}'", env) == f"cannot read '{MASK}'"
    # These are in every key, and the last line is too short to be told from other text.
    assert scrub("-----BEGIN PRIVATE KEY----- xy==", env) == "-----BEGIN PRIVATE KEY----- xy=="


def test_the_longer_of_two_secrets_goes_first_and_short_values_spoil_no_text() -> None:
    env = {"ENGINE_SECRET_A": "abcd", "ENGINE_SECRET_B": "xabcdx", "ENGINE_SECRET_C": "", "ENGINE_SECRET_D": "the"}
    assert scrub("xabcdx, abcd, the", env) == f"{MASK}, {MASK}, the"
    assert scrub("abcd", {"ANOTHER": "abcd"}) == "abcd"
