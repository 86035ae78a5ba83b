"""A build on a cluster loses an executor and then a machine while they work: its result is that of a quiet one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.cluster.conftest import STORE_SECRET, ClusterLab, events
from tests.lab import event
from tests.services.spark_cluster import SparkCluster, arguments

pytestmark = pytest.mark.spark

# Each row takes its time on an executor, so that a fault comes in the middle.
HOURLY = """/*---
streams: {shop.events: {watermark: at delay 10 minutes, max_files_per_trigger: 4}}
windows: {hour: "tumbling(at, 1 hour)"}
---*/
select hour.start as hour, kind, count(*) as rows, sum(id) as ids
from {{ source('shop', 'events') }}
where java_method('java.lang.Thread', 'sleep', bigint(25)) = 'null'
group by hour, kind
"""
UNIT = """
unit_tests:
  - name: counts
    model: hourly
    given:
      shop.events: [{id: 1, at: 2024-05-01 10:00:00, kind: a}, {id: 2, at: 2024-05-01 12:00:00, kind: a}]
    expect: {rows: [{hour: 2024-05-01 10:00:00, kind: a, rows: 1, ids: 1}]}
"""
FILES, ROWS = 12, 40
PATIENCE = 240.0


def land(lab: ClusterLab) -> Counter[tuple[str, str]]:
    """Land files of an hour each; how many rows each group of a closed window has."""
    expected: Counter[tuple[str, str]] = Counter()
    for hour in range(FILES):
        rows = [
            event(hour * ROWS + n, f"2024-05-01T{hour:02}:{n:02}", kind="ab"[n % 2]) | {"amount": float(n)}
            for n in range(ROWS)
        ]
        lab.land(f"h{hour:02}", rows)
        # The last window stays open.
        expected.update((f"2024-05-01 {hour:02}:00:00", str(row["kind"])) for row in rows if hour < FILES - 1)
    return expected


def log_of(cluster: SparkCluster, executor: int) -> Path:
    """What an executor writes."""
    folders = (cluster.folder / f"worker{cluster.worker_of(executor)}").glob("app-*/*/stderr")
    return max(folders, key=lambda path: path.stat().st_mtime)


def unfinished(log: Path) -> set[str]:
    """The tasks that an executor has begun and not finished, by its log."""
    text = log.read_text(errors="replace")
    begun, ended = (re.findall(rf"{word} task .*?(\(TID \d+\))", text) for word in ("Running", "Finished"))
    return set(begun) - set(ended)


def a_busy_executor(
    cluster: SparkCluster, build: subprocess.Popen[str], lab: ClusterLab, batches: int
) -> tuple[int, Path]:
    """Wait until an executor runs a task of a micro-batch that is not committed, behind some that are."""
    checkpoint = lab.state / "hourly" / "1" / "checkpoint"
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and build.poll() is None:
        begun, done = (len(list((checkpoint / name).glob("[0-9]*"))) for name in ("offsets", "commits"))
        if begun > done >= batches:
            for pid in cluster.executors():
                tasks = unfinished(log := log_of(cluster, pid))
                time.sleep(0.2)
                # Not one that is about to end.
                if tasks & unfinished(log):
                    return pid, log
        time.sleep(0.02)
    output = build.communicate(timeout=60)[0] if build.poll() is not None else ""
    raise AssertionError(f"no executor was seen at work\n{output}")


@pytest.mark.nightly
def test_an_executor_and_then_a_worker_are_killed_in_the_middle_of_a_batch(cluster_lab: ClusterLab) -> None:
    lab, cluster = cluster_lab, cluster_lab.cluster
    assert cluster is not None
    lab.model("hourly", HOURLY)
    lab.write("tests/unit.yml", UNIT)
    expected = land(lab)
    build = lab.begin("build")
    try:
        first, first_log = a_busy_executor(cluster, build, lab, batches=0)
        shown = "\n".join(arguments(int(path.name)) for path in Path("/proc").iterdir() if path.name.isdigit())
        os.kill(first, signal.SIGKILL)
        second, second_log = a_busy_executor(cluster, build, lab, batches=1)
        cluster.stop_worker(cluster.worker_of(second), kill=True)
        out, _ = build.communicate(timeout=PATIENCE)
    finally:
        build.kill()
        build.wait()
    assert build.returncode == 0, out
    # Both died with tasks of the build that they had not finished, and the driver noticed.
    assert unfinished(first_log)
    assert unfinished(second_log)
    assert len(re.findall("Lost executor", lab.spark_log)) >= 2, lab.spark_log[-3000:]
    assert "ExecutorLostFailure" in lab.spark_log
    assert "worker lost" in lab.spark_log

    result = {(str(row["hour"])[:19], row["kind"]): row["rows"] for row in lab.rows("hourly")}
    assert result == expected
    assert len(lab.rows("hourly")) == len(expected)
    verdicts = {e["node"]: e["status"] for e in events(out) if e["event"] == "TestFinished"}
    assert verdicts == {"unit_test.hourly.counts": "pass"}
    # The cluster's two cores, kept by the checkpoint.
    partitions = sorted(p.name for p in (lab.state / "hourly" / "1" / "checkpoint" / "state" / "0").glob("[0-9]*"))
    assert partitions == ["0", "1"]
    # Nobody saw a secret, neither while it ran nor afterwards.
    assert "CoarseGrainedExecutorBackend" in shown
    texts = [shown, out, *(p.read_text(errors="replace") for p in (lab.root / "target").rglob("*") if p.is_file())]
    texts += [path.read_text(errors="replace") for path in cluster.folder.rglob("stderr")]
    texts += [path.read_text(errors="replace") for path in cluster.folder.glob("*.log")]
    for secret in (cluster.secret, STORE_SECRET):
        assert not [text for text in texts if secret in text]


@pytest.mark.nightly
def test_the_master_is_gone_when_a_build_starts(cluster_lab: ClusterLab) -> None:
    lab, cluster = cluster_lab, cluster_lab.cluster
    assert cluster is not None
    lab.model("hourly", HOURLY)
    land(lab)
    cluster.stop_master(kill=True)
    begin = time.monotonic()
    out, _ = lab.begin("build").communicate(timeout=PATIENCE)
    assert time.monotonic() - begin < 60
    (found,) = [e for e in events(out) if e["event"] == "Diagnosed" and e["level"] == "error"]
    assert found["code"] == "cluster-unreachable"
    assert cluster.url in str(found["message"])
    assert not (lab.root / ".engine" / "lake" / "warehouse" / "shop").exists()
