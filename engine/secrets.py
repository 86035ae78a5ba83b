"""Secrets: environment variables named ENGINE_SECRET_*, and the one scrubber that keeps them out of texts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

PREFIX = "ENGINE_SECRET_"
MASK = "*****"
# Shorter values would mask ordinary words and numbers everywhere (and an empty one everything).
MIN_LENGTH = 4


def secret_values(env: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The values to hide, longest first, so that a secret inside another one leaves no rest; also as JSON has them."""
    environment = os.environ if env is None else env
    values = {v for k, v in environment.items() if k.startswith(PREFIX) and len(v) >= MIN_LENGTH}
    return tuple(sorted(values | {json.dumps(v)[1:-1] for v in values}, key=len, reverse=True))


def scrub(text: str, env: Mapping[str, str] | None = None) -> str:
    """The text with every secret value replaced by a mask."""
    for value in secret_values(env):
        text = text.replace(value, MASK)
    return text
