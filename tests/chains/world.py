"""A project of chains: each build has an edit of every model; its tables are compared with all rows that were read."""

from __future__ import annotations

import copy
import csv
import io
import os
import random
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chains.edits import begun, edited
from tests.chains.shapes import Expected, Row, Shape
from tests.histories.lab import Printed
from tests.lab import Lab, LabSession

# What a plan or a build may answer to an edit over state.
REJECTIONS = {"model-changed", "source-changed", "renamed-from", "rename-blocked", "unknown-column"}
_FAR = "2024-05-20T00:30:00Z"


@dataclass
class Chain:
    """A model, its edits so far and its rows."""

    shape: Shape
    length: int
    expected: Expected = field(default_factory=Expected)
    edits: list[str] = field(default_factory=list)


def differences(
    session: LabSession, printed: Printed, folder: Path, seed: str, count: int, tally: Counter[str]
) -> list[str]:
    """Build a project of chains again and again; what its tables have that they should not, and the other way."""
    chance = random.Random(seed)
    lab = Lab(folder, session, printed)  # type: ignore[arg-type]
    chains = [Chain(begun(chance, number), chance.randint(2, 5)) for number in range(count)]
    last, faults = max(chain.length for chain in chains) + 1, list[str]()
    for number in range(last + 1):
        landed = [_land(chance, lab, chain, number, last=number == last) for chain in chains]
        before = [copy.deepcopy(chain.shape) for chain in chains]
        for chain in chains:
            name = edited(chance, chain.shape) if 0 < number <= chain.length else ""
            _keep(chain) if not name else chain.edits.append(name)
        if fault := _built(lab, chains, before, tally):
            return [*faults, f"build {number}: {fault}"]
        for chain, rows in zip(chains, landed, strict=True):
            chain.expected.build(chain.shape, rows)
            faults += _compared(lab, chain, number)
        if faults:
            return faults
    tally["chains"] += len(chains)
    tally["edits"] += sum(len(chain.edits) for chain in chains)
    tally.update(edit for chain in chains for edit in chain.edits)
    return faults


def _keep(chain: Chain) -> None:
    """Leave a model as the build before has it; its names are those of its table by now."""
    shape = chain.shape
    shape.renamed, shape.stage_renamed, shape.renamed_from, shape.stage_renamed_from = {}, {}, "", ""


def write(lab: Lab, chains: list[Chain]) -> None:
    """Write the sources and models of all chains, and nothing else."""
    shutil.rmtree(lab.root / "models", ignore_errors=True)
    lines = [line for chain in chains for line in chain.shape.declarations()]
    lab.write("sources/raw.yml", "sources:\n  - name: raw\n    tables:\n" + "\n".join(lines) + "\n")
    for chain in chains:
        for name, text in chain.shape.files().items():
            lab.model(name, text)


def _built(lab: Lab, chains: list[Chain], before: list[Shape], tally: Counter[str]) -> str:
    """Build, and take back the edits that are rejected; why the build failed for another reason."""
    for _ in range(len(chains) + 1):
        write(lab, chains)
        result = lab.run("build", "--threads", "2")
        if not result.code:
            return ""
        said = [event for event in result.events if event["event"] == "Diagnosed" and event.get("level") == "error"]
        nodes = {str(event.get("node") or "").rpartition(".")[2] for event in said if event["code"] in REJECTIONS}
        places = {str((event.get("location") or {}).get("file") or "") for event in said if event["code"] in REJECTIONS}
        rejected = [chain for chain in chains if _names(chain.shape) & (nodes | {Path(p).stem for p in places})]
        if not rejected or {event["code"] for event in said} - REJECTIONS:
            return result.text
        for chain in rejected:
            shape = before[chains.index(chain)]
            if not chain.edits or repr(shape) == repr(chain.shape):
                return f"rejected as it was: {result.text}"
            tally["rejected"] += 1
            tally[f"rejected: {chain.edits.pop()}"] += 1
            chain.shape = copy.deepcopy(shape)
            _keep(chain)
    return "rejected again and again"


def _names(shape: Shape) -> set[str]:
    return {shape.model, shape.table, shape.stage} - {""}


def _land(chance: random.Random, lab: Lab, chain: Chain, number: int, *, last: bool) -> dict[str, list[Row]]:
    """Land rows in the files of a chain; now and then there are none."""
    if number and not last and chance.random() < 0.15:
        return {folder[-1]: [] for folder in chain.shape.folders}
    found = {}
    for folder in chain.shape.folders:
        pairs = [(k, j) for k in ("x", "y", "z", None) for j in ("x", "y", "z")]
        rows = [_row(chance, number, *pair) for pair in chance.sample(pairs, chance.randint(1, 4))]
        if last:
            rows.append({"k": f"far{folder[-1]}", "j": "far", "a": 1, "b": 1, "c": 1, "ts": _FAR})
        found[folder[-1]] = rows
        if not chain.shape.positional:
            lab.land(f"{number}", rows, folder)
        else:
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows(row.values() for row in rows)
            path = lab.write(f"{folder}/{number}.csv", text.getvalue())
            os.utime(path, (1_700_000_000 + number * 10, 1_700_000_000 + number * 10))
    return found


def _row(chance: random.Random, number: int, k: str | None, j: str) -> Row:
    hour = number * 2 + chance.randint(0, 1)
    values = {"a": chance.randint(1, 9), "b": chance.randint(1, 9) * 100, "c": chance.randint(1, 9) * 10_000}
    return {"k": k, "j": j, **values, "ts": f"2024-05-01T{hour:02}:{chance.randint(1, 59):02}:00Z"}


def _compared(lab: Lab, chain: Chain, number: int) -> list[str]:
    shape = chain.shape
    got = Counter(_texts([row.get(item.name) for item in shape.items]) for row in lab.rows(shape.table))
    wanted = Counter(_texts([row.get(item.name) for item in shape.items]) for row in chain.expected.rows.values())
    if got == wanted:
        return []
    texts = "\n".join(f"-- {name}\n{text}" for name, text in shape.files().items())
    lost, wrong = sorted((wanted - got).elements())[:8], sorted((got - wanted).elements())[:8]
    return [f"{shape.model}, build {number}, edits {chain.edits}\n{texts}\n  lost {lost}\n  wrong {wrong}"]


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(f"{v:%Y-%m-%dT%H:%M:%S}" if hasattr(v, "strftime") else str(v) for v in values)
