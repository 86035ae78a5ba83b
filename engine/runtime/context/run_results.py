"""target/run_results.json in the shape of dbt's version 6, made from the fold of the events.

What dbt has no word for is under `adapter_response`: the numbers of a stream, its last micro-batches (`progress`),
`unchanged` where there was nothing new (dbt's status is then `success`), `cached` for a test of which an earlier pass
counts. What is of no node of the run is under `args`.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from engine.compile import Manifest, Model, Target
from engine.compile.artifacts.dbt_manifest import unique_id
from engine.compile.artifacts.write_artifacts import artifact_metadata, write_text
from engine.errors import Diagnostic
from engine.events import (
    BatchCommitted,
    Event,
    Finished,
    ModelFinished,
    Outcome,
    RunResults,
    SinkFinished,
    Status,
    TestFinished,
    fold,
)
from engine.plan import Plan
from engine.plan.actions.action import run_order
from engine.plan.deployed.state_folder import table_state
from engine.runtime.context.run_history import note_run
from engine.target_folder import TargetFolder

FILE = "run_results.json"
_CUT = "because the run was interrupted"
# As many micro-batches of a model are kept; a chart shows no more.
_PROGRESS_LENGTH = 100
_MERGED = ("rows_updated", "rows_deleted")
_REMOVED = ("skipped", "bad_records", "failed_checks", "quarantined")
_NUMBERS = (
    "rows_in", "rows_out", *_MERGED, "late", "duplicates", *_REMOVED, "state_rows", "batches", "watermark",
    "event_times", "snapshot_id", "note",
)  # fmt: skip
_PROGRESS = (
    "batch_id", "rows_in", "rows_out", *_MERGED, "late", "duplicates", *_REMOVED, "state_rows", "watermark",
    "seconds", "replayed",
)  # fmt: skip


def write_results(
    results: RunResults,
    folder: Path,
    project: str,
    arguments: Mapping[str, Any] | None = None,
    deferred: Mapping[str, Mapping[str, str]] | None = None,
) -> Path:
    document = as_dict(results, project, arguments, deferred)
    previous_results = read_results(folder)
    path = write_text(folder, FILE, json.dumps(document, indent=1, default=str))
    note_run(document, previous_results, folder)
    return path


def unfinished_results(events: Iterable[Event], manifest: Manifest, nodes: Iterable[str]) -> RunResults | None:
    """Return the results of a run that ended early: what had not begun by then is skipped; None: nothing began."""
    results = fold(events)
    if not results.command:
        return None
    finished_ids = {result.node for result in results.results}
    skipped_results: list[Finished] = []
    for node in run_order(manifest, nodes):
        if node in finished_ids:
            continue
        if isinstance(model := manifest.nodes[node], Model):
            kind, relation = model.materialized.value, str(model.relation)
            skipped_results.append(
                ModelFinished(
                    status=Status.SKIPPED, message=_CUT, node=node, index=0, total=0, kind=kind, relation=relation,
                    seconds=0.0,
                )
            )  # fmt: skip
        else:
            skipped_results.append(TestFinished(node, 0, 0, Status.SKIPPED, 0.0, message=_CUT))
    return replace(results, results=(*results.results, *skipped_results))


def read_results(folder: Path) -> Mapping[str, Any] | None:
    with TargetFolder(folder) as target:
        content = target.read(FILE)
    try:
        results = json.loads(content or b"")
    except (ValueError, RecursionError):
        return None
    return results if isinstance(results, dict) else None


def as_dict(
    results: RunResults,
    project: str,
    arguments: Mapping[str, Any] | None = None,
    deferred: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    """The artifact's content; `deferred`: by id of a node, the models that it read from another target."""
    deferred_by_node = deferred or {}
    diagnostics_by_node: dict[str | None, list[Diagnostic]] = defaultdict(list)
    for diagnostic in results.diagnostics:
        diagnostics_by_node[diagnostic.node].append(diagnostic)
    progress = _progress(results.batches)
    names = {_name(result) for result in results.results}
    other_diagnostics = [diagnostic.to_dict() for diagnostic in results.diagnostics if diagnostic.node not in names]
    return {
        "metadata": artifact_metadata(
            "run-results/v6", invocation_id=results.run_id, invocation_started_at=results.started_at
        ),
        "args": {
            "which": results.command,
            "target": results.target,
            **(arguments or {}),
            **({"diagnostics": other_diagnostics} if other_diagnostics else {}),
        },
        "elapsed_time": round(results.seconds, 3),
        "results": [
            _result(
                r, project, progress.get(r.node, ()), diagnostics_by_node[_name(r)], deferred_by_node.get(r.node, {})
            )
            for r in results.results
        ],
    }


def _name(result: Finished) -> str:
    return result.node.partition(".")[2]


def _progress(batches: Iterable[BatchCommitted]) -> dict[str, deque[dict[str, Any]]]:
    last_batches: dict[str, deque[dict[str, Any]]] = defaultdict(lambda: deque(maxlen=_PROGRESS_LENGTH))
    for batch in batches:
        last_batches[batch.node].append({key: getattr(batch, key) for key in _PROGRESS})
    return last_batches


def _result(
    result: Finished,
    project: str,
    progress: Iterable[Mapping[str, Any]],
    diagnostics: Iterable[Diagnostic],
    deferred: Mapping[str, str],
) -> dict[str, Any]:
    unchanged = result.status is Status.UNCHANGED
    response: dict[str, Any] = {"diagnostics": [diagnostic.to_dict() for diagnostic in diagnostics]}
    if deferred:
        response["deferred"] = dict(deferred)
    if isinstance(result, ModelFinished):
        response |= {key: getattr(result, key) for key in _NUMBERS}
        response |= {"unchanged": unchanged, "kind": result.kind, "progress": list(progress)}
    elif isinstance(result, SinkFinished):
        response |= {"kind": "sink", "place": result.place}
        response |= {"rows_out": result.rows_out, "rows_deleted": result.rows_deleted}
    else:
        response |= {"cached": result.cached, "passed_at": result.passed_at or None}
    return {
        "unique_id": unique_id(result.node, project),
        "status": (Status.SUCCESS if unchanged else result.status).value,
        "execution_time": round(result.seconds, 3),
        "message": result.message or None,
        "thread_id": "",
        "timing": _timing(result),
        "compiled": True,
        "compiled_code": None,
        "failures": result.failures if isinstance(result, TestFinished) else None,
        "relation_name": result.relation if isinstance(result, ModelFinished) else None,
        "adapter_response": response,
    }


def _timing(result: Finished) -> list[dict[str, str]]:
    if not result.at or result.status is Status.SKIPPED:
        return []
    begin = datetime.fromisoformat(result.at) - timedelta(seconds=result.seconds)
    return [{"name": "execute", "started_at": begin.isoformat(timespec="seconds"), "completed_at": result.at}]


def unchanged_outcome(plan: Plan, target: Target, model: Model) -> Outcome | None:
    """Return the outcome of a model without work; None: it has some, or only Spark and the systems behind it know.

    The plan is of the time at which the tables were locked: what comes later waits for the next build.
    """
    action = plan.actions.get(model.id)
    if action is None or not action.unchanged:
        return None
    folder = table_state(target, model)
    state = folder.load()
    if action.inputs is not None and state is not None:
        # Older snapshots may expire: none of the rows that the model reads changed since.
        folder.save(replace(state, inputs=action.inputs))
    snapshot = state.snapshot if state is not None else None
    return Outcome(Status.UNCHANGED, "no new data", snapshot_id=snapshot, note="; ".join(action.notes))
