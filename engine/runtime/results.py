"""target/run_results.json, in the shape of dbt's artifact, made from the fold of the events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine import __version__
from engine.events import ModelFinished, RunResults, TestFinished
from engine.secrets import scrub

FILE = "run_results.json"


def write_results(results: RunResults, folder: Path) -> Path:
    """Write the results of a run."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    temporary = path.with_suffix(".tmp")
    temporary.write_text(scrub(json.dumps(as_dict(results), indent=1)), encoding="utf-8")
    temporary.replace(path)
    return path


def read_results(folder: Path) -> Mapping[str, Any] | None:
    """What `write_results` wrote last; None if there is nothing, or nothing that can be read."""
    try:
        known = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return known if isinstance(known, dict) else None


def as_dict(results: RunResults) -> dict[str, Any]:
    """The artifact's content."""
    return {
        "metadata": {
            "dbt_schema_version": "https://schemas.getdbt.com/dbt/run-results/v6.json",
            "generated_at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "invocation_id": results.run_id,
            "invocation_started_at": results.started_at,
            "headrace_version": __version__,
        },
        "args": {"which": results.command, "target": results.target},
        "elapsed_time": round(results.seconds, 3),
        "results": [_result(r) for r in results.results],
        "diagnostics": [d.to_dict() for d in results.diagnostics],
    }


def _result(result: ModelFinished | TestFinished) -> dict[str, Any]:
    common: dict[str, Any] = {
        "unique_id": result.node,
        "status": result.status.value,
        "execution_time": round(result.seconds, 3),
        "message": result.message or None,
        "thread_id": "",
        "timing": [],
        "compiled": True,
        "failures": None,
        "adapter_response": {},
    }
    if isinstance(result, TestFinished):
        return {**common, "failures": result.failures}
    numbers = {
        "rows_in": result.rows_in,
        "rows_out": result.rows_out,
        "late": result.late,
        "state_rows": result.state_rows,
        "batches": result.batches,
        "watermark": result.watermark,
        "snapshot_id": result.snapshot_id,
    }
    return {**common, "relation_name": result.relation, "adapter_response": numbers}
