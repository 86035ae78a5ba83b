"""`python -m tests.security.fuzz_answers --count 5000 --seed 1`: damaged answers of servers and damaged artifacts.

Each case is a real answer (a REST catalog's, a table's metadata, a listing of S3, a registry's), a file of a table
(metadata, manifest list, manifest, rows), of its state or checkpoint, or an artifact (manifest.json, run_results.json) with
random damage: values of other types, keys that are gone, parts that repeat, bytes
that are flipped, statuses and headers that do not fit. It is read as commands read it, and must end with an answer or a
diagnostic, within ten seconds and 500 MB of memory beyond what the process had before.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from engine.cli.main import invoke
from engine.compile import Catalog
from engine.errors import EngineError
from engine.lake.clients import catalog_client, rest_session
from engine.lake.clients.catalog_client import check_before_java, client
from engine.lake.lake_reader import Lake
from engine.object_store import s3_client as aws_client
from engine.object_store.s3_client import s3_client
from engine.object_store.s3_settings import S3Settings
from engine.sources.files import s3_files
from engine.sources.registry import Registry, RegistrySettings
from tests.security import answers
from tests.security.answering import Answering, answering
from tests.security.damage import damaged_bytes, damaged_json, damaged_reply

SECONDS = 10
MEGABYTES = 500
_BATCH = 100
_MOST_ADDRESSES = 8 << 30
Work = Callable[["Place", random.Random], object]


class Place:
    """What the cases of a process share: a server, and a project with artifacts."""

    def __init__(self, folder: Path, server: Answering) -> None:
        self.folder, self.server = folder, server
        self.project = answers.project(folder / "project")
        self.artifacts = folder / "artifacts"
        self.artifacts.mkdir()
        # What is there names its folder, so that it is copied back to where it was made.
        self.built, self.whole = answers.built(folder / "built"), folder / "whole"
        shutil.copytree(self.built, self.whole)
        self.lake = answers.lake(folder / "lake")
        self.known = {name: json.loads((self.project / "target" / name).read_text()) for name in answers.ARTIFACTS}


def rest(place: Place, chance: random.Random) -> object:
    """Everything that is asked of a REST catalog, one of whose answers is damaged."""
    return _catalog(place, chance, answers.rest())


def _catalog(place: Place, chance: random.Random, known: Mapping[str, Any]) -> object:
    chosen = chance.choice(sorted(known))
    place.server.answers = {**known, chosen: damaged_reply(chance, known[chosen])}
    login = {"credential": "shop:a-secret"} if chance.random() < 0.5 else {}
    keys = {"uri": place.server.url, **login}
    catalog = Catalog("rest", "lake", Path("/dev/null/nowhere"), keys)
    catalog_client._clients.clear()
    lake = Lake(catalog)
    asks: tuple[Callable[[], object], ...] = (
        lambda: lake.names("s"),
        lambda: client(catalog).entries("s"),
        lambda: lake.table("s", "base", back_to=5),
        lambda: lake.columns("s", "base"),
        lambda: lake.view("s", "base"),
        lambda: lake.rows("s", "base", 10),
        lambda: check_before_java(catalog),
    )
    return [_answered(ask) for ask in asks]


def s3(place: Place, chance: random.Random) -> object:
    """A listing of a bucket and an object in it."""
    known = answers.s3()
    chosen = chance.choice(sorted(known))
    place.server.answers = {**known, chosen: damaged_reply(chance, known[chosen])}
    settings = S3Settings(place.server.url, "us-east-1", "id", f"secret{chance.random()}", path_style_access=True)
    s3_client.cache_clear()
    from engine.lake.catalog.metadata_document import read_document
    from engine.lake.catalog.object_warehouse import ObjectWarehouse

    files = ObjectWarehouse("s3://bucket/folder", lambda: settings)
    return [
        _answered(lambda: list(s3_files.walk("s3a://bucket/folder", settings))),
        _answered(lambda: s3_files.exists("s3a://bucket/folder/a.json", settings)),
        _answered(lambda: read_document(files, "s3://bucket/folder/v1.metadata.json"), OSError, EOFError, ValueError),
        _answered(files.check),
    ]


def registry(place: Place, chance: random.Random) -> object:
    """The schema of an id, and the versions of a subject."""
    known = answers.registry()
    chosen = chance.choice(sorted(known))
    place.server.answers = {**known, chosen: damaged_reply(chance, known[chosen])}
    found = Registry(RegistrySettings("main", place.server.url, timeout=0.3, patience=0.3))
    return [
        _answered(lambda: found.schema(1)),
        _answered(lambda: found.version("shop-value")),
        _answered(lambda: found.versions("shop-value", 5)),
    ]


def files(place: Place, chance: random.Random) -> object:
    """A table of a local warehouse, one of whose files is damaged."""
    chosen = chance.choice(
        sorted(path for path in place.lake.rglob("*") if path.suffix in {".json", ".avro", ".parquet"})
    )
    content = chosen.read_bytes()
    is_json = chosen.suffix == ".json" and chance.random() < 0.8
    chosen.write_bytes(damaged_json(chance, json.loads(content)) if is_json else damaged_bytes(chance, content))
    lake = Lake(Catalog("sqlite", "lake", place.lake))
    try:
        return [
            _answered(lambda: lake.table("s", "base", back_to=5)),
            _answered(lambda: lake.columns("s", "base")),
            _answered(lambda: lake.rows("s", "base", 10)),
            _answered(lambda: lake.count("s", "base")),
        ]
    finally:
        chosen.write_bytes(content)


def tables(place: Place, chance: random.Random) -> object:
    """Commands that read a table and its state, of whose files one is damaged or has a name that no run gave."""
    root = place.built
    shutil.rmtree(root)
    shutil.copytree(place.whole, root)
    known = (root / ".engine/lake").rglob("*.json"), (root / ".engine/state").rglob("*")
    chosen = chance.choice(sorted(path for paths in known for path in paths if path.is_file()))
    if chance.random() < 0.1:
        beside = chosen if chance.random() < 0.5 else chosen.parent
        beside.rename(
            beside.with_name(chance.choice(["\u00b2", "9" * 100, "-1", "00", "\u0663", "1.compact", "x\u202ey"]))
        )
    else:
        content = chosen.read_bytes()
        lines = content.split(b"\n")
        number = chance.randrange(len(lines))
        with suppress(ValueError):
            value = json.loads(lines[number])
            lines[number] = damaged_json(chance, value) if chance.random() < 0.8 else lines[number]
        made = b"\n".join(lines)
        chosen.write_bytes(made if made != content else damaged_bytes(chance, content))
    return run_command(chance.choice(answers.READING), root)


def artifacts(place: Place, chance: random.Random) -> object:
    """Commands that compare with an earlier manifest.json and run_results.json."""
    for name, known in place.known.items():
        content = json.dumps(known).encode()
        if chance.random() < 0.7:
            content = damaged_json(chance, known) if chance.random() < 0.8 else damaged_bytes(chance, content)
        (place.artifacts / name).write_bytes(content)
    command = chance.choice(answers.COMMANDS)
    return run_command([part.format(state=place.artifacts) for part in command], place.project)


def run_command(command: Sequence[str], root: Path, codes: Sequence[int] = (0, 1, 2)) -> int:
    """Run a command, which must end with one of these codes and not with an error of its own."""
    text = StringIO()
    with redirect_stdout(text), redirect_stderr(text):
        code = invoke([*command, "--project-dir", str(root)])
    if code not in codes or "internal-error" in text.getvalue() or "Traceback" in text.getvalue():
        raise AssertionError(f"{' '.join(command)}: exit code {code}: {text.getvalue()[-2000:]}")
    return code


WORKS: tuple[Work, ...] = (rest, rest, rest, s3, registry, files, tables, tables, artifacts, artifacts)


def _answered(ask: Callable[[], object], *allowed: type[Exception]) -> object:
    """What a question is answered with, or the diagnostic that it ends with."""
    try:
        return ask()
    except EngineError as error:
        return error.diagnostics[0].code if hasattr(error, "diagnostics") else error.diagnostic.code
    except allowed as error:
        return type(error).__name__


@dataclass(frozen=True, slots=True)
class Cases:
    """What is damaged: the place that is made for some cases, and the kinds of cases.

    Attributes:
        place: made of a folder and a server.
        works: of a place and a random number, as often as they are to be chosen.
    """

    place: Callable[[Path, Answering], Any]
    works: Sequence[Callable[[Any, random.Random], object]]


def case(works: Sequence[Callable[[Any, random.Random], object]], place: Any, seed: int, number: int) -> None:
    """Carry out a case.

    Raises:
        Exception: of any kind, where it ends neither with an answer nor with a diagnostic.
    """
    chance = random.Random(f"{seed}/{number}")
    chance.choice(works)(place, chance)


def main(name: str = "fuzz_answers", about: str | None = __doc__, cases: Cases | None = None) -> int:
    cases = cases or Cases(Place, WORKS)
    parser = argparse.ArgumentParser(prog=f"python -m tests.security.{name}", description=about)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="one case")
    given = parser.parse_args()
    numbers = list(range(given.count)) if given.only is None else [given.only]
    begin, failed, slowest, largest = time.monotonic(), 0, 0.0, 0
    while numbers:
        done, what, seconds, megabytes = _batch(cases, given.seed, numbers[:_BATCH])
        slowest, largest = max(slowest, seconds), max(largest, megabytes)
        if what:
            failed += 1
            print(f"--- case {numbers[done]} of seed {given.seed}", what, sep="\n", flush=True)
            done += 1
        numbers = numbers[done:]
    count = given.count if given.only is None else 1
    print(f"{count - failed} of {count} cases of seed {given.seed} ended in an answer or a diagnostic,"
          f" {time.monotonic() - begin:.0f} s; the slowest {slowest:.1f} s, the largest process {largest} MB")  # fmt: skip
    return 1 if failed else 0


def _batch(cases: Cases, seed: int, numbers: list[int]) -> tuple[int, str, float, int]:
    """Carry out cases in a process of their own: how many went well, what the next did, and seconds and memory."""
    with tempfile.TemporaryDirectory(prefix="answers", ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "log"
        log.touch()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            try:
                _work(cases, Path(folder), log, seed, numbers)
            except BaseException:  # noqa: BLE001 - it is reported
                traceback.print_exc()
            finally:
                os._exit(9)
        status = os.waitpid(child, 0)[1]
        lines = [json.loads(line) for line in log.read_text().splitlines()]
    done = sum(1 for line in lines if "seconds" in line)
    seconds = max((line["seconds"] for line in lines if "seconds" in line), default=0.0)
    megabytes = max((line["megabytes"] for line in lines if "seconds" in line), default=0)
    failure = next((line["failed"] for line in lines if "failed" in line), "")
    if not failure and status:
        ended = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"code {status >> 8}"
        failure = f"the process ended by {ended}"
    return done, failure, seconds, megabytes


def _work(cases: Cases, folder: Path, log: Path, seed: int, numbers: list[int]) -> None:
    os.environ |= {"ENGINE_CACHE": str(folder / "cache"), "HOME": str(folder), "ENGINE_TRUST": "1"}
    (folder / "cache").mkdir(mode=0o700)
    rest_session.SILENCE = rest_session.SECONDS = aws_client.ANSWER_SECONDS = 0.3
    aws_client.ATTEMPTS = 1
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, _late)
    out = os.open(folder / "printed", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(out, 2)
    with answering() as server, log.open("a") as ended:
        place = cases.place(folder, server)
        case(cases.works, place, seed, -1)
        before = _megabytes()
        # A reader without a bound ends here, and not the machine.
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_ADDRESSES, _MOST_ADDRESSES))
        for number in numbers:
            begin = used_time()
            late_at[:] = [begin + SECONDS]
            try:
                signal.alarm(SECONDS)
                case(cases.works, place, seed, number)
                signal.alarm(0)
            except BaseException:  # noqa: BLE001 - whatever is not a diagnostic is what is looked for
                print(json.dumps({"failed": traceback.format_exc()[-4000:]}), file=ended, flush=True)
                os._exit(1)
            used = _megabytes() - before
            if used > MEGABYTES:
                print(json.dumps({"failed": f"it took {used} MB"}), file=ended, flush=True)
                os._exit(1)
            record = {"seconds": used_time() - begin, "megabytes": used}
            print(json.dumps(record), file=ended, flush=True)
    os._exit(0)


class LateError(BaseException):
    """A case takes too long; no reader of errors takes it for an error of a server."""


# When the case that is at work is late, by `used_time`.
late_at = [0.0]


def used_time() -> float:
    """Seconds that have gone, but for those in which this process could not have the processor (proc(5): schedstat)."""
    waited = 0
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):
            waited += int((thread / "schedstat").read_text().split()[1])
    return time.monotonic() - waited / 1e9


def _late(*_: object) -> None:
    left = late_at[0] - used_time()
    if left <= 0:
        raise LateError(f"more than {SECONDS} seconds")
    signal.setitimer(signal.ITIMER_REAL, max(left, 0.1))


def _megabytes() -> int:
    """The most memory that the process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    sys.exit(main())
