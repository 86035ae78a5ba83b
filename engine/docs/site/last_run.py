"""The last run, from run_results.json, where any key may be missing or of another type; watermarks from checkpoints."""

from __future__ import annotations

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from engine.bounds.regular_file import read_regular
from engine.compile import Target
from engine.compile.artifacts.dbt_manifest import own_id
from engine.compile.nodes.manifest import Manifest
from engine.compile.nodes.materialization import Materialized
from engine.docs.site import format_values
from engine.errors import EngineError
from engine.events import Status
from engine.plan.deployed.state_folder import table_state
from engine.state.checkpoint import next_watermark


class Tone(StrEnum):
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    PLAIN = "plain"


_TONES = {
    Status.SUCCESS: Tone.GOOD,
    Status.UNCHANGED: Tone.GOOD,
    Status.PASS: Tone.GOOD,
    Status.WARN: Tone.WARN,
    Status.SKIPPED: Tone.WARN,
    Status.FAIL: Tone.BAD,
    Status.ERROR: Tone.BAD,
}


def _tone(status: str) -> Tone:
    return _TONES[Status(status)] if status in set(Status) else Tone.PLAIN


_MOST_BYTES = 50_000_000
NUMBERS = ("rows_in", "rows_out", "rows_updated", "rows_deleted", "late", "quarantined", "state_rows", "batches")
# Told only where there are some: most tables know no updates.
_RARE = frozenset({"rows_updated", "rows_deleted"})


@dataclass(frozen=True, slots=True)
class Batch:
    id: int
    rows_in: float
    rows_out: float
    late: float
    state_rows: float
    watermark: datetime | None
    quarantined: float = 0


@dataclass(frozen=True, slots=True)
class NodeRun:
    """How a node ended.

    Attributes:
        seconds: how long it took; None: it is not known.
        counted: rows and records that were not as they should be: what they are, of which check or input, and how many.
        note: what the engine said at its end, such as when the next window closes, and what was deferred.
        attempt: status and message of the last run, which did not finish the node: all else is of an earlier run.
        earlier: whether the node had no part in the last run.
    """

    status: str
    tone: Tone
    message: str = ""
    seconds: float | None = None
    at: datetime | None = None
    numbers: Mapping[str, float] = field(default_factory=dict)
    counted: tuple[tuple[str, str, float], ...] = ()
    watermark: datetime | None = None
    note: str = ""
    progress: tuple[Batch, ...] = ()
    attempt: tuple[str, str] | None = None
    earlier: bool = False


@dataclass(frozen=True, slots=True)
class ResultInShort:
    """How a node ended in a run; `began` and `ended` are None if it did not begin.

    `table`: what it wrote; "": nothing. `snapshot`: id of the table's snapshot that it left.
    """

    node: str
    status: str
    began: float | None
    ended: float | None
    rows_in: float | None
    rows_out: float | None
    message: str
    table: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    counted: tuple[tuple[str, str, float], ...] = ()
    note: str = ""
    snapshot: int | None = None

    @property
    def tone(self) -> Tone:
        return _tone(self.status)


@dataclass(frozen=True, slots=True)
class Reported:
    """A warning or an error of a run; `node` is the name of its model, or ""."""

    level: str
    code: str
    message: str
    hint: str
    node: str
    place: str


@dataclass(frozen=True, slots=True)
class RunInShort:
    """A run; of its warnings and errors only the first are stored, `more_reported` counts the others."""

    at: datetime | None
    command: str
    target: str
    seconds: float | None
    results: tuple[ResultInShort, ...]
    reported: tuple[Reported, ...] = ()
    more_reported: int = 0


@dataclass(frozen=True, slots=True)
class LastRun:
    """A run: when it ended, its command and target, and how its nodes ended, by the ids of the manifest.

    Nodes that it did not finish, or that had no part in it, have the result of the last run that finished them.
    `history` has the last runs in short, the newest first, and `results_of` the results of each node in them.
    """

    at: datetime | None = None
    command: str = ""
    target: str = ""
    seconds: float | None = None
    nodes: Mapping[str, NodeRun] = field(default_factory=dict)
    history: tuple[RunInShort, ...] = ()
    results_of: Mapping[str, tuple[tuple[RunInShort, ResultInShort], ...]] = field(default_factory=dict)

    def counted(self, *kinds: str) -> Mapping[str, int]:
        ended = (
            run.attempt[0] if run.attempt else run.status
            for node, run in self.nodes.items()
            if node.partition(".")[0] in kinds and not run.earlier
        )
        return dict(sorted(Counter(ended).items()))

    def failed(self, node: str) -> bool:
        return node in self.nodes and self.nodes[node].tone is Tone.BAD


