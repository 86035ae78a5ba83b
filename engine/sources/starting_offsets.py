"""The time with which a stream begins."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def starting_milliseconds(said: Mapping[str, Any]) -> int | None:
    """`starting_timestamp` of a source in milliseconds; None if it is not a timestamp."""
    return milliseconds(str(said["starting_timestamp"]))


def milliseconds(text: str) -> int | None:
    """A time in milliseconds since 1970, UTC unless it says another zone; None if it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
