"""How long `engine compile` takes, cold, unchanged and after one edit; dbt and SQLMesh beside it where they are.

    python -m benchmarks.compile [--sizes 100 1000 5000] [--runs 3] [--peers FOLDER ...]

Each run is a process of its own; the fastest of the runs counts, and peers take turns with Headrace so that
noise of the machine meets all alike. A peer's folder is a virtual environment with `dbt` or `sqlmesh` in bin/.
Memory is the largest resident set of any one process; CPU is the time of all cores, which a busy machine
lengthens less. Python keeps its bytecode, as it does for what pip installs, in a folder of the benchmark's own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import projects
from benchmarks._commands import keep, wait_until_quiet

Command = list[str]
_REPOSITORY = str(Path(__file__).resolve().parent.parent)
_WATCH = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss // 1024)
sys.exit(code)
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run took: seconds from command to end, seconds of CPU, megabytes of the largest process."""

    seconds: float
    cpu: float
    size: int


@dataclass(frozen=True, slots=True)
class Result:
    """Every run of a piece of work, those of Headrace and, in turns with them, those of a peer.

    Attributes:
        work: what runs.
        models: of the project.
        ours: the runs of Headrace.
        theirs: the runs of the peer, none where there is none.
        ratio: the least seconds of Headrace by those of the peer.
    """

    work: str
    models: int
    ours: list[Cost]
    theirs: list[Cost]
    ratio: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peers", type=Path, nargs="*", default=[])
    parser.add_argument("--peer-size", type=int, default=1000)
    options = parser.parse_args()
    wait_until_quiet()
    print(f"{'work':<44}{'seconds':>9}{'CPU':>9}{'MB':>7}")
    with tempfile.TemporaryDirectory() as bytecode, tempfile.TemporaryDirectory() as small:
        os.environ["PYTHONPYCACHEPREFIX"] = bytecode
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["ENGINE_CACHE"] = str(Path(bytecode) / "kept")
        projects.headrace(5, Path(small))
        _run([sys.executable, "-m", "engine", "compile", "--quiet"], Path(small))
        results = [_alone("engine --help", 0, options.runs, [sys.executable, "-m", "engine", "--help"], Path())]
        for size in options.sizes:
            results += _headrace(size, options.runs)
        for peer in options.peers:
            results += _peer(peer.absolute(), options.peer_size, options.runs)
    keep("compile", results, options.runs)


def _headrace(size: int, runs: int) -> list[Result]:
    command = [sys.executable, "-m", "engine", "compile", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        projects.headrace(size, root)
        edited = root / f"models/f{(size // 2) % 20}/m{size // 2}.sql"

        def edit() -> None:
            edited.write_text(edited.read_text() + "-- \n")

        def widen() -> None:
            edited.write_text(edited.read_text().replace("select a.id,", "select 1 as one, a.id,"))

        listing = [sys.executable, "-m", "engine", "ls", "--quiet", "--resource-type", "model"]
        return [
            _alone("cold", size, runs, command, root, lambda: _all_aside(root / "target")),
            _alone("unchanged", size, runs, command, root),
            _alone("one edit", size, runs, command, root, edit),
            _alone("one new column", size, 1, command, root, widen),
            _alone("ls unchanged", size, runs, listing, root),
        ]


def _peer(peer: Path, size: int, runs: int) -> list[Result]:
    results = []
    with tempfile.TemporaryDirectory() as folder:
        root, own = Path(folder) / "peer", Path(folder) / "own"
        if (peer / "bin" / "dbt").exists():
            projects.dbt(size, root)
            name, command, cache = "dbt parse", [str(peer / "bin/dbt"), "--quiet", "parse"], "target"
        else:
            projects.sqlmesh(size, root)
            name, command, cache = "sqlmesh load", [str(peer / "bin/sqlmesh"), "info", "--skip-connection"], ".cache"
        projects.headrace(size, own)
        ours = [sys.executable, "-m", "engine", "compile", "--quiet"]
        for kind in ("cold", "unchanged"):
            costs: dict[int, list[Cost]] = {0: [], 1: []}
            for _ in range(runs):
                for index, (line, where, kept) in enumerate(((command, root, cache), (ours, own, "target"))):
                    if kind == "cold":
                        _all_aside(where / kept)
                    costs[index].append(_run(line, where))
            ratio = round(_fastest(costs[1]).seconds / _fastest(costs[0]).seconds, 3)
            results.append(Result(f"{kind}, beside {name}", size, costs[1], costs[0], ratio))
            _line(f"{name}, {kind}", size, _fastest(costs[0]))
            _line("  headrace beside it", size, _fastest(costs[1]))
    return results


def _alone(
    work: str, size: int, runs: int, command: Command, root: Path, before: Callable[[], None] = lambda: None
) -> Result:
    costs = []
    for _ in range(runs):
        before()
        costs.append(_run(command, root))
    _line(work, size, _fastest(costs))
    return Result(work, size, costs, [])


def _aside(folder: Path) -> None:
    """Nothing is there any more. ext4 makes new files slowly for half a minute after thousands were removed."""
    if folder.exists():
        folder.rename(folder.with_name(f"{folder.name}.{time.time_ns()}"))


def _all_aside(folder: Path) -> None:
    """The same, and nothing is known of any project."""
    _aside(folder)
    _aside(Path(os.environ["ENGINE_CACHE"]))


def _fastest(costs: list[Cost]) -> Cost:
    """The least time, and the most memory."""
    return Cost(min(c.seconds for c in costs), min(c.cpu for c in costs), max(c.size for c in costs))


def _run(command: Command, root: Path) -> Cost:
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    if command[0] == sys.executable:
        environment["PYTHONPATH"] = _REPOSITORY
    else:
        environment.pop("PYTHONPATH", None)
    began = time.perf_counter()
    watched = [sys.executable, "-S", "-c", _WATCH, *command]
    done = subprocess.run(watched, cwd=root, env=environment, check=False, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed in {root}:\n{done.stderr[-2000:]}")
    cpu, size = done.stdout.split()
    return Cost(seconds, float(cpu), int(size))


def _line(what: str, size: int, cost: Cost) -> None:
    print(f"{what:<36}{size or '':>8}{cost.seconds:>9.2f}{cost.cpu:>9.2f}{cost.size:>7}", flush=True)


if __name__ == "__main__":
    main()