def read_results(results: Mapping[str, Any] | None, history: Mapping[str, Any] | None = None) -> LastRun:
    """Read what run_results.json and runs.json hold; nothing of it is required."""
    run_results = results if isinstance(results, Mapping) else {}
    args = _mapping(run_results, "args")
    runs = tuple(_runs(history or {}))
    results_of: dict[str, list[tuple[RunInShort, ResultInShort]]] = defaultdict(list)
    for run in runs:
        for result in run.results:
            results_of[result.node].append((run, result))
    nodes = {
        own_id(item["unique_id"]): _node(item)
        for item in _list(run_results, "results")
        if isinstance(item, Mapping) and isinstance(item.get("unique_id"), str)
    }
    return LastRun(
        at=format_values.instant(_mapping(run_results, "metadata").get("generated_at")),
        command=_text(args, "which"),
        target=_text(args, "target"),
        seconds=_number(run_results.get("elapsed_time")),
        nodes={**nodes, **dict(_unfinished(nodes, _mapping(history or {}, "finished")))},
        history=runs,
        results_of={node: tuple(results) for node, results in results_of.items()},
    )


def _unfinished(nodes: Mapping[str, NodeRun], finished: Mapping[str, Any]) -> Iterator[tuple[str, NodeRun]]:
    """Yield the earlier results of the nodes that the last run did not finish, or had no part in."""
    for name, item in finished.items():
        if not isinstance(name, str) or not isinstance(item, Mapping):
            continue
        earlier, last = _node(item), nodes.get(own_id(name))
        if last is None:
            yield own_id(name), replace(earlier, earlier=True)
        elif last.status == Status.SKIPPED:
            yield own_id(name), replace(earlier, attempt=(last.status, last.message))
        else:
            measured = replace(earlier, status=last.status, tone=last.tone, message=last.message)
            yield own_id(name), replace(measured, attempt=(last.status, last.message))


def _runs(history: Mapping[str, Any]) -> Iterator[RunInShort]:
    for run in _list(history, "runs"):
        if isinstance(run, Mapping):
            results = tuple(_result_from_stored_row(item) for item in _list(run, "results") if _is_result(item))
            at = format_values.instant(run.get("started_at") or run.get("at"))
            reported = tuple(_reported(item) for item in _list(run, "diagnostics") if isinstance(item, Mapping))
            seconds, more = _number(run.get("seconds")), int(_number(run.get("more_diagnostics")) or 0)
            yield RunInShort(at, _text(run, "command"), _text(run, "target"), seconds, results, reported, more)


# Version 0.1.0 wrote no table and no details.
_STORED_FIELDS = (7, 9)


def _is_result(item: Any) -> bool:
    return isinstance(item, list) and len(item) in _STORED_FIELDS and isinstance(item[0], str)


def _result_from_stored_row(stored_row: Sequence[Any]) -> ResultInShort:
    name, status, began, ended, rows_in, rows_out, message, table, details = [*stored_row, None, None][
        : _STORED_FIELDS[1]
    ]
    began, ended, rows_in, rows_out = (_number(value) for value in (began, ended, rows_in, rows_out))
    response = details if isinstance(details, Mapping) else {}
    snapshot, kind = response.get("snapshot_id"), _text(response, "kind")
    if kind and "rows_in" not in _measured(kind):
        rows_in = None
    return ResultInShort(
        own_id(name),
        str(status),
        began,
        ended,
        rows_in,
        rows_out,
        str(message or ""),
        table if isinstance(table, str) else "",
        dict(_numbers(response, _measured(kind))),
        tuple(_counted(response)),
        _note(response),
        snapshot if isinstance(snapshot, int) else None,
    )


def _reported(item: Mapping[str, Any]) -> Reported:
    file, line, column = _text(item, "file"), _number(item.get("line")), _number(item.get("column"))
    place = ":".join(str(part) for part in (file, line, column) if part)
    level, code, message, hint, node = (_text(item, key) for key in ("level", "code", "message", "hint", "node"))
    return Reported(level, code, message, hint, node, place)


