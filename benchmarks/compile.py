"""How long `engine compile` takes, cold, unchanged and after one edit; dbt and SQLMesh beside it where they are.

    python -m benchmarks.compile [--sizes 100 1000 5000] [--runs 3] [--peers FOLDER ...]

Each run is a process of its own; the fastest of the runs counts, and peers take turns with Headrace so that
noise of the machine meets all alike. A peer's folder is a virtual environment with `dbt` or `sqlmesh` in bin/.
Memory is the largest resident set of any one process.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import projects

Command = list[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peers", type=Path, nargs="*", default=[])
    parser.add_argument("--peer-size", type=int, default=1000)
    options = parser.parse_args()
    print(f"{'work':<44}{'seconds':>9}{'MB':>7}")
    _line("engine --help", *_best(options.runs, [sys.executable, "-m", "engine", "--help"], Path()))
    for size in options.sizes:
        _headrace(size, options.runs)
    for peer in options.peers:
        _peer(peer.absolute(), options.peer_size, options.runs)


def _headrace(size: int, runs: int) -> None:
    command = [sys.executable, "-m", "engine", "compile", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        projects.headrace(size, root)
        cold = _best(runs, command, root, lambda: shutil.rmtree(root / "target", ignore_errors=True))
        _line(f"headrace, {size} models, cold", *cold)
        _line(f"headrace, {size} models, unchanged", *_best(runs, command, root))
        edited = root / f"models/f{(size // 2) % 20}/m{size // 2}.sql"

        def edit() -> None:
            edited.write_text(edited.read_text() + "-- \n")

        _line(f"headrace, {size} models, one edit", *_best(runs, command, root, edit))

        def widen() -> None:
            edited.write_text(edited.read_text().replace("select a.id,", "select 1 as one, a.id,"))

        _line(f"headrace, {size} models, one new column", *_best(1, command, root, widen))
        listing = [sys.executable, "-m", "engine", "ls", "--quiet", "--resource-type", "model"]
        _line(f"headrace, {size} models, ls unchanged", *_best(runs, listing, root))


def _peer(peer: Path, size: int, runs: int) -> None:
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
            best = [float("inf"), float("inf")]
            for _ in range(runs):
                for index, (line, where, kept) in enumerate(((command, root, cache), (ours, own, "target"))):
                    if kind == "cold":
                        shutil.rmtree(where / kept, ignore_errors=True)
                    best[index] = min(best[index], _run(line, where)[0])
            ratio = best[0] / best[1]
            print(
                f"{f'{name}, {size} models, {kind}':<44}{best[0]:>9.2f}   headrace {best[1]:.2f}: {ratio:.1f}x as fast"
            )


def _best(runs: int, command: Command, root: Path, before: Callable[[], None] = lambda: None) -> tuple[float, int]:
    results = []
    for _ in range(runs):
        before()
        results.append(_run(command, root))
    return min(seconds for seconds, _ in results), max(size for _, size in results)


def _run(command: Command, root: Path) -> tuple[float, int]:
    """Seconds, and the megabytes of the largest process."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent), "PYTHONWARNINGS": "ignore"}
    watch = (
        "import resource, subprocess, sys\n"
        "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)\n"
        "sys.exit(code)\n"
    )
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-S", "-c", watch, *command],
        cwd=root,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed in {root}:\n{done.stderr[-2000:]}")
    return seconds, int(done.stdout.strip().splitlines()[-1])


def _line(what: str, seconds: float, size: int) -> None:
    print(f"{what:<44}{seconds:>9.2f}{size:>7}", flush=True)


if __name__ == "__main__":
    main()
