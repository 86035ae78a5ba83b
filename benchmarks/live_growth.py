"""What grows with the turns of `engine start`: files, bytes, the time of a turn, memory; also of a browser's page.

    python -m benchmarks.live_growth [--turns 10000] [--models 20] [--page] [--seconds 3600]

Files are landed about as fast as they are read, so that every model always has one. With `--page` the live page is
open in a real browser all the time. Snapshots expire after a minute, and tables are maintained every 25 commits: days
pass in an hour. Where the turns are done before `--seconds`, a file lands each second until then. Each tenth of the
turns is a row; the last is of the time after them. Results are kept as JSON in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._commands import keep
from benchmarks.live import land, memory_of, processes, processor, running, write_project
from engine.cli.commands.docs_command import LIVE

_ROWS = 5
_PORT = 8317
_EXPIRY = "table_properties: {history.expire.max-snapshot-age-ms: 60000, history.expire.min-snapshots-to-keep: 5}\n"
_CHROMIUM = os.environ.get("ENGINE_CHROMIUM") or "/usr/bin/chromium"


@dataclass(frozen=True, slots=True)
class Growth:
    """A part of many turns, and what there was after it.

    Attributes:
        turns: since the start.
        minutes: since the start.
        turn: seconds of a turn, the median.
        processor: seconds of processor time for each turn.
        files: below target/ and .engine/, without data files.
        bytes: of these.
        data_files: of tables.
        python: memory in MB.
        java: memory in MB.
        heap: MB of the page's objects after a collection of garbage; None: no page is open.
        elements: of the page.
    """

    turns: int
    minutes: float
    turn: float
    processor: float
    files: int
    bytes: int
    data_files: int
    python: int
    java: int
    heap: float | None = None
    elements: int | None = None


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--page", action="store_true", help="with the live page open in a browser")
    parser.add_argument("--seconds", type=float, default=0.0, help="how long it runs at least")
    chosen = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory(prefix="live") as folder:
        root = Path(folder)
        write_project(root, chosen.models, header=_EXPIRY)
        serve = ("--serve", str(_PORT)) if chosen.page else ()
        with (
            running("engine", root, "--maintain-after", "25", *serve) as process,
            _page(root, open_=chosen.page) as page,
        ):
            for one in _grown(root, process.pid, chosen, page):
                print({name: getattr(one, name) for name in Growth.__slots__}, flush=True)
                found.append(one)
    keep("live-turns", found, 1)


def _grown(root: Path, pid: int, chosen: argparse.Namespace, page: Any) -> Iterator[Growth]:
    begin = time.monotonic()
    lands = _Landing(root, chosen.models)
    for tenth in range(1, 11):
        before, took = processor(pid), []
        while lands.done < chosen.turns * tenth // 10:
            took += lands.some()
        yield _looked(root, pid, lands.done, begin, took, before, page)
    before, took = processor(pid), []
    while time.monotonic() - begin < chosen.seconds:
        time.sleep(1.0)
        took += lands.one()
    if took:
        yield _looked(root, pid, lands.done, begin, took, before, page)


class _Landing:
    """Files that land, and the turns that read them."""

    def __init__(self, root: Path, models: int) -> None:
        self.root, self.models = root, models
        self.done = 0
        self._number, self._read, self._next = 0, 0, 0

    def some(self) -> list[float]:
        """Land one for each model, about as fast as they are read; the seconds of the turns that ended meanwhile."""
        took = self._turns()
        self._number += 1
        for name in range(self.models):
            land(self.root, f"s{name}", self._number, _ROWS)
        while self.done < (self._number - 1) * self.models:
            time.sleep(0.05)
            took += self._turns()
        return took

    def one(self) -> list[float]:
        """Land one file for the next model."""
        if self._next == 0:
            self._number += 1
        land(self.root, f"s{self._next}", self._number, _ROWS)
        self._next = (self._next + 1) % self.models
        return self._turns()

    def _turns(self) -> list[float]:
        """The seconds of the turns that wrote something since this was asked last."""
        found = []
        with (self.root / "output").open("rb") as lines:
            lines.seek(self._read)
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                if b'"NodeTurnFinished"' in line and b'"success"' in line:
                    found.append(float(json.loads(line)["seconds"]))
        self.done += len(found)
        return found


def _looked(
    root: Path, pid: int, turns: int, begin: float, took: list[float], before: float, page: Any
) -> Growth:  # fmt: skip
    files, size, data = _kept(root)
    memory = {one: memory_of(one) for one in processes(pid)}
    java = sum(m for one, m in memory.items() if Path(f"/proc/{one}/comm").read_text().strip() == "java")
    spent = (processor(pid) - before) / max(len(took), 1)
    return Growth(
        turns, round((time.monotonic() - begin) / 60, 1), round(statistics.median(took), 3), round(spent, 3),
        files, size, data, sum(memory.values()) - java, java, *_of_page(page),
    )  # fmt: skip


def _kept(root: Path) -> tuple[int, int, int]:
    """Files below target/ and .engine/ and their bytes, and data files."""
    sizes = []
    data = 0
    for folder in ("target", ".engine"):
        for path in (root / folder).rglob("*"):
            try:
                size = path.stat().st_size if path.is_file() else None
            except FileNotFoundError:
                continue
            if path.suffix == ".parquet":
                data += 1
            elif size is not None:
                sizes.append(size)
    return len(sizes), sum(sizes), data


@contextmanager
def _page(root: Path, *, open_: bool) -> Iterator[Any]:
    """The live page in a browser, and what its own tools know of it; None: it is not asked for."""
    if not open_:
        yield None
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        with closing(playwright.chromium.launch(executable_path=_CHROMIUM, args=arguments)) as browser:
            page = browser.new_page()
            _opened(page, root)
            yield page.context.new_cdp_session(page)


def _opened(page: Any, root: Path) -> None:
    deadline = time.monotonic() + 120.0
    while True:
        try:
            page.goto((root / "target" / LIVE.file).read_text().strip())
        except Exception:  # the server starts
            if time.monotonic() > deadline:
                raise
            time.sleep(1.0)
        else:
            return


def _of_page(page: Any) -> tuple[float | None, int | None]:
    if page is None:
        return None, None
    page.send("HeapProfiler.collectGarbage")
    page.send("Performance.enable")
    found = {one["name"]: one["value"] for one in page.send("Performance.getMetrics")["metrics"]}
    return round(found["JSHeapUsedSize"] / 1e6, 2), int(found["Nodes"])


if __name__ == "__main__":
    main()
