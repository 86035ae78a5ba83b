"""Freshness of sources: target/sources.json in the shape of dbt's version 3, written and read back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from engine.compile.artifacts.dbt_manifest import own_id, unique_id
from engine.compile.artifacts.write_artifacts import artifact_metadata, write_text
from engine.docs.site import format_values
from engine.target_folder import TargetFolder

FILE = "sources.json"


class Fresh(StrEnum):
    PASS = "pass"  # noqa: S105 (no password)
    WARN = "warn"
    ERROR = "error"
    FAILED = "runtime error"


@dataclass(frozen=True, slots=True)
class AgeBound:
    count: int
    period: str

    def __str__(self) -> str:
        return f"{self.count:,} {self.period}{'' if self.count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class FreshnessStatus:
    """The result of checking a source.

    `newest`: the newest time in `loaded_at_field`; None: there is none, or it could not be read. `filter`: SQL
    condition on the rows that counted.
    """

    source: str
    status: Fresh
    looked_at: datetime
    newest: datetime | None = None
    warn_after: AgeBound | None = None
    error_after: AgeBound | None = None
    seconds: float = 0.0
    error: str = ""
    filter: str | None = None


def write_freshness(statuses: Iterable[FreshnessStatus], folder: Path, project: str, seconds: float) -> Path:
    """Write sources.json; `seconds` is how long it took in all."""
    return write_text(folder, FILE, freshness_text(statuses, project, seconds))


def freshness_text(statuses: Iterable[FreshnessStatus], project: str, seconds: float) -> str:
    """The content of sources.json; `seconds` is how long it took in all."""
    results = [_result(freshness, project) for freshness in statuses]
    record = {"metadata": artifact_metadata("sources/v3"), "results": results, "elapsed_time": round(seconds, 3)}
    return json.dumps(record, indent=1)


def _result(status: FreshnessStatus, project: str) -> dict[str, Any]:
    name = unique_id(status.source, project)
    if status.status is Fresh.FAILED or status.newest is None:
        return {"unique_id": name, "status": Fresh.FAILED.value, "error": status.error or "there is no row"}
    return {
        "unique_id": name,
        "status": status.status.value,
        "max_loaded_at": status.newest.isoformat(),
        "snapshotted_at": status.looked_at.isoformat(),
        "max_loaded_at_time_ago_in_s": (status.looked_at - status.newest).total_seconds(),
        "criteria": {
            "warn_after": _bound(status.warn_after),
            "error_after": _bound(status.error_after),
            "filter": status.filter,
        },
        "adapter_response": {},
        "timing": [],
        "thread_id": "",
        "execution_time": round(status.seconds, 3),
    }


def _bound(bound: AgeBound | None) -> dict[str, Any]:
    return {"count": bound.count if bound else None, "period": bound.period if bound else None}


def read_freshness(folder: Path) -> dict[str, FreshnessStatus]:
    """What `write_freshness` wrote last, by the sources' ids; empty if there is nothing that can be read."""
    with TargetFolder(folder) as target:
        content = target.read(FILE)
    try:
        document = json.loads(content or b"")
    except (ValueError, RecursionError):
        return {}
    listed = document.get("results") if isinstance(document, dict) else None
    results = (_read(item) for item in listed if isinstance(item, dict)) if isinstance(listed, list) else ()
    return {status.source: status for status in results if status}


def _read(item: Mapping[str, Any]) -> FreshnessStatus | None:
    name, status = item.get("unique_id"), item.get("status")
    looked_at = format_values.instant(item.get("snapshotted_at")) or datetime.fromtimestamp(0).astimezone()
    if not isinstance(name, str) or status not in set(Fresh):
        return None
    criteria = item.get("criteria")
    bounds = criteria if isinstance(criteria, dict) else {}
    error = item.get("error")
    return FreshnessStatus(
        own_id(name),
        Fresh(status),
        looked_at,
        format_values.instant(item.get("max_loaded_at")),
        _read_bound(bounds.get("warn_after")),
        _read_bound(bounds.get("error_after")),
        error=error if isinstance(error, str) else "",
    )


def _read_bound(bound: Any) -> AgeBound | None:
    count, period = (bound.get("count"), bound.get("period")) if isinstance(bound, dict) else (None, None)
    return AgeBound(count, period) if isinstance(count, int) and isinstance(period, str) else None
