"""The time with which a stream begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from engine.sources.spec import SourceSpec

# What a declaration says of where a stream begins.
_STARTS = {"starting_offsets", "starting_timestamp", "starting_snapshot"}


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


def begun_at(spec: SourceSpec, at: int | None) -> SourceSpec:
    """Return the source with a stream that begins at a time in milliseconds since 1970, whatever it declares."""
    settings = {key: value for key, value in spec.settings.items() if key not in _STARTS}
    if at is not None:
        settings["starting_timestamp"] = datetime.fromtimestamp(at / 1000, UTC).isoformat()
    return replace(spec, settings=settings)
