"""A real standalone cluster on this machine: a master and workers from PySpark's own classes, each a process.

It listens on the loopback interface only, on free ports, and everybody in it knows one random secret: ports that answer
nobody else, and what they say encrypted. The secret is in a file, never among the arguments of a process.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from engine.spark._pyspark import pyspark_home
from engine.spark.cluster import script_java_home
from engine.spark.java import find_java
from tests.services import process

_START_SECONDS = 60.0
_CALL_SECONDS = 5.0
_HOST = "127.0.0.1"
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
# Small and short-lived.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass(slots=True)
class SparkCluster:
    """A master and workers over a folder; each can be stopped and started again.

    Attributes:
        folder: of their logs, and of what executors write; for its owner alone.
        workers: how many; each gives one core.
        memory: of each worker, for executors.
        port: of the master.
        secret: of the cluster.
    """

    folder: Path
    workers: int = 2
    memory: str = "1g"
    port: int = field(default_factory=process.free_port)
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _page: int = field(default_factory=process.free_port)
    _master: subprocess.Popen[bytes] | None = None
    _workers: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The address of the master, as `spark: {master: ..}` of a target has it."""
        return f"spark://{_HOST}:{self.port}"

    def start(self) -> SparkCluster:
        """Start what does not run, and wait until all workers are there."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._master is None or self._master.poll() is not None:
            where = ["--host", _HOST, "--port", str(self.port), "--webui-port", str(self._page)]
            self._master = self._start("master", [_MASTER, *where])
            process.wait_until_ready(
                self._master, lambda: self.status() is not None, self._log("master"), _START_SECONDS
            )
        for number in range(self.workers):
            if number not in self._workers or self._workers[number].poll() is not None:
                self._workers[number] = self._start(f"worker{number}", self._worker(number))
        last, log = self._workers[self.workers - 1], self._log(f"worker{self.workers - 1}")
        process.wait_until_ready(last, lambda: len(self.alive()) >= self.workers, log, _START_SECONDS)
        return self

    def stop(self) -> None:
        """End all of it; executors end with their worker."""
        for number in list(self._workers):
            self.stop_worker(number)
        self.stop_master()

    def stop_master(self, *, kill: bool = False) -> None:
        """End the master: cleanly, or as a crash would."""
        if self._master is not None:
            process.stop(self._master, kill=kill)
            self._master = None

    def stop_worker(self, number: int, *, kill: bool = False) -> None:
        """End a worker with its executors: cleanly, or as a lost machine would."""
        service = self._workers.pop(number, None)
        if service is not None:
            if kill:
                # A machine that is lost takes all of them at once.
                for pid in (service.pid, *self.executors(service.pid)):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            process.stop(service, kill=kill)

    def status(self) -> dict[str, object] | None:
        """What the master says of itself, as its page has it; None: it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{_HOST}:{self._page}/json/", timeout=_CALL_SECONDS) as answer:
                found: dict[str, object] = json.load(answer)
                return found
        except (OSError, ValueError):
            return None

    def alive(self) -> list[str]:
        """The ids of the workers that the master counts on."""
        workers = (self.status() or {}).get("workers", [])
        assert isinstance(workers, list)
        return [worker["id"] for worker in workers if worker["state"] == "ALIVE"]

    def executors(self, worker: int | None = None) -> list[int]:
        """Process ids of the executors: those below a worker's process, or all."""
        tops = [worker] if worker is not None else [service.pid for service in self._workers.values()]
        return [pid for pid in below(tops) if EXECUTOR in arguments(pid)]

    def worker_of(self, executor: int) -> int:
        """The number of the worker whose executor that is."""
        return next(n for n, service in self._workers.items() if executor in self.executors(service.pid))

    def _worker(self, number: int) -> list[str]:
        work = self.folder / f"worker{number}"
        work.mkdir(mode=0o700, exist_ok=True)
        given = ["--host", _HOST, "--cores", "1", "--memory", self.memory, "--work-dir", str(work)]
        return [_WORKER, *given, "--webui-port", str(process.free_port()), self.url]

    def _start(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        settings = self.folder / "spark.properties"
        with os.fdopen(os.open(settings, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write("".join(f"{key} {value}\n" for key, value in self.conf().items()))
        script = str(pyspark_home() / "bin" / "spark-class")
        main, *given = command
        environment = [f"{key}={value}" for key, value in self._environment().items()]
        full = ["env", *environment, script, main, "--properties-file", str(settings), *given]
        return process.start(full, self._log(name), self.folder)

    def _environment(self) -> dict[str, str]:
        java = find_java()
        return {
            "SPARK_HOME": str(pyspark_home()),
            "JAVA_HOME": str(script_java_home(java.path, self.folder) if java.bundled else java.home),
            "SPARK_LOCAL_DIRS": str(self.folder / "scratch"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _JAVA,
            "SPARK_LOCAL_IP": _HOST,
        }

    def conf(self) -> dict[str, str]:
        """The settings by which a session belongs to the cluster."""
        return {
            "spark.authenticate": "true",
            "spark.authenticate.secret": self.secret,
            "spark.network.crypto.enabled": "true",
            "spark.network.crypto.saslFallback": "false",
        }

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


def arguments(pid: int) -> str:
    """The command line of a process, as `ps` shows it to everybody."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def below(tops: list[int]) -> list[int]:
    """The processes that these started, and those that they started."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found: list[int] = []
    level = set(tops)
    while level:
        level = {pid for pid, parent in parents.items() if parent in level}
        found += sorted(level)
    return found


@contextlib.contextmanager
def running(folder: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """A cluster that ends with the block."""
    cluster = SparkCluster(folder, workers)
    try:
        yield cluster.start()
    finally:
        cluster.stop()
