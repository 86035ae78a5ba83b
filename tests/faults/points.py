"""Points at which a process is killed: each table waits at its own until all are at theirs, then it ends.

It is for the process that dies: `killed_alone(.., script=killing({"paid": "committed"}))`. What is on disk afterwards
must prove where each was. `killing_after` ends it as soon as one table comes by for the n-th time.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

_SECONDS = 200


def killing(points: Mapping[str, str | tuple[str, int]], files: Path = Path()) -> str:
    """The script; a point of a micro-batch is a name and its number. `files`: where `merging` looks for the table."""
    return f"from pathlib import Path\nfrom tests.faults.points import plant\nplant({dict(points)!r}, {str(files)!r})\n"


def killing_after(point: str, table: str, skip: int) -> str:
    """The script for one point of any micro-batch, which is passed so many times before."""
    return f"from tests.faults.points import plant_after\nplant_after({point!r}, {table!r}, {skip})\n"


def plant_after(point: str, table: str, skip: int) -> None:
    """Let this process die at a point of any micro-batch of a table, once it was passed so many times."""
    passed = count()

    def arrive(reached: str, at: str, batch: int | None = None) -> None:
        if (reached, at) == (point, table) and batch is not None and next(passed) == skip:
            print('{"event": "Killed"}', flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    watch(arrive)


def plant(points: Mapping[str, str | tuple[str, int]], files: str) -> None:
    """Let this process wait at points, by table, and die when all are reached."""
    from engine.runtime.kept import KeptBatches
    from engine.runtime.outputs import merge

    gate = _Gate(dict(points))
    watch(gate.arrive)

    def half(kept: KeptBatches, _: object, batch: int, *__: object) -> None:
        table = kept.folder.parent.parent.name
        if gate.waits("half kept", table, batch):
            (kept._path(batch) / "_SUCCESS").unlink()
            gate.arrive("half kept", table, batch)

    _around(KeptBatches, "keep", after=half)

    def merging(merged: merge.Merged, markers: Mapping[str, str], *_: object) -> None:
        table = merged.output.model.name
        if gate.waits("merging", table, int(markers["batch-id"])):
            gate.last()
            known = _files(files, table)
            threading.Thread(target=gate.at_first_file, args=(files, table, known), daemon=True).start()

    _around(merge.Merged, "commit", before=merging)


def watch(arrive: Callable[..., None]) -> Callable[[], None]:
    """Let every point tell who comes by: its name, the table, and of a micro-batch the number; gives how to end that."""
    from engine.lake import branches, write
    from engine.lake import merge as lake_merge
    from engine.runtime import rebuild
    from engine.runtime.writer import BatchWriter
    from engine.state import TableState
    from engine.state.objects import Folder

    before: list[tuple[Any, str, Any]] = []

    def around(owner: Any, name: str, **how: Callable[..., object]) -> None:
        before.append((owner, name, getattr(owner, name)))
        _around(owner, name, **how)

    def of_staged(staged: Any, markers: Mapping[str, str]) -> tuple[str, int]:
        return staged.table.name().rsplit(".", 1)[-1], int(markers.get("batch-id", -1))

    def committing(_: object, markers: Mapping[str, str], *__: object, **___: object) -> None:
        arrive("committing", markers.get("model", ""), int(markers.get("batch-id", -1)))

    for module in (write, lake_merge):
        around(module, "settled", before=committing)
    around(BatchWriter, "_write", before=lambda w, _, batch: arrive("computing", _table(w.relation), batch))
    around(
        write,
        "append",
        before=lambda *given, **_: arrive("written", *of_staged(*given[:2])),
        after=lambda *given, **_: arrive("appended", *of_staged(*given[:2])),
    )
    around(write, "overwrite", before=lambda *given, **_: arrive("written", *of_staged(*given[:2])))
    around(
        BatchWriter,
        "record",
        before=lambda w, **new: arrive("committed", _table(w.relation), new.get("batch")),
        after=lambda w, **new: arrive(
            "recorded" if "batch" in new else "started", _table(w.relation), new.get("batch")
        ),
    )
    around(
        branches,
        "publish",
        before=lambda _, relation, *__, **___: arrive("publishing", _table(relation)),
        after=lambda _, relation, *__, **___: arrive("published", _table(relation)),
    )
    around(write, "replace", before=lambda *given, **_: arrive("replacing", _table(given[1])))
    around(
        rebuild,
        "_record",
        before=lambda model, *_, **__: arrive("replaced", model.name),
        after=lambda model, *_, **__: arrive("noted", model.name),
    )
    around(
        TableState,
        "save",
        after=lambda folder, state: arrive("renewed", folder.table) if state.generation > 1 else None,
    )
    around(
        TableState,
        "discard",
        after=lambda folder, old: arrive("discarded", folder.table) if old == 1 else None,
    )
    around(
        Folder,
        "delete",
        after=lambda _, key: arrive("half discarded", key.split("/")[-3]) if key.endswith("/1/model.json") else None,
    )

    def end() -> None:
        for owner, name, inner in reversed(before):
            setattr(owner, name, inner)

    return end


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


def _around(
    owner: Any, name: str, *, before: Callable[..., object] | None = None, after: Callable[..., object] | None = None
) -> None:
    inner = getattr(owner, name)

    def outer(*given: Any, **named: Any) -> Any:
        if before is not None:
            before(*given, **named)
        done = inner(*given, **named)
        if after is not None:
            after(*given, **named)
        return done

    setattr(owner, name, outer)


def _table(relation: str) -> str:
    return relation.replace("`", "").rsplit(".", 1)[-1]


def _files(folder: str, table: str) -> set[Path]:
    return set(Path(folder).rglob(f"{table}/data/*.parquet"))
