"""A standalone cluster on this machine, and projects that build on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab import JAVA_OPTIONS, REPOSITORY, Lab
from tests.services import spark_cluster
from tests.services.spark_cluster import SparkCluster

PROJECT = """
name: lab
targets:
  dev:
    schema: shop
    spark:
      master: "{url}"
      shared_folders: true
      conf:
        spark.authenticate: "true"
        spark.authenticate.secret: "{{{{ env_var('ENGINE_SECRET_SPARK') }}}}"
        spark.network.crypto.enabled: "true"
        spark.network.crypto.saslFallback: "false"
        spark.hadoop.fs.s3a.secret.key: "{{{{ env_var('ENGINE_SECRET_STORE') }}}}"
        spark.executor.memory: 512m
        spark.driver.extraJavaOptions: "{java}"
        spark.executor.extraJavaOptions: "{java}"
"""
STORE_SECRET = "planted-in-the-store-2718"


@dataclass(slots=True)
class ClusterLab(Lab):
    """A project with its own lake and state, in folders that the workers have too."""

    cluster: SparkCluster | None = None

    def __post_init__(self) -> None:
        self.schema = "shop"
        assert self.cluster is not None
        self.write("project.yml", PROJECT.format(url=self.cluster.url, java=JAVA_OPTIONS))

    @property
    def secrets(self) -> Mapping[str, str]:
        assert self.cluster is not None
        return {"ENGINE_SECRET_SPARK": self.cluster.secret, "ENGINE_SECRET_STORE": STORE_SECRET}

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command in a process of its own."""
        command = [sys.executable, "-m", "engine", *arguments, "--project-dir", str(self.root), "--log-format", "json"]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=REPOSITORY,
            env={**os.environ, **self.secrets},
        )  # fmt: skip

    @property
    def spark_log(self) -> str:
        return (self.root / "target" / "logs" / "spark.log").read_text(encoding="utf-8", errors="replace")


def events(out: str) -> list[dict[str, object]]:
    """The events of a command's output."""
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A master and two workers."""
    with spark_cluster.running(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def cluster_lab(cluster: SparkCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> ClusterLab:
    """An empty project with the cluster as its target; what ran on it before is gone."""
    return ClusterLab(tmp_path, None, capsys, cluster=cluster.start())
