"""`publish: on_tests_pass`: rows wait where readers do not see them until the model's tests have passed.

Micro-batches are committed to the table's branch `engine_staged`, and so is the new content of a batch table, with
columns of its own (see `engine.lake.staged_replacement`); a full refresh of a stream waits in its staging table. Tests
read what waits. When all tests of the model have passed, one commit shows it: the branch becomes `main`, or the staging
table is published. Otherwise the rows stay where they are, later builds continue after them, and tests decide again.
Nothing of this is kept in state: what waits is the branch, or the generation that is being built, while it is there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from engine.compile import DataTest, Model
from engine.errors import Diagnostic, Level, Location, StateError
from engine.events import Status
from engine.lake import staging_branch
from engine.lake import table_writer as lake
from engine.lake.commits import STAGED
from engine.lake.fencing.table_fence import fence_of
from engine.lake.table_facts import TableFacts
from engine.node_ids import shown_name
from engine.plan.actions.state_checks import HELD, WAYS, decided_by_tests, deciding, staged_fault, waits
from engine.runtime.context.run_context import Run
from engine.runtime.lifecycle import full_refresh
from engine.runtime.sinks.table_setup import describe
from engine.state import ModelState, Phase, TableState
from engine.state.operations import Refresh


def branch_of(model: Model) -> str | None:
    """The branch that a model's micro-batches are committed to; None: main."""
    return STAGED if waits(model) else None


def as_written(run: Run, model: Model, back_to: int | None = None) -> TableFacts | None:
    """A model's table with the history that its writer continues from: with the staged rows, if there are any.

    `back_to`: a snapshot that should be in its history, also if it has expired.

    Raises:
        StateError: `staged-rows`: rows wait, and the model does not make them wait any more; `publish-diverged`.
    """
    table = run.lake.table(model.relation.schema, model.relation.name, STAGED, back_to)
    if table is None or STAGED not in table.branches:
        return table
    _check(run, model, table)
    return table


def _check(run: Run, model: Model, table: TableFacts) -> None:
    """Check that the staged rows can be published.

    Raises:
        StateError: `staged-rows`, `publish-diverged`.
    """
    main = run.lake.table(model.relation.schema, model.relation.name)
    if (fault := staged_fault(model, table, main)) is not None:
        raise StateError.of((fault,))


def publish(run: Run, model: Model) -> int | None:
    """Show the rows of a model that wait to readers, in one commit.

    Returns:
        The snapshot that readers see from then on; None: nothing waited.

    Raises:
        StateError: `publish-diverged`.
    """
    folder = run.state(model)
    pending = _whole(folder)
    if pending is not None:
        return full_refresh.publish(run, model, folder, run.spark.newSession(), pending).snapshot
    relation = model.relation
    table = run.lake.table(relation.schema, relation.name, STAGED)
    if table is None or STAGED not in table.branches:
        return None
    _check(run, model, table)
    snapshot = staging_branch.publish(run.spark, relation.sql, fence_of(run.lease_marker(model)))
    if not model.streaming:
        # The columns of a replacement came with it, without their comments.
        describe(run, model)
        _note_table(run, model, folder)
    return snapshot


def _note_table(run: Run, model: Model, folder: TableState) -> None:
    state, there = folder.load(), run.lake.table(model.relation.schema, model.relation.name)
    if state is not None and there is not None:
        folder.save(replace(state, made=there.made))


def _whole(folder: TableState) -> ModelState | None:
    pending = folder.pending()
    return pending if pending is not None and pending.phase is Phase.STAGED else None


def waiting(run: Run, model: Model) -> str | None:
    """What gives the rows of a model that wait, as SQL reads it; None: none do."""
    pending = _whole(run.state(model))
    if pending is not None:
        return full_refresh.staging(model, pending.generation).sql
    relation = model.relation
    table = run.lake.table(relation.schema, relation.name, STAGED)
    if table is None or STAGED not in table.branches:
        return None
    # By its id, not by the branch: that is gone once they are published, and a test may be running then.
    return f"{relation.sql} VERSION AS OF {table.snapshot}"


def apart(run: Run, model: Model) -> bool:
    """Whether the new content of a batch table waits beside it: descriptions of that are not those of the table."""
    return waits(model) and not model.streaming and waiting(run, model) is not None


def reading_what_waits(run: Run, test: DataTest) -> str:
    text = test.sql
    for model_id in test.depends_on:
        model = run.manifest.nodes[model_id]
        if isinstance(model, Model) and waits(model):
            found = waiting(run, model)
            text = text.replace(model.relation.sql, found) if found is not None else text
    return text


@dataclass(slots=True)
class Gates:
    """What the tests of one run say about the staged rows; `chosen`: those of the run that have not ended, by model."""

    run: Run
    deciding: Mapping[str, frozenset[str]]
    chosen: dict[str, set[str]]
    passed: set[str] = field(default_factory=set)
    _rebuilt: list[str] = field(default_factory=list)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def built(self, model: Model) -> tuple[Diagnostic, ...]:
        if model.id not in self.deciding or self.chosen[model.id]:
            return ()
        return self._decide(model)

    def tested(self, test: DataTest, status: Status) -> tuple[Diagnostic, ...]:
        with self._guard:
            left = self.chosen.get(test.model, set())
            if test.id not in left:
                return ()
            left.discard(test.id)
            if status is Status.PASS:
                self.passed.add(test.id)
            last = not left
        model = self.run.manifest.nodes[test.model]
        return self._decide(model) if last and isinstance(model, Model) else ()

    def close(self) -> None:
        """Let go of the staging tables that were published; a test of another model may have been reading them."""
        for relation in self._rebuilt:
            lake.drop_table(self.run.spark, relation)

    def _decide(self, model: Model) -> tuple[Diagnostic, ...]:
        missing = sorted(self.deciding[model.id] - self.passed)
        if not missing:
            if (pending := _whole(self.run.state(model))) is not None:
                self._rebuilt.append(full_refresh.staging(model, pending.generation).sql)
            publish(self.run, model)
            return ()
        rows = waiting(self.run, model)
        if not self.run.stop.is_set() and _whole(self.run.state(model)) is not None:
            # It is dropped by the next build, which continues with the table as it is.
            self.run.state(model).journal.end(Refresh)
        return (_held(model, missing, rows),) if rows is not None else ()


def _held(model: Model, missing: Iterable[str], rows: str) -> Diagnostic:
    names = ", ".join(map(shown_name, missing))
    message = (
        f"'{model.name}' was not published, and readers still see the previous rows; tests that failed or did "
        f"not run: {names}"
    )
    hint = (
        f"Fix the cause, then publish with engine test -s {model.name}. Or {WAYS.format(model.name)}. To query the "
        f"staged rows: {rows.replace('`', '')}"
    )
    return Diagnostic(HELD, message, hint, Level.WARNING, node=model.name, location=Location(model.file))


def gates(run: Run, nodes: Iterable[str]) -> Gates:
    chosen = set(nodes)
    models = [m for i in chosen if isinstance(m := run.manifest.nodes[i], Model) and waits(m)]
    models += decided_by_tests(run.manifest, chosen)
    decide = {model.id: deciding(run.manifest, model) for model in models}
    return Gates(run, decide, {model: set(tests & chosen) for model, tests in decide.items()})
