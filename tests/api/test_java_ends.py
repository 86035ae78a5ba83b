"""`WarmSession` when Java dies at each step of opening, using and closing a session: the next run opens another one.

`python -m tests.api.test_java_ends --kills 50 --seed 1` kills it at random moments.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine import Project, kill_points
from engine.api.warm_session import WarmSession
from engine.compile import Target
from engine.errors import EngineError
from engine.runtime.context.run_context import CORE
from engine.spark.exceptions import spark_exceptions
from tests.lab import REPOSITORY

POINTS = ("java started", "connected", "session opened", "run begins", "run ends", "session closing")
PROJECT = "name: shop\n"


def children() -> Iterator[int]:
    """The processes of Java that this one has started."""
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            if b"java" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]:
                yield int(pid)


def kill_java() -> bool:
    killed = list(children())
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    return bool(killed)


def once(act: Callable[[], object], wanted: str) -> Callable[[], None]:
    reached = []

    def arrive(point: str, *_: object) -> None:
        if point == wanted and not reached:
            reached.append(point)
            assert act(), "there is no Java to kill"

    return kill_points.listen(arrive)


def use(session: WarmSession, target: Target, folder: Path) -> int:
    with session.run(target, folder, sets=CORE, brief=True) as spark:
        return int(spark.sql("select 1 as one").collect()[0].one)


def killed_at(point: str, root: Path) -> None:
    (root / "models").mkdir(parents=True)
    (root / "project.yml").write_text(PROJECT)
    target = Project(root).compile().target
    reasons: list[str] = []
    with WarmSession(reasons.append) as session:
        end = once(kill_java, point)
        try:
            assert use(session, target, root / "target") == 1
            session.close()
        except (EngineError, *spark_exceptions()) as error:
            print(f"{point}: {error!r:.200}")
        end()
        assert use(session, target, root / "target") == 1, point
        assert use(session, target, root / "target") == 1, point
        assert len(list(children())) == 1
    assert not list(children())


@pytest.mark.gate
@pytest.mark.nightly_except("session opened")
@pytest.mark.spark
@pytest.mark.parametrize("point", POINTS)
def test_the_next_run_opens_another_session(point: str, tmp_path: Path) -> None:
    code = "import sys\nfrom pathlib import Path\nfrom tests.api.test_java_ends import killed_at\n"
    code += "killed_at(sys.argv[1], Path(sys.argv[2]))"
    command = [sys.executable, "-c", code, point, str(tmp_path / "p")]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def kill_at_random(kills: int, seed: int) -> int:
    """Kill Java at random moments of runs; return how many runs failed with an error of the user's, all others are faults."""
    chance, failed = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "models").mkdir(parents=True)
        (root / "project.yml").write_text(PROJECT)
        target = Project(root).compile().target
        with WarmSession(lambda _: None) as session:
            for number in range(kills):
                moment = threading.Timer(chance.uniform(0.0, 6.0), kill_java)
                moment.start()
                begun = time.monotonic()
                while moment.is_alive():
                    try:
                        assert use(session, target, root / "target") == 1
                        if chance.random() < 0.2:
                            session.close()
                    except (EngineError, *spark_exceptions()):
                        failed += 1
                assert use(session, target, root / "target") == 1, f"kill {number} of seed {seed}"
                print(f"kill {number + 1}: {time.monotonic() - begun:.1f} s, {failed} failed runs so far", flush=True)
        assert not list(children())
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(f"{given.kills} kills, {kill_at_random(given.kills, given.seed)} runs failed, each next one ran")
    sys.exit(0)