def last_run(target_dir: Path) -> LastRun:
    """Return the last run of a project, as its folder of artifacts has it; an empty one if that cannot be read."""
    return read_results(_read_artifact(target_dir / "run_results.json"), _read_artifact(target_dir / "runs.json"))


def _read_artifact(path: Path) -> Mapping[str, Any] | None:
    try:
        content = json.loads(read_regular(path, _MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _measured(kind: str) -> frozenset[str]:
    """What is measured of a model: not a batch's input, nor a view's rows."""
    traits = Materialized(kind).traits if kind in set(Materialized) else None
    if traits is None or traits.streaming:
        return frozenset(NUMBERS)
    return frozenset({"rows_out"} if traits.keeps_rows else ())


def _node(item: Mapping[str, Any]) -> NodeRun:
    response = _mapping(item, "adapter_response")
    status = _text(item, "status") or "unknown"
    if status == Status.SUCCESS and response.get("unchanged") is True:
        status = Status.UNCHANGED.value
    tone = _tone(status)
    if status == Status.SKIPPED:
        return NodeRun(status, tone, _text(item, "message"))
    return NodeRun(
        status,
        tone,
        _text(item, "message"),
        _number(item.get("execution_time")),
        format_values.instant(next((t["completed_at"] for t in _timings(item) if t.get("completed_at")), None)),
        dict(_numbers(response, _measured(_text(response, "kind")))),
        tuple(_counted(response)),
        format_values.instant(response.get("watermark")),
        _note(response),
        tuple(_batches(response)),
    )


def _note(response: Mapping[str, Any]) -> str:
    deferred = [f"{name} was read from {table}" for name, table in _mapping(response, "deferred").items()]
    return "; ".join(filter(None, [_text(response, "note"), *deferred]))


def _numbers(response: Mapping[str, Any], measured: frozenset[str]) -> Iterator[tuple[str, float]]:
    for key in NUMBERS:
        number = _number(response.get(key)) if key in measured else None
        # Without a micro-batch the state is not reported.
        unseen = key == "state_rows" and not response.get("batches")
        if number is not None and not unseen and (number or key not in _RARE):
            yield key, number


def _counted(response: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    for key, label in (("bad_records", "Bad records"), ("failed_checks", "Failed expectation")):
        for name, value in _mapping(response, key).items():
            if number := _number(value):
                yield label, str(name), number


def _timings(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from (timing for timing in _list(item, "timing") if isinstance(timing, Mapping))


def _batches(response: Mapping[str, Any]) -> Iterator[Batch]:
    for batch in _list(response, "progress"):
        if isinstance(batch, Mapping) and isinstance(batch.get("batch_id"), int):
            rows_in, rows_out, late, state_rows, apart = (
                _number(batch.get(key)) or 0 for key in ("rows_in", "rows_out", "late", "state_rows", "quarantined")
            )
            yield Batch(
                batch["batch_id"],
                rows_in,
                rows_out,
                late,
                state_rows,
                format_values.instant(batch.get("watermark")),
                apart,
            )


def _mapping(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, Mapping) else {}


def _list(parent: Mapping[str, Any], key: str) -> Sequence[Any]:
    value = parent.get(key)
    return value if isinstance(value, list) else []


def _text(parent: Mapping[str, Any], key: str) -> str:
    value = parent.get(key)
    return value if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


_log = logging.getLogger("engine.docs")


def read_watermarks(manifest: Manifest, target: Target, only: Collection[str] | None = None) -> dict[str, datetime]:
    """The watermark with which the next micro-batch of each model begins, by the models' ids; some have none.

    Args:
        manifest: of the project.
        target: whose checkpoints are read.
        only: ids of the models that are wanted; None: all.
    """
    watermarks = {}
    for model in manifest.models:
        if not model.streaming or (only is not None and model.id not in only):
            continue
        folder = table_state(target, model)
        try:
            state = folder.load()
            mark = next_watermark(folder.checkpoint(state.generation)) if state else None
            if mark is not None:
                watermarks[model.id] = datetime.fromtimestamp(mark / 1000, UTC)
        except (EngineError, OSError, ValueError, OverflowError) as error:
            _log.warning("the watermark of %s cannot be shown: %s", model.name, error)
    return watermarks
