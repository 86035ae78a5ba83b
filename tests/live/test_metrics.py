"""Prometheus' text format, read back by a parser of it, and the Grafana dashboard."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from engine.events import Status
from engine.live.lag import Lag
from engine.live.metrics import METRICS, NAMES, exposition
from engine.live.status import LiveStatus
from tests.live.sequences import BEGIN, ORDERS, started, turn

parser = pytest.importorskip("prometheus_client.parser")
ODD = 'model.a"b\\c\nd'
DASHBOARD = Path(__file__).parents[2] / "docs/grafana/headrace.json"


def samples() -> dict[tuple[str, str, str], float]:
    status = LiveStatus()
    happened = [started(ORDERS, ODD), *turn(rows=12, late=2, bad={"shop.orders": 3}, watermark="2026-01-01T00:00:00")]
    for event in [*happened, *turn(ODD, status=Status.ERROR, message="no")]:
        status.add(event, BEGIN)
    status.note_lags({ORDERS: (Lag("shop.orders", "files", 4, BEGIN), Lag("x", "", None))}, BEGIN)
    found = {}
    for family in parser.text_string_to_metric_families(exposition(status.to_json(BEGIN + 7))):
        assert family.documentation
        for sample in family.samples:
            labels = dict(sample.labels)
            model, _ = labels.pop("model", ""), labels.pop("target")
            found[sample.name, model, " ".join(labels.values())] = sample.value
    return found


def test_every_metric_is_read_back() -> None:
    found = samples()
    assert {name for name, *_ in found} == NAMES - {"headrace_model_failed_checks_total"}
    assert found["headrace_model_rows_read_total", "orders", ""] == 12
    assert found["headrace_model_bad_records_total", "orders", "shop.orders"] == 3
    assert found["headrace_model_lag", "orders", "shop.orders files"] == 4
    assert ("headrace_model_lag", "orders", "x ") not in found
    assert found["headrace_model_lag_seconds", "orders", ""] == 7
    assert found["headrace_model_watermark_timestamp_seconds", "orders", ""] == 1_767_225_600
    assert found["headrace_model_last_commit_timestamp_seconds", "orders", ""] == BEGIN
    assert found["headrace_model_state_memory_bytes", "orders", ""] == 0
    assert found["headrace_model_state", "orders", "idle"] == 1
    assert found["headrace_model_state", "orders", "running"] == 0
    assert found["headrace_healthy", "", ""] == 0


def test_labels_are_escaped() -> None:
    assert samples()["headrace_model_healthy", 'a"b\\c\nd', ""] == 0


def test_the_dashboard_names_metrics_that_exist() -> None:
    named = set(
        re.findall(r"headrace_\w+", json.dumps([p["targets"] for p in json.loads(DASHBOARD.read_text())["panels"]]))
    )
    assert named <= NAMES
    assert len(named) > len(METRICS) / 2
