"""What must hold of one table after each build, however it ended."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engine.state import ModelState, Phase
from tests.histories.batches import Batch, Checkpoint, read
from tests.histories.difference import DifferenceError
from tests.histories.kinds import FEED, KINDS, SAME, Kind
from tests.histories.oracle import Content, Oracle, State, content
from tests.histories.world import World
from tests.lab import Result

# Why a new checkpoint may begin.
REFRESH, NOW, EARLIEST, LOST = "refresh", "reset-now", "reset-earliest", "lost"


# What belongs to a generation, and comes back with it.
_OF_A_GENERATION = (
    "oracle", "generation", "applied", "deployed", "tidy", "skipped", "warned", "begun", "read", "gap", "gaps", "owed",
    "shown", "count", "base", "since",
)  # fmt: skip


@dataclass(slots=True)
class Followed:
    """One model, and what the harness knows of it.

    Attributes:
        world: the project.
        name: of the model.
        upstream: the model whose table it streams.
        oracle: its table.
        generation: number and query id of its checkpoint; None: it has none yet.
        applied: the last micro-batch that the oracle knows; -1: none.
        deployed: the meaning of what its checkpoint holds; None: it holds nothing.
        asked: why a new checkpoint may begin; empty: it may not.
        skipped: files that a reset passed over.
        tidy: the last build of it left nothing to repeat.
        warned: renamed files of which the user was told that they are read again.
        frozen: what the table holds while it is set back; None: it is not.
        begun: the micro-batch that is in the table and that Spark has not noted, with the state before it.
        read: of a stream of a table, how many of its rows were read by the last build that ended.
        gap: rows of that table that a reset to now may have skipped, from and to.
        gaps: those that were skipped.
        base: rows of that table that were read before a backfill of it, as they were then.
        since: how many rows the table had after the backfill, which brought the stream none.
        owed: a rebuild of a stream of a table was asked for and has not happened.
        shown: what readers see of a table whose rows wait for a test.
        count: how many of its rows, if rows are appended.
        earlier: what was known of each of its generations when it was looked at last, by its id.
    """

    world: World
    name: str
    upstream: Followed | None = None
    oracle: Oracle = field(init=False)
    generation: tuple[int, str] | None = None
    applied: int = -1
    tidy: bool = True
    deployed: tuple[str, ...] | None = None
    asked: str = ""
    skipped: set[str] = field(default_factory=set)
    warned: set[str] = field(default_factory=set)
    frozen: Content | None = None
    begun: tuple[Batch, State] | None = None
    read: int = 0
    gap: tuple[int, int] | None = None
    gaps: tuple[tuple[int, int], ...] = ()
    base: tuple[dict[str, Any], ...] = ()
    since: int = 0
    owed: bool = False
    shown: Content = field(default_factory=Counter)
    count: int = 0
    earlier: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.oracle = Oracle(self.kind)

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

    def follow(self, *, done: bool, warnings: str, late: int | None, tested: str = "") -> None:
        """Compare the table with what its micro-batches must have written.

        Args:
            done: the build says that the table is up to date.
            warnings: of the build.
            late: how many rows or groups it says were late; None: that is not known.
            tested: how the test ended that rows of the model wait for; empty: it did not run.

        Raises:
            DifferenceError: it differs.
        """
        self._follow(done=done, warnings=warnings, late=late)
        if self.kind.tested and self.frozen is None:
            self._waited(done=done, tested=tested)
        self._remember()

    def _remember(self) -> None:
        """Note what is known of the generation that the table has now."""
        state = None if self.kind.batch or self.frozen is not None else self.world.loaded(self.name)
        if state is not None:
            self.earlier[state.generation_id] = {name: copy.deepcopy(getattr(self, name)) for name in _OF_A_GENERATION}

    def went_back(self) -> None:
        """A rollback has ended: if the table has another generation now, it is what that was when it was replaced."""
        state = None if self.kind.batch or self.frozen is not None else self.world.loaded(self.name)
        generation = self.generation[0] if self.generation is not None else None
        if state is None or (self.upstream is None and state.generation == generation):
            return
        known = self.earlier.get(state.generation_id)
        if known is None:
            self.differs(f"it went back to a generation that nobody knows: {state.generation}")
        quarantined = self.oracle.quarantined
        for name, value in copy.deepcopy(known).items():
            setattr(self, name, value)
        # Its rows stay, whoever quarantined them.
        self.oracle.quarantined = quarantined
        self.same()
        if self.kind.tested and self.readers() != self.shown:
            self.differs("readers do not see the rows of before the rebuild")

    def same_or_earlier(self) -> None:
        """While a rollback is not finished readers see the rows of one generation, whole."""
        if self.kind.batch or self.frozen is not None or self.kind.tested:
            return
        found = self.rows()
        known = [one["oracle"].table() for one in self.earlier.values()]
        if found not in [self.oracle.table(), *known]:
            self.differs("a rollback that was killed left rows of no generation")

    def _follow(self, *, done: bool, warnings: str, late: int | None) -> None:
        if self.frozen is not None and not (done and self.asked == REFRESH):
            if done:
                self.differs("the table was set back, and a build accepted that")
            self.same()
            return
        self.frozen = None
        if self.kind.batch:
            self._follow_batch(done=done)
            return
        if self.upstream is not None:
            self._follow_table(self.upstream, done=done)
            return
        state = self.world.loaded(self.name)
        if state is None or state.phase is Phase.STAGED:
            self._without_state(waits=state is not None, done=done)
            return
        before = self.oracle.late_rows
        seen = read(self.world.state(self.name).checkpoint(state.generation))
        self._began(state, seen)
        meaning = self._meaning()
        if self.deployed is not None and done and self.deployed != meaning:
            self.differs(f"an edit that breaks its state was accepted: {self.deployed} -> {meaning}")
        self._repeated(seen)
        for batch in seen.batches[self.applied + 1 : seen.committed + 1]:
            self._apply(batch)
        if done:
            self._done(seen, meaning, warnings)
            if self.tidy and late is not None and (counted := self.oracle.late_rows - before) != late:
                self.differs(f"late rows were counted as {late}, not {counted}")
        elif len(seen.batches) > self.applied + 1 and self.rows() != self.oracle.table():
            self.begun = seen.batches[self.applied + 1], copy.deepcopy(self.oracle.state)
            self._apply(self.begun[0])
        self.same()
        self.tidy = done
        if done:
            self._quarantine()

    def same(self) -> None:
        """Raise an error unless the table holds what it must."""
        wanted, found = self.oracle.table() if self.frozen is None else self.frozen, self.rows()
        if found != wanted:
            more, less = found - wanted, wanted - found
            shown = [[dict(row) for row in [*part][:3]] for part in (more, less)]
            counted = f"{more.total()} rows too many, {less.total()} missing of {wanted.total()}"
            self.differs(f"{counted}: {shown[0]} {shown[1]}")

    def _held(self) -> bool:
        """Whether a table that was built anew waits beside the table for its test."""
        return bool(self.kind.tested) and not self.kind.batch and self.world.state(self.name).unpublished() is not None

    def _waited(self, *, done: bool, tested: str) -> None:
        """Readers see the rows of the table if its test has passed, else those of before."""
        passes = self._anew().passes(self.world.effective(self.name)) if self._held() else self._passes()
        if tested in ("pass", "fail") and (tested == "pass") != passes:
            self.differs(f"its test ended with {tested}")
        if done and tested not in ("pass", "fail", "killed"):
            self.differs(f"it was built, and its test did not run: {tested}")
        if done and passes:
            self._published()
        elif self.readers() != self.shown:
            self.differs("rows were shown before their test had passed")

    def decided(self, result: Result, accept: bool) -> None:
        """`engine publish --accept` or `engine test` has decided about what waits."""
        passes = accept or (self._anew().passes(self.world.effective(self.name)) if self._held() else self._passes())
        if accept and result.code != 0:
            self.differs(f"publish ended with {result.code}: {result.text[-2000:]}")
        if self.world.state(self.name).unpublished() is None and self.generation is not None and not self.kind.batch:
            state = self.world.loaded(self.name)
            if state is not None and state.generation != self.generation[0]:
                self.asked = REFRESH
                self._follow(done=False, warnings="", late=0)
                self.asked = ""
        if passes:
            self._published()
        elif self.readers() != self.shown:
            self.differs("rows were shown though their test failed")

    def _published(self) -> None:
        self.shown, self.count = self.oracle.table(), len(self.oracle.rows)
        if self.world.staged(self.name) is not None or self._held():
            self.differs("its test passed, and rows still wait")
        if self.readers() != self.shown:
            self.differs("readers do not see the rows of a table whose test has passed")

    def _passes(self) -> bool:
        return self.oracle.passes(self.world.effective(self.name))

    def _anew(self) -> Oracle:
        """The table as it is built from all that has landed."""
        anew = Oracle(self.kind)
        rows = [row for name in self.world.files(self.name) for row in self.world.landed[name] if row is not None]
        anew.batch({self.kind.sources[0]: rows}, 0, self.world.effective(self.name), 0)
        return anew

    @property
    def visible(self) -> list[dict[str, Any]]:
        """The rows that a stream of the table reads."""
        return self.oracle.rows[: self.count] if self.kind.tested else self.oracle.rows

    def readers(self) -> Content:
        """What readers see of the table."""
        there = self.world.table(self.name)
        return content(self.world.rows(self.name)) if there is not None and there.main is not None else Counter()

    def freeze(self, back: Callable[[], Any]) -> Callable[[], None]:
        """The table was set back: until that is undone it must stay as it is; how to undo it."""
        self.frozen = self.rows()

        def undone() -> None:
            if self.frozen is not None:
                back()
                self.frozen = None

        return undone

    def rows(self, ending: str = "") -> Content:
        """What the table holds."""
        if self.kind.tested and not ending and (staged := self.world.staged(self.name)) is not None:
            found = self.world.sql(f"select * from lake.<table> version as of {staged}", self.name)
            return content(row.asDict() for row in found)
        there = self.world.table(self.name, ending)
        return content(self.world.rows(self.name, ending)) if there is not None else Counter()

    def differs(self, text: str) -> None:
        raise DifferenceError(f"{self.name}: {text}")

    def _meaning(self) -> tuple[str, ...]:
        settings = self.world.effective(self.name)
        values = [settings[name] for name in self.kind.meaning]
        for word, name in (("factor", "factor"), ("scaled", "macro")):
            if any(word in value for value in values):
                values.append(settings[name])
        return tuple(SAME.get(value, value) for value in values)

    def _began(self, state: ModelState, seen: Checkpoint) -> None:
        """Notice a new checkpoint."""
        if seen.query is None:
            return
        generation = state.generation, seen.query
        if generation == self.generation:
            return
        fresh = self.applied == -1
        if not fresh and not self.asked:
            self.differs(f"a new checkpoint began without being asked for: {self.generation} {generation}")
        if self.asked in (REFRESH, LOST):
            self.oracle.refreshed()
            self.skipped = set()
        elif self.asked in (NOW, EARLIEST):
            if self.asked == NOW and not fresh and not self.kind.keeps_now:
                self.differs("a reset to now was accepted, which takes rows out of the table's totals")
            self.oracle.reset()
            self.skipped = self.world.files(self.name) if self.asked == NOW else set()
        self.generation, self.applied, self.asked, self.deployed = generation, -1, "", None
        self.begun = None
        self.warned = set()

    def _apply(self, batch: Batch) -> None:
        rows: dict[str, list[Any]] = {name: [] for name in self.kind.sources}
        bad = 0
        for name in batch.files:
            if name not in self.skipped:
                landed = self.world.landed[name]
                bad += landed.count(None)
                rows[name.split("/")[0]] += [row for row in landed if row is not None]
        known = self.oracle.state.watermark
        if self.kind.watermark and len(rows) == 1 and batch.watermark != known:
            self.differs(f"batch {batch.number} began with the watermark {batch.watermark}, not {known}")
        self.oracle.there = self.rows()
        self.oracle.batch(rows, bad, self.world.effective(self.name), batch.watermark)
        self.applied, self.deployed = batch.number, self._meaning()

    def _repeated(self, seen: Checkpoint) -> None:
        """A micro-batch that was in the table before is computed again for its state, by the settings of now."""
        if self.begun is None or seen.committed < self.begun[0].number:
            return
        (batch, before), self.begun = self.begun, None
        oracle, applied, deployed = self.oracle, self.applied, self.deployed
        self.oracle = copy.deepcopy(oracle)
        self.oracle.state = before
        self._apply(batch)
        oracle.state = self.oracle.state
        self.oracle, self.applied, self.deployed = oracle, applied, deployed

    def _done(self, seen: Checkpoint, meaning: tuple[str, ...], warnings: str) -> None:
        if self._held():
            self._refused()
            return
        self.deployed = meaning if self.applied >= 0 else None
        self._complete(seen, warnings)

    def _without_state(self, *, waits: bool, done: bool) -> None:
        """If its state was lost, the table that was built anew may wait for its test."""
        if waits:
            self._refused()
        elif done:
            self.differs("built, and there is no state")
        self.same()

    def _refused(self) -> None:
        """A rebuilt table that waits beside the table, and is given up, has read what the table has not."""
        pending = self.world.state(self.name).unpublished()
        assert pending is not None
        for batch in read(self.world.state(self.name).checkpoint(pending.generation)).batches:
            self.oracle.quarantined += sum(self.world.landed[name].count(None) for name in batch.files)

    def _complete(self, seen: Checkpoint, warnings: str) -> None:
        """All files that have landed were read, once, and no micro-batch is owed."""
        if twice := [name for name, count in Counter(seen.listed).items() if count > 1]:
            self.differs(f"files are read twice: {twice}")
        done = {name for batch in seen.batches for name in batch.files}
        # The topic is read from the end on, where files are listed and passed over.
        passed = {name for name in self.skipped if name.startswith(f"{FEED}/")}
        if missing := self.world.files(self.name) - done - passed:
            self.differs(f"files were not read: {sorted(missing)}")
        renamed = {name for name in done if "-renamed" in name and name.replace("-renamed", "") in done}
        fresh = renamed - self.skipped - self.warned
        if any(name.split("/")[1] not in warnings for name in fresh):
            self.differs(f"renamed files were read again without a word: {sorted(fresh)}")
        self.warned |= fresh
        if self.kind.watermark and len(self.kind.sources) == 1 and seen.batches:
            last, known = seen.batches[-1].watermark, self.oracle.state.watermark
            if known > last:
                self.differs(f"a micro-batch without rows is owed: {last} {known}")

    def _follow_table(self, upstream: Followed, *, done: bool) -> None:
        """A stream of a table: it holds what the rows of the other table give."""
        asked, self.asked = self.asked, ""
        rows = self._streamed(upstream)
        if asked == NOW and self.read < len(rows):
            self.gap = self.read, len(rows)
        self.owed = self.owed or asked == REFRESH
        if not done:
            return
        if asked in (REFRESH, LOST):
            self.gap, self.gaps = None, ()
            self.base, self.since, rows = (), 0, upstream.visible
        # A build that was killed may have begun the new checkpoint, or not; a rebuild that was asked for is finished.
        tried = [(rows, self.gaps)] + ([(rows, (*self.gaps, self.gap))] if self.gap is not None else [])
        tried += [(upstream.visible, ())] if self.owed else []
        self.owed = False
        for rows, gaps in tried:
            self._computed(_without(rows, gaps))
            self.gaps = gaps
            if rows is upstream.visible:
                self.base, self.since = (), 0
            if self.rows() == self.oracle.table():
                break
        self.read, self.gap = len(rows), None
        self.same()

    def _streamed(self, upstream: Followed) -> list[dict[str, Any]]:
        """The rows of another table that a stream of it has read, or is about to."""
        return [*self.base, *upstream.visible[self.since :]] if self.base or self.since else upstream.visible

    def keeps_what_it_has_read(self) -> None:
        """The rows of the table that it streams are about to be replaced."""
        if self.upstream is not None:
            self.base = tuple(_without(self._streamed(self.upstream), self.gaps))
            self.gaps, self.read = (), len(self.base)

    def _follow_batch(self, *, done: bool) -> None:
        """A batch table: it is what the rows that there are now give, or before the build ended what they gave before."""
        before, self.oracle = self.oracle, Oracle(self.kind)
        if self.upstream is not None:
            rows = [dict(row) for row, count in self.upstream.oracle.table().items() for _ in range(count)]
        else:
            names = self.world.files(self.name)
            rows = [row for name in names for row in self.world.landed[name] if row is not None]
        self.oracle.compute(rows, self.world.effective(self.name))
        self.asked = ""
        if not done and self.rows() != self.oracle.table():
            self.oracle = before
        self.same()

    def _computed(self, rows: list[dict[str, Any]]) -> None:
        """What the model makes of the rows of another table."""
        self.oracle = Oracle(self.kind)
        if self.name in ("down", "shown"):
            columns = self.world.effective(self.name).get("columns", "")
            names = ("id", "kind", "amount") if columns != "*" else None
            self.oracle.rows = [{name: row.get(name) for name in names or row} for row in rows]
        else:
            for kind in {row["kind"] for row in rows}:
                amounts = [row["amount"] for row in rows if row["kind"] == kind]
                self.oracle.keyed[kind] = {"kind": kind, "n": len(amounts), "amount": sum(amounts)}

    def _quarantine(self) -> None:
        wanted, found = self.oracle.quarantined, self.rows("__quarantine").total()
        if wanted != found:
            self.differs(f"the quarantine has {found} rows, not {wanted}")


def _without(rows: list[dict[str, Any]], gaps: tuple[tuple[int, int], ...]) -> list[dict[str, Any]]:
    return [row for n, row in enumerate(rows) if not any(a <= n < b for a, b in gaps)]
