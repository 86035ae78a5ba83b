"""target/runs.json: the last runs in short, and the last finished result of each node that the last run did not finish.

run_results.json has one run, as in dbt: after an interrupted build, or a build of a part, it has no rows of the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from engine.compile.artifacts.write_artifacts import write_text
from engine.events import Status
from engine.target_folder import TargetFolder

FILE = "runs.json"
_MOST_RUNS = 20
# Results of all runs together; older runs go first.
_MOST_RESULTS = 20_000
# Warnings and errors of a run.
_MOST_DIAGNOSTICS = 200
_DETAILS = (
    "kind", "rows_out", "rows_updated", "rows_deleted", "late", "quarantined", "batches", "bad_records",
    "failed_checks", "note", "deferred", "snapshot_id",
)  # fmt: skip
_UNFINISHED = frozenset({Status.SKIPPED.value, Status.ERROR.value})


def note_run(document: Mapping[str, Any], previous_results: Mapping[str, Any] | None, folder: Path) -> None:
    """Add a run, as run_results.json has it, to the history; `previous_results` is what that file had before."""
    history = read_history(folder)
    finished = {**history["finished"], **_finished(_results(previous_results or {}))}
    for name in _finished(_results(document)):
        finished.pop(name, None)
    runs = _newest([_run(document), *history["runs"]])
    write_text(folder, FILE, json.dumps({"runs": runs, "finished": finished}, separators=(",", ":"), default=str))


def read_history(folder: Path) -> dict[str, Any]:
    """Return what `note_run` wrote: `runs`, the newest first, and `finished`, results by dbt's names of their nodes."""
    with TargetFolder(folder) as target:
        content = target.read(FILE)
    try:
        document = json.loads(content or b"")
    except (ValueError, RecursionError):
        document = None
    history = document if isinstance(document, dict) else {}
    runs, finished = history.get("runs"), history.get("finished")
    return {
        "runs": runs if isinstance(runs, list) else [],
        "finished": finished if isinstance(finished, dict) else {},
    }


def _results(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    listed = document.get("results")
    if not isinstance(listed, list):
        return []
    return [item for item in listed if isinstance(item, dict) and isinstance(item.get("unique_id"), str)]


def _finished(results: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {item["unique_id"]: item for item in results if item.get("status") not in _UNFINISHED}


def _run(document: Mapping[str, Any]) -> dict[str, Any]:
    metadata, arguments = document["metadata"], document["args"]
    diagnostics = [*(arguments.get("diagnostics") or ())]
    diagnostics += [one for item in _results(document) for one in _response(item).get("diagnostics") or ()]
    return {
        "id": metadata.get("invocation_id"),
        "started_at": metadata.get("invocation_started_at"),
        "at": metadata.get("generated_at"),
        "command": arguments.get("which"),
        "target": arguments.get("target"),
        "seconds": document.get("elapsed_time"),
        "results": [_result(item) for item in _results(document)],
        "diagnostics": diagnostics[:_MOST_DIAGNOSTICS],
        "more_diagnostics": max(0, len(diagnostics) - _MOST_DIAGNOSTICS),
    }


def _response(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return item.get("adapter_response") or {}


def _result(item: Mapping[str, Any]) -> list[Any]:
    """Name, status, begin and end (seconds since 1970), rows in and out, message, table, details of the response."""
    response = _response(item)
    ends = [timing["completed_at"] for timing in item.get("timing") or () if timing.get("completed_at")]
    end = round(datetime.fromisoformat(ends[0]).timestamp(), 3) if ends else None
    begin = None if end is None else round(end - (item.get("execution_time") or 0), 3)
    status = Status.UNCHANGED.value if response.get("unchanged") is True else item["status"]
    return [
        item["unique_id"], status, begin, end, response.get("rows_in"), response.get("rows_out"), item.get("message"),
        item.get("relation_name"), {key: response[key] for key in _DETAILS if response.get(key)},
    ]  # fmt: skip


def _newest(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    newest_runs: list[dict[str, Any]] = []
    results = 0
    for run in runs[:_MOST_RUNS]:
        results += len(run.get("results") or ()) if isinstance(run, dict) else 0
        if newest_runs and results > _MOST_RESULTS:
            break
        newest_runs.append(run)
    return newest_runs
