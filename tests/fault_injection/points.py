"""What happens at the points that a run passes (`engine.kill_points`).

A process is killed when each table is at its own point: `killed_alone(.., script=killing({"paid": "committed"}))`; what
is on disk afterwards must prove where each was. `killing_after` ends it as soon as one table comes by for the n-th time.
`reached` lets something happen in this process.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from engine import kill_points

_SECONDS = 200


def killing(points: Mapping[str, str | tuple[str, int]], files: Path = Path()) -> str:
    """The script; a point of a micro-batch is a name and its number. `files`: where `merging` looks for the table."""
    return f"from pathlib import Path\nfrom tests.fault_injection.points import plant\nplant({dict(points)!r}, {str(files)!r})\n"


def killing_after(point: str, table: str, skip: int) -> str:
    """The script for one point of any micro-batch, which is passed so many times before."""
    return f"from tests.fault_injection.points import plant_after\nplant_after({point!r}, {table!r}, {skip})\n"


def plant_after(point: str, table: str, skip: int) -> None:
    """Let this process die at a point of any micro-batch of a table, once it was passed so many times."""
    passed = count()

    def arrive(reached: str, at: str, batch: int | None, _: str) -> None:
        if (reached, at) == (point, table) and batch is not None and next(passed) == skip:
            print('{"event": "Killed"}', flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    kill_points.listen(arrive)


def plant(points: Mapping[str, str | tuple[str, int]], files: str) -> None:
    """Let this process wait at points, by table, and die when all are reached."""
    gate = _Gate(dict(points))

    def arrive(point: str, table: str, batch: int | None, where: str) -> None:
        if point == "kept" and gate.waits("half kept", table, batch):
            (Path(where) / "_SUCCESS").unlink()
            gate.arrive("half kept", table, batch)
        elif point == "merging" and gate.waits(point, table, batch):
            gate.last()
            known = _files(files, table)
            threading.Thread(target=gate.at_first_file, args=(files, table, known), daemon=True).start()
        else:
            gate.arrive(point, table, batch)

    kill_points.listen(arrive)


@contextmanager
def reached(point: str, act: Callable[[str, int | None, str], object], times: int | None = None) -> Iterator[list[str]]:
    """Let something happen where a point is passed, the first so many times; gives the tables that passed it then."""
    seen: list[str] = []

    def arrive(name: str, table: str, batch: int | None, where: str) -> None:
        if name == point and (times is None or len(seen) < times):
            seen.append(table)
            act(table, batch, where)

    end = kill_points.listen(arrive)
    try:
        yield seen
    finally:
        end()


class KilledError(Exception):
    """Stands for a kill: nothing after it runs."""


def kill(*_: object) -> None:
    """Do as if the process had been killed, for tests whose process is to live on."""
    raise KilledError


class _Gate:
    """Who is to come, and who is there."""

    def __init__(self, points: dict[str, str | tuple[str, int]]) -> None:
        self._points = {table: point if isinstance(point, tuple) else (point, None) for table, point in points.items()}
        self._there: set[str] = set()
        self._change = threading.Condition()

    def waits(self, point: str, table: str, batch: int | None = None) -> bool:
        return self._points.get(table) == (point, batch)

    def arrive(self, point: str, table: str, batch: int | None = None) -> None:
        if not self.waits(point, table, batch):
            return
        with self._change:
            self._there.add(table)
            if self._there == set(self._points):
                os.kill(os.getpid(), signal.SIGKILL)
            self._change.notify_all()
        time.sleep(_SECONDS)
        message = f"still to come: {set(self._points) - self._there}"
        raise TimeoutError(message)

    def last(self) -> None:
        """Wait until all others are there."""
        with self._change:
            self._change.wait_for(lambda: len(self._there) == len(self._points) - 1, _SECONDS)

    def at_first_file(self, files: str, table: str, known: set[Path]) -> None:
        """Arrive once a MERGE has written its first file; what Java then still does is its own affair."""
        while not _files(files, table) - known:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGKILL)


def _files(folder: str, table: str) -> set[Path]:
    return set(Path(folder).rglob(f"{table}/data/*.parquet"))
