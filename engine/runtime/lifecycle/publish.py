"""`publish: on_tests_pass`: rows wait where readers do not see them until the model's tests have passed.

Micro-batches, and the new content of a batch table (`engine.lake.staging_branch`), are committed to the branch
`engine_staged`; a full refresh of a stream waits in its staging table. When all tests have passed, one commit shows it;
otherwise the rows stay, later builds continue after them, and tests decide again. No state has it: what waits is the
branch, or the generation that is being built.
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
from engine.lake.table_facts import TableFacts
from engine.lake.table_fence import fence_of
from engine.node_ids import shown_name
from engine.plan.actions.state_checks import HELD, WAYS, decided_by_tests, deciding, staged_fault, waits
from engine.runtime.context.run_context import Run
from engine.runtime.lifecycle import full_refresh
from engine.runtime.sinks.table_setup import describe
from engine.state import ModelState, Phase, TableState
from engine.state.operations import Refresh


def branch_of(model: Model) -> str | None:
    return STAGED if waits(model) else None


def as_written(run: Run, model: Model, back_to: int | None = None) -> TableFacts | None:
    """Return a model's table with the history that its writer continues from: with the staged rows, if any.

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
    main = run.lake.table(model.relation.schema, model.relation.name)
    if (fault := staged_fault(model, table, main)) is not None:
        raise StateError.from_diagnostics((fault,))


def publish(run: Run, model: Model) -> int | None:
    """Show waiting rows to readers in one commit; return the snapshot seen from then on; None: nothing waited.

    Raises:
        StateError: `publish-diverged`.
    """
    folder = run.state(model)
    staged_state = _staged_refresh(folder)
    if staged_state is not None:
        return full_refresh.publish(run, model, folder, run.spark.newSession(), staged_state).snapshot
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
    state, table = folder.load(), run.lake.table(model.relation.schema, model.relation.name)
    if state is not None and table is not None:
        folder.save(replace(state, made=table.shape))


def _staged_refresh(folder: TableState) -> ModelState | None:
    pending_state = folder.unpublished()
    return pending_state if pending_state is not None and pending_state.phase is Phase.STAGED else None


def staged_rows(run: Run, model: Model) -> str | None:
    staged_state = _staged_refresh(run.state(model))
    if staged_state is not None:
        return full_refresh.staging(model, staged_state.generation).sql
    relation = model.relation
    table = run.lake.table(relation.schema, relation.name, STAGED)
    if table is None or STAGED not in table.branches:
        return None
    # By its id, not by the branch: that is gone once they are published, and a test may be running then.
    return f"{relation.sql} VERSION AS OF {table.snapshot}"


def is_staged_beside(run: Run, model: Model) -> bool:
    """Whether the new content of a batch table waits beside it: descriptions of that are not those of the table."""
    return waits(model) and not model.streaming and staged_rows(run, model) is not None


def with_staged_rows(run: Run, test: DataTest) -> str:
    text = test.sql
    for model_id in test.depends_on:
        model = run.manifest.nodes[model_id]
        if isinstance(model, Model) and waits(model):
            rows_sql = staged_rows(run, model)
            text = text.replace(model.relation.sql, rows_sql) if rows_sql is not None else text
    return text


@dataclass(slots=True)
class Gates:
    """The tests of one run that decide on staged rows; `remaining_tests`: those that have not ended, by model."""

    run: Run
    deciding: Mapping[str, frozenset[str]]
    remaining_tests: dict[str, set[str]]
    passed: set[str] = field(default_factory=set)
    _rebuilt: list[str] = field(default_factory=list)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def built(self, model: Model) -> tuple[Diagnostic, ...]:
        if model.id not in self.deciding or self.remaining_tests[model.id]:
            return ()
        return self._decide(model)

    def tested(self, test: DataTest, status: Status) -> tuple[Diagnostic, ...]:
        with self._guard:
            remaining = self.remaining_tests.get(test.model, set())
            if test.id not in remaining:
                return ()
            remaining.discard(test.id)
            if status is Status.PASS:
                self.passed.add(test.id)
            last = not remaining
        model = self.run.manifest.nodes[test.model]
        return self._decide(model) if last and isinstance(model, Model) else ()

    def close(self) -> None:
        """Let go of the staging tables that were published; a test of another model may have been reading them."""
        for relation in self._rebuilt:
            lake.drop_table(self.run.spark, relation)

    def _decide(self, model: Model) -> tuple[Diagnostic, ...]:
        missing_tests = sorted(self.deciding[model.id] - self.passed)
        if not missing_tests:
            if (staged_state := _staged_refresh(self.run.state(model))) is not None:
                self._rebuilt.append(full_refresh.staging(model, staged_state.generation).sql)
            publish(self.run, model)
            return ()
        rows = staged_rows(self.run, model)
        if not self.run.stop.is_set() and _staged_refresh(self.run.state(model)) is not None:
            # It is dropped by the next build, which continues with the table as it is.
            self.run.state(model).journal.end(Refresh)
        return (_held_diagnostic(model, missing_tests, rows),) if rows is not None else ()


def _held_diagnostic(model: Model, missing_tests: Iterable[str], rows: str) -> Diagnostic:
    names = ", ".join(map(shown_name, missing_tests))
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
    selected = set(nodes)
    models = [m for i in selected if isinstance(m := run.manifest.nodes[i], Model) and waits(m)]
    models += decided_by_tests(run.manifest, selected)
    decide = {model.id: deciding(run.manifest, model) for model in models}
    return Gates(run, decide, {model: set(tests & selected) for model, tests in decide.items()})
