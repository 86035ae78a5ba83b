"""Builds that are killed, and what they were doing at that moment."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engine.state import checkpoint as spark_checkpoint
from tests.fault_injection.points import killing_after
from tests.kills.project import STREAMS, Example
from tests.lab import REPOSITORY, Lab, wait_for_locks

_RUN = "\nimport sys\nfrom engine.cli.main import invoke\nsys.exit(invoke(sys.argv[1:]))\n"
# Several models run side by side: the first of the middle ones that one of them was in counts.
PHASES = ("start", "between commit and note", "in a micro-batch", "between micro-batches", "tests and tables", "end")
# Before and after each thing that a micro-batch writes.
POINTS = {
    "before the write": "computing",
    "before the commit": "committing",
    "after the commit": "committed",
    "after the note": "recorded",
}
# A build that hangs is a fault of its own.
_LONGEST = 1200.0


@dataclass(slots=True)
class Tally:
    """What the kills hit, by phase; those at named points stand under the point's name too."""

    phases: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    builds: int = 0

    @property
    def kills(self) -> int:
        return sum(self.phases.values())


@dataclass(slots=True)
class Build:
    """A build in a process of its own, and what it has told so far."""

    process: subprocess.Popen[str]
    events: list[dict[str, Any]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    _readers: list[threading.Thread] = field(default_factory=list)

    def follow(self) -> None:
        for stream in (self.process.stdout, self.process.stderr):
            reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
            reader.start()
            self._readers.append(reader)

    def _read(self, stream: Any) -> None:
        for line in stream:
            self.said.append(line)
            if line.startswith("{"):
                self.events.append(json.loads(line))

    def wait(self) -> int:
        code = self.process.wait(_LONGEST)
        for reader in self._readers:
            reader.join(30)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return code

    def has(self, kind: str, node: str = "") -> bool:
        return any(e["event"] == kind and node in {"", e.get("node")} for e in self.events)


def start(lab: Lab, planted: str = "") -> Build:
    """Start a build of the project; `planted`: Python that runs before it."""
    command = [sys.executable, "-c", planted + _RUN, "build", "--project-dir", str(lab.root)]
    process = subprocess.Popen(
        [*command, "--log-format", "json"], cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    build = Build(process)
    build.follow()
    return build


def build_alone(lab: Lab) -> None:
    """Build everything in a process of its own, undisturbed."""
    build = start(lab)
    assert build.wait() == 0, "".join(build.said)


def kill_again_and_again(example: Example, kills: int, seed: int, tell: Callable[[str], None]) -> Tally:
    """Build until so many builds were killed; more files land whenever the last ones were read to their end."""
    dice, tally, usual = random.Random(seed), Tally(), 30.0
    while tally.kills < kills:
        point = dice.choice([*POINTS, None, None, None, None]) if tally.builds else None
        model, skip = dice.choice(STREAMS), dice.randrange(2)
        begin = time.monotonic()
        build = start(example.lab, killing_after(POINTS[point], model, skip) if point else "")
        tally.builds += 1
        if point is None:
            _kill_at_random(build, dice, usual)
        code = build.wait()
        seconds = time.monotonic() - begin
        wait_for_locks(example.lab.root)
        example.note_batches()
        if code == -signal.SIGKILL:
            phase = _phase(example, build)
            tally.phases[phase] += 1
            if point is not None:
                tally.points[f"{point} of {model}"] += 1
            tell(f"kill {tally.kills}: {phase}{f', {point} of {model}' if point else ''}, after {seconds:.0f} s")
        else:
            assert code == 0, "".join(build.said)
            usual = seconds
            tell(f"a build that ended before its kill, {seconds:.0f} s")
        if code == -signal.SIGKILL and not build.has("ModelFinished"):
            usual *= 1.1  # so that every build comes to its tests and its end sometimes
        if build.has("ModelFinished", "model.hours"):
            tell(f"  landed {example.land(dice.randint(5, 12))} files")
    return tally


def _kill_at_random(build: Build, dice: random.Random, usual: float) -> None:
    """One kill in five at any time, one in five after the streams, the others once models run."""
    kind = dice.randrange(5)
    if kind > 0:
        _wait_until(
            build, "ModelStarted" if kind > 1 else "ModelFinished", "" if kind > 1 else "model.top_destinations"
        )
    wait = dice.uniform(0, usual if kind == 0 else usual * 0.8 if kind > 1 else 5.0)
    try:
        build.process.wait(wait)
    except subprocess.TimeoutExpired:
        build.process.kill()


def _wait_until(build: Build, event: str, node: str) -> None:
    while not build.has(event, node) and build.process.poll() is None:
        time.sleep(0.02)


def _phase(example: Example, build: Build) -> str:
    """What a killed build was at, from what it told and what is on disk."""
    if not build.has("RunStarted") or not build.has("ModelStarted"):
        return "start"
    if build.has("RunFinished"):
        return "end"
    started = {e["node"] for e in build.events if e["event"] == "ModelStarted"}
    ended = {e["node"] for e in build.events if e["event"] == "ModelFinished"}
    streams = [name for name in STREAMS if f"model.{name}" in started - ended]
    found = {_stands(example, name) for name in streams}
    return next((phase for phase in PHASES if phase in found), "tests and tables")


def _stands(example: Example, model: str) -> str:
    checkpoint = example.lab.state / model / "1" / "checkpoint"
    begun, done = spark_checkpoint.last_started(checkpoint), spark_checkpoint.last_committed(checkpoint)
    if begun == done:
        return "between micro-batches"
    table = example.lab.table(model)
    written = {s.marker("batch-id") for s in table.history} if table else set()
    return "between commit and note" if str(begun) in written else "in a micro-batch"
