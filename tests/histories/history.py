"""One history: its steps, their builds, and the ways out of those that are rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.state.operations import Refresh
from tests.fault_injection.points import killing_after
from tests.histories import operations
from tests.histories.difference import DifferenceError
from tests.histories.follow import EARLIEST, LOST, NOW, REFRESH, Followed
from tests.histories.kept_running import KeptRunning
from tests.histories.kinds import KINDS
from tests.histories.points import Points
from tests.histories.promises import promised
from tests.histories.steps import Plan, Step
from tests.histories.world import World
from tests.lab import Result, run_alone, wait_for_locks

# What no user should see: the engine or Spark gave up.
RAW = {"internal-error", "query-failed", "spark-session", "compiler-error"}
# What became of a test that a killed process did not come to.
_KILLED = "killed"


@dataclass(slots=True)
class History:
    """Runs a plan in a world.

    Attributes:
        world: the project.
        plan: what happens to it.
        tell: gets each step and build as a line.
        tally: counts operations and rejections.
        models: what is known of each.
        undo: how to undo what was done since the last build that went well.
        points: of this process.
        kept: `engine start`, in whose turns everything is built; None: by builds.
    """

    world: World
    plan: Plan
    tell: Callable[[str], None] = lambda _: None
    tally: Counter[str] = field(default_factory=Counter)
    models: dict[str, Followed] = field(default_factory=dict)
    undo: operations.Undo = field(default_factory=list)
    points: Points = field(default_factory=Points.planted)
    kept: KeptRunning | None = None

    def run(self) -> None:
        """Run all steps.

        Raises:
            DifferenceError: something differs.
        """
        self.world.make(self.plan)
        for name in self.plan.models:
            self.models[name] = Followed(self.world, name, self.models.get(KINDS[name].upstream))
        for step in self.plan.steps:
            self.tally[step.operation] += 1
            self.tell(f"  {step}")
            self._step(step)
        self._stop()
        # The last step may have been a kill, or a build of some models: one build brings all tables up to date, and one
        # more changes nothing.
        self._settled("refresh", self._build())
        waiting = [name for name, known in self.models.items() if known.kind.tested]
        for name in waiting:
            # What waits is shown once its test passes.
            self.world.settings[name]["limit"] = KINDS[name].settings["limit"][0]
            self.world.write()
        for _ in range(2 if waiting else 0):
            # The first may have rebuilt some of them only, whose state was lost.
            self._settled("refresh", self._build())
        before, last = self._snapshots(), self._build()
        if last.code != 0 or self._snapshots() != before:
            raise DifferenceError(f"a second build: {last.code} {errors(last)}, {before} {self._snapshots()}")

    def _stop(self) -> None:
        """End `engine start`, which has left nothing to do if nothing failed."""
        if self.kept is None:
            return
        settled, before = self.kept.settle(), self._snapshots()
        self.kept.stop()
        self.kept = None
        self._check(settled, ("start",), kept=True)
        if settled.code == 0 and not any(known.kind.tested for known in self.models.values()):
            result = self._build()
            if result.code != 0 or self._snapshots() != before:
                raise DifferenceError(
                    f"a build after start: {result.code} {errors(result)}, {before} {self._snapshots()}"
                )

    def _step(self, step: Step) -> None:
        """Do a step, and unless it is a kill what is offered until a build is not rejected."""
        if self.kept is not None:
            self.kept.prepare(step.operation)
        for source, rows in step.files:
            self.world.land(source, rows, *(step.detail if step.operation == "odd-name" else ()))
        if step.operation == "go-back" and step.detail[1]:
            # Else there may be nothing to undo.
            self._build(*operations.ask(REFRESH, [step.model], self.models))
        self.world.said = ""
        arguments = operations.begin(step, self.world, self.models, self.points, self.undo)
        if self.world.said:
            self.tell(f"    {self.world.said}")
        result = self._crash(step) if step.operation == "crash" else self._build(*arguments)
        self.points.armed = None
        killed = step.operation in ("kill", "crash") or (step.operation == "rename-table" and step.detail[0])
        if not killed:
            self._settled(step.way, result)

    def _crash(self, step: Step) -> Result:
        """Build in a process of its own, which is killed at a point."""
        point, skip = step.detail
        ended = run_alone(self.world.lab.root, "build", script=killing_after(point, step.model, skip))
        wait_for_locks(self.world.lab.root)
        result = Result(ended.returncode, ended.stdout, ended.stderr)
        self._check(result, ("build", "killed"))
        return result

    def _build(self, *arguments: str) -> Result:
        # A request to rebuild, or to accept something, is a build's.
        if self.kept is not None and not arguments:
            result = self.kept.settle()
        else:
            if self.kept is not None:
                self.kept.stop()
            plan = promised(self.world.lab, arguments)
            result = self.world.lab.run("build", *arguments)
            plan.check(result)
        self._check(result, ("build", *arguments), kept=self.kept is not None and not arguments)
        if result.code not in (0, 1):
            raise DifferenceError(f"exit code {result.code}: {result.text[-3000:]}")
        raw, _, trace = result.text.partition("Traceback")
        if errors(result) & RAW or trace:
            raise DifferenceError(f"a raw error {errors(result) & RAW}: {trace[:3000] or raw[-3000:]}")
        return result

    def _settled(self, way: str, result: Result) -> None:
        """Take the ways that are offered until a build is not rejected."""
        for chosen in (way, "refresh", "undo", "refresh"):
            if self._well(result):
                break
            self.tally[f"rejected: {', '.join(sorted(errors(result)))}"] += 1
            result = self._way(chosen, result)
        if not self._well(result):
            raise DifferenceError(f"stuck: {errors(result)} {result.text[-3000:]}")
        self.undo.clear()

    def _way(self, way: str, result: Result) -> Result:
        failed = self._failed(result)
        if way == "undo" or (way == "reset" and self._frozen()):
            # A reset would give up what was set back.
            while self.undo:
                self.undo.pop()()
            return self._build()
        if not failed:
            return self._build()
        what = REFRESH
        if way == "reset" and all(KINDS[name].key for name in failed):
            what = EARLIEST
        elif way == "reset" and all(KINDS[name].keeps_now for name in failed):
            what = NOW
        return self._build(*operations.ask(what, failed, self.models))

    def _well(self, result: Result) -> bool:
        """Whether nothing is left to do; rows that wait for a test that failed are as the project wants it."""
        waits = (
            errors(result) <= {"test-failed"} and "error" not in _statuses(result).values() and bool(_tested(result))
        )
        return (result.code == 0 or waits) and not self._frozen()

    def _frozen(self) -> bool:
        return any(known.frozen is not None for known in self.models.values())

    def _failed(self, result: Result) -> list[str]:
        ended = _statuses(result)
        failed = [name for name in self.models if ended.get(name) == "error"]
        named = {e.get("node") for e in result.events if e["event"] == "Diagnosed" and e.get("level") == "error"}
        return failed or [name for name in self.models if name in named]

    def _check(self, result: Result, command: tuple[str, ...], *, kept: bool = False) -> None:
        """Compare all tables after a build, however it ended; `kept`: after turns of `engine start`, none or many."""
        self.tell(f"    {' '.join(command)}: {result.code} {' '.join(sorted(set(result.codes())))}")
        ended = {e["node"].split(".", 1)[1]: e for e in result.events if e["event"] == "ModelFinished"}
        tested, unheard = _tested(result), _KILLED if result.code < 0 else ""
        warnings = " ".join(str(e) for e in result.events if e["event"] == "Diagnosed")
        for name, known in self.models.items():
            end = ended.get(name, {"status": "skipped"})
            done = end["status"] not in ("error", "skipped")
            late = end.get("late", 0)
            if kept:
                # What has no turn is up to date.
                done = done or (name not in ended and result.code == 0 and not known.kind.tested)
                late = _late(result, name)
            known.follow(done=done, warnings=warnings, late=late, tested=tested.get(name, unheard))
        for known in self.models.values():
            # A full refresh that was begun is finished by a later build.
            begun = known.asked == REFRESH and self.world.state(known.name).journal.open_operation(Refresh) is not None
            if known.asked != LOST and not begun:
                known.asked = ""

    def _snapshots(self) -> dict[str, int | None]:
        return {name: self.world.snapshot(name) for name in self.models}


def errors(result: Result) -> set[str]:
    """The codes of the errors of a build."""
    return {e["code"] for e in result.events if e["event"] == "Diagnosed" and e.get("level") == "error"}


def _tested(result: Result) -> dict[str, str]:
    """How the tests ended that rows wait for, by model."""
    ended = {e["node"].split(".")[1]: e["status"] for e in result.events if e["event"] == "TestFinished"}
    return {name.removesuffix("_is_small"): status for name, status in ended.items() if name.endswith("_is_small")}


def _late(result: Result, name: str) -> int | None:
    """How many rows the turns of a model say were late; None: one failed, and its micro-batch came again."""
    turns = [e for e in result.events if e["event"] == "ModelFinished" and e["node"] == f"model.{name}"]
    return None if any(turn["status"] == "error" for turn in turns) else sum(turn["late"] for turn in turns)


def _statuses(result: Result) -> dict[str, str]:
    return {e["node"].split(".", 1)[1]: e["status"] for e in result.events if e["event"] == "ModelFinished"}
