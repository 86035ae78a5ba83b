"""`python -m tests.security.fuzz --count 500 --seed 1`: prints each damaged project that does harm; exit code 1 if one does.

Each case is the example project with one to three random changes (`tests/security/mutations.py`), read by the commands
that answer from files, in a process of its own. It must end with the exit code 0 or 1 and without a traceback, change
nothing outside target/ and the cache, print nothing that steers a terminal, and show the secret nowhere.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

# Before the fork: the cases share what they import.
import engine.compile
import engine.compile.artifacts.write_artifacts
import engine.docs
import engine.project
from engine.cli.main import invoke
from tests.security.hostile_project import SECRET, disguises
from tests.security.mutations import Mutation, mutations
from tests.security.test_hostile_project import contents
from tests.security.test_terminal import steering

REPOSITORY = Path(engine.project.__file__).parents[2]
COMMANDS = (["parse"], ["compile"], ["ls", "--output", "json"], ["docs", "generate"], ["lineage"])
PARTS = ("models", "sources", "macros", "tests/models", "project.yml")
# What ends a case that never ends, or that takes the whole machine.
_SECONDS = 120
_MEMORY = 4_000_000_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.security.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", type=int, help="one case")
    parser.add_argument("--show", action="store_true", help="print what the cases change, without running them")
    parser.add_argument(
        "--keep", type=Path, help="with --only: leave the project in this folder, and print what the commands print"
    )
    given = parser.parse_args()
    numbers = range(given.first, given.first + given.count) if given.only is None else [given.only]
    started, failed = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="fuzz", ignore_cleanup_errors=True) as folder:
        whole = original(Path(folder) / "original")
        files = sorted(str(path.relative_to(whole)) for path in whole.rglob("*") if path.is_file())
        for number in numbers:
            case = mutations(given.seed, number, files)
            if given.show:
                print(number, *(one.said for one in case), sep="\n  ")
                continue
            found = harm(whole, Path(folder) / f"case{number}", case, given.keep)
            if found:
                failed += 1
                print(f"--- case {number} of seed {given.seed}", *(one.said for one in case), sep="\n  ")
                print(*found, sep="\n    ", flush=True)
    if not given.show:
        print(
            f"{len(numbers) - failed} of {len(numbers)} cases of seed {given.seed} did no harm, {time.monotonic() - started:.0f} s"
        )
    return 1 if failed else 0


def original(folder: Path) -> Path:
    """Write the example project."""
    for part in PARTS:
        copy = shutil.copytree if (REPOSITORY / part).is_dir() else shutil.copy
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        copy(REPOSITORY / part, folder / part)
    return folder


def harm(whole: Path, folder: Path, case: list[Mutation], keep: Path | None = None) -> list[str]:
    """What the commands did with a damaged project that they may not do.

    Args:
        whole: the project before the damage.
        folder: one that is not there yet; it is removed.
        case: the damage.
        keep: where the project stays.
    """
    root = keep or folder / "project"
    shutil.copytree(whole, root)
    for mutation in case:
        mutation.change(root)
    before, printed = _seen(root), folder / "printed"
    (folder / "cache").mkdir(parents=True, exist_ok=True)
    codes, ended = _run(root, folder, printed)
    output = printed.read_bytes()
    if keep:
        sys.stdout.flush()
        sys.stdout.buffer.write(output)
    found = [
        f"{' '.join(command)}: exit code {code}"
        for command, code in zip(COMMANDS, codes, strict=False)
        if code not in (0, 1)
    ]
    if ended or len(codes) < len(COMMANDS):
        found.append(f"{' '.join(COMMANDS[min(len(codes), len(COMMANDS) - 1)])}: the process ended by {ended}")
    found += [
        line
        for line in output.decode("utf-8", "replace").splitlines()
        if "Traceback" in line or "[internal-error]" in line
    ]
    found += [f"prints {what}" for what in steering(output, terminal=False)[:3]]
    after = _seen(root)
    found += [f"changed {path!r}" for path in {*before, *after} if before.get(path) != after.get(path)]
    texts = [
        output,
        *(path.read_bytes() for path in [*folder.rglob("*"), *(root / "target").rglob("*")] if path.is_file()),
    ]
    forms = {name: form.encode() for name, form in disguises(SECRET).items()}
    found += [f"shows the secret: {name}" for name, form in forms.items() if any(form in text for text in texts)]
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return found


def _seen(root: Path) -> dict[str, str]:
    target = str(root / "target")
    return {path: what for path, what in contents(root).items() if not path.startswith(target)}


def _run(root: Path, folder: Path, printed: Path) -> tuple[list[int], str]:
    """The exit codes of the commands in a process of their own, and what ended it early."""
    codes = folder / "codes"
    codes.touch()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            _work(root, folder, printed, codes)
        finally:
            os._exit(9)
    status = os.waitpid(child, 0)[1]
    ended = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else ""
    if not ended and os.WEXITSTATUS(status):
        ended = f"exit code {os.WEXITSTATUS(status)}"
    return [int(code) for code in codes.read_text().split()], ended


def _work(root: Path, folder: Path, printed: Path, codes: Path) -> None:
    signal.alarm(_SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.chdir(folder)
    os.environ |= {"ENGINE_SECRET_X": SECRET, "ENGINE_CACHE": str(folder / "cache"), "HOME": str(folder)}
    with codes.open("a") as ended:
        for command in COMMANDS:
            code = invoke([*command, "--project-dir", str(root)])
            sys.stdout.flush()
            sys.stderr.flush()
            print(code, file=ended, flush=True)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
