"""The status of `engine start` as metrics in Prometheus' text format, version 0.0.4.

The format is a few lines (a name, labels with three escapes, a number), and the values are a snapshot: a client library
with its registry would add nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.events import NodeState
from engine.live.status import healthy
from engine.live.turn_history import seconds_of

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})

Sample = tuple[Mapping[str, str], float | None]
Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of each node: its name, type and meaning, and its samples of a node; None has no sample."""

    name: str
    kind: str
    about: str
    samples: Callable[[Node], Iterable[Sample]]


def _value(key: str) -> Callable[[Node], Iterable[Sample]]:
    return lambda node: [({}, node[key])]


def _by(key: str, label: str) -> Callable[[Node], Iterable[Sample]]:
    return lambda node: [({label: name}, number) for name, number in node[key].items()]


METRICS = (
    Metric(
        "headrace_model_state", "gauge", "1 for the state that a model is in, 0 for the others.",
        lambda node: [({"state": state.value}, float(node["state"] == state)) for state in NodeState],
    ),
    Metric(
        "headrace_model_healthy", "gauge", "1 if a model is healthy, 0 if it has failed or stalled.",
        lambda node: [({}, float(node["health"] == "healthy"))],
    ),
    Metric(
        "headrace_model_stalled", "gauge", "1 if there is input, and no progress.",
        lambda node: [({}, float(bool(node["stalled"])))],
    ),
    Metric("headrace_model_rows_read_total", "counter", "Rows read.", _value("rows_in")),
    Metric("headrace_model_rows_written_total", "counter", "Rows written.", _value("rows_out")),
    Metric("headrace_model_late_rows_total", "counter", "Rows behind the watermark.", _value("late")),
    Metric("headrace_model_duplicate_rows_total", "counter", "Rows that dedup dropped.", _value("duplicates")),
    Metric(
        "headrace_model_bad_records_total", "counter", "Records that could not be read, by input.",
        _by("bad_records", "input"),
    ),
    Metric(
        "headrace_model_failed_checks_total", "counter", "Rows that did not meet an expectation, by its name.",
        _by("failed_checks", "check"),
    ),
    Metric("headrace_model_quarantined_rows_total", "counter", "Rows in the quarantine.", _value("quarantined")),
    Metric("headrace_model_batches_total", "counter", "Micro-batches.", _value("batches")),
    Metric("headrace_model_turns_total", "counter", "Turns that ended.", _value("turns")),
    Metric("headrace_model_failed_turns_total", "counter", "Turns that failed.", _value("failed_turns")),
    Metric("headrace_model_restarts_total", "counter", "Turns that followed a failed one.", _value("restarts")),
    Metric("headrace_model_state_rows", "gauge", "Rows held in state.", _value("state_rows")),
    Metric(
        "headrace_model_state_memory_bytes", "gauge", "Memory that the state store uses.",
        lambda node: [({}, sum(one["memory_bytes"] for one in node["held"]))],
    ),
    Metric(
        "headrace_model_lag", "gauge", "Unread part of an input; unit: files, offsets, snapshots or tables.",
        lambda node: [({"input": lag["input"], "unit": lag["what"] or ""}, lag["count"]) for lag in node["lag"]],
    ),
    Metric(
        "headrace_model_lag_seconds", "gauge", "Age of the oldest unread input; no sample: not known.",
        _value("lag_seconds"),
    ),
    Metric(
        "headrace_model_last_commit_timestamp_seconds", "gauge", "When rows were committed last.",
        _value("last_commit"),
    ),
    Metric(
        "headrace_model_watermark_timestamp_seconds", "gauge", "The watermark.",
        lambda node: [({}, seconds_of(node["watermark"]) if node["watermark"] else None)],
    ),
    Metric("headrace_model_last_turn_seconds", "gauge", "Duration of the last run.", _value("last_turn_seconds")),
    Metric(
        "headrace_model_tests_failing", "gauge", "Tests that failed in the last run.",
        lambda node: [({}, len(node["tests_failing"]))],
    ),
)  # fmt: skip
_PROCESS = (
    ("headrace_up", "gauge", "1 while engine start runs.", lambda status: float(status["stopped_at"] is None)),
    ("headrace_healthy", "gauge", "1 if no model has failed or stalled.", lambda status: float(healthy(status))),
    ("headrace_start_timestamp_seconds", "gauge", "When engine start began.", lambda status: status["started_at"]),
)
NAMES = frozenset({metric.name for metric in METRICS} | {name for name, *_ in _PROCESS})


def exposition(status: Mapping[str, Any]) -> str:
    return "".join(f"{line}\n" for line in _lines(status))


def _lines(status: Mapping[str, Any]) -> Iterator[str]:
    target = {"target": status["target"]}
    for name, kind, about, value in _PROCESS:
        yield from _described(name, kind, about)
        yield from _sample(name, target, value(status))
    for metric in METRICS:
        yield from _described(metric.name, metric.kind, metric.about)
        for node in status["nodes"]:
            for labels, number in metric.samples(node):
                yield from _sample(metric.name, {**target, "model": node["name"], **labels}, number)


def _described(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _sample(name: str, labels: Mapping[str, str], number: float | None) -> Iterator[str]:
    if number is not None:
        text = ",".join(f'{key}="{value.translate(_ESCAPES)}"' for key, value in labels.items())
        yield (
            f"{name}{{{text}}} {number:g}"
            if isinstance(number, int) and abs(number) < 10**6
            else (f"{name}{{{text}}} {number!r}")
        )
