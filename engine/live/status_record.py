"""The form of a status (docs/status-json.md): what is written, and what is accepted when it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 2


class LagRecord(TypedDict):
    input: str
    what: str | None
    count: int | None
    oldest_at: float | None


class HeldRecord(TypedDict):
    operator: str
    meaning: str
    explanation: str
    count: int
    memory_bytes: int


class NodeRecord(TypedDict):
    node: str
    name: str
    tests_of: str | None
    kind: str
    relation: str
    state: str
    reason: str
    since: float
    until: str | None
    health: str
    stalled: str | None
    stalled_after: float
    last_commit: float | None
    snapshot_id: str | None
    rows_in: int
    rows_out: int
    rows_per_second_1m: float
    rows_per_second_5m: float
    late: int
    duplicates: int
    bad_records: dict[str, int]
    bad_reasons: NotRequired[dict[str, str]]
    failed_checks: dict[str, int]
    quarantined: int
    state_rows: int
    held: list[HeldRecord]
    batches: int
    lag: list[LagRecord]
    lag_seconds: float | None
    watermark: str | None
    watermark_age_seconds: float | None
    watermark_held: str | None
    note: str
    turns: int
    failed_turns: int
    failures: int
    restarts: int
    last_turn_seconds: float | None
    last_error: str | None
    last_error_at: float | None
    past_error: str | None
    past_error_at: float | None
    tests_failing: dict[str, str]


class StatusRecord(TypedDict):
    version: int
    at: float
    run_id: str
    target: str
    pid: int
    started_at: float | None
    stopped_at: float | None
    stop_reason: str | None
    session: str | None
    rejected: str | None
    health: str
    states: dict[str, int]
    healths: dict[str, int]
    nodes: list[NodeRecord]


def status_record(content: bytes) -> StatusRecord | None:
    """Return the status that a JSON text holds; None if it is none of this form."""
    import msgspec

    from engine.bounds.regular_file import parse_json

    try:
        record = msgspec.convert(parse_json(content), StatusRecord)
    except (ValueError, RecursionError):
        return None
    return record if record["version"] == VERSION else None


def aged(record: StatusRecord, now: float) -> StatusRecord:
    """The record with its ages as of another time: what was written does not grow older on disk."""
    more = max(now - record["at"], 0.0)
    return {**record, "nodes": [_aged_node(node, more) for node in record["nodes"]]}


def _aged_node(node: NodeRecord, more: float) -> NodeRecord:
    behind, watermark = node["lag_seconds"], node["watermark_age_seconds"]
    ages = {
        "lag_seconds": round(behind + more, 1) if behind else behind,
        "watermark_age_seconds": None if watermark is None else round(watermark + more, 1),
    }
    return cast("NodeRecord", {**cast("Mapping[str, Any]", node), **ages})
