"""Secrets: environment variables named ENGINE_SECRET_*, and the one scrubber that keeps them out of texts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from urllib.parse import quote

PREFIX = "ENGINE_SECRET_"
MASK = "*****"
# Shorter values would mask ordinary words and numbers everywhere (and an empty one everything).
MIN_LENGTH = 4
_LONG_LINE = 16


def secret_values(env: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The texts to hide, longest first, so that a secret inside another one leaves no rest."""
    environment = os.environ if env is None else env
    values = {v for k, v in environment.items() if k.startswith(PREFIX) and len(v) >= MIN_LENGTH}
    return tuple(sorted({form for value in values for form in _forms(value)}, key=len, reverse=True))


def _forms(value: str) -> Iterator[str]:
    """A secret as it is, as JSON, Python and an address write it, and each long line of one that has several."""
    yield from (value, json.dumps(value)[1:-1], repr(value)[1:-1], quote(value, safe=""))
    lines = value.splitlines()
    if len(lines) > 1:
        # A key in PEM is told of line by line, or in part; its first and last line are no secret.
        yield from (line for line in lines if len(line) >= _LONG_LINE and not line.startswith("-----"))


def scrub(text: str, env: Mapping[str, str] | None = None) -> str:
    """The text with every secret value replaced by a mask."""
    for value in secret_values(env):
        text = text.replace(value, MASK)
    return text
