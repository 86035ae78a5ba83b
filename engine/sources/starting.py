"""The time with which a stream of a source begins."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def starting_milliseconds(said: Mapping[str, Any]) -> int | None:
    """`starting_timestamp` in milliseconds since 1970, UTC unless it says another zone; None if it is no time."""
    try:
        moment = datetime.fromisoformat(str(said["starting_timestamp"]))
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
