"""What a build of a batch table computes again: nothing, what follows from changed rows, or all of it.

Decided from the metadata of tables, without Java. What cannot be proven is computed in full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine import __version__
from engine.compile import Manifest, Model
from engine.compile.nodes.model_settings import Deletes, History, OnFail, Overwrite, Publish, Refresh, Write
from engine.errors import Diagnostic, Location
from engine.lake.table_facts import TableFacts, names_refs
from engine.plan.refresh.batch_inputs import changed_table, volatile
from engine.state import ModelState, Phase


class Way(StrEnum):
    NOTHING = "nothing"
    CHANGES = "changes"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class InputChange:
    """A table that is read, before and after.

    `before`: the snapshot that the last build read. `columns`: that the query may read, as the table spells them.
    `rewritten`: only files changed between the two, as far as the operations of the snapshots show.
    """

    node: str
    name: str
    view: str
    before: int
    after: int
    columns: tuple[str, ...]
    rewritten: bool

    @property
    def changed(self) -> bool:
        return self.before != self.after and not self.rewritten


@dataclass(frozen=True, slots=True)
class RefreshChoice:
    """What a build computes again: nothing, changes, or all (`way`).

    `cannot_follow_reason`: why the partitions that change cannot be derived; empty: they can. `row_by_row`: each row of
    the one input gives a row of the result or none; a history of changes has all of these.
    """

    way: Way
    reason: str
    hint: str = ""
    inputs: tuple[InputChange, ...] = ()
    cannot_follow_reason: str = ""
    row_by_row: bool = False

    @property
    def partitions(self) -> bool:
        return self.way is Way.CHANGES and not self.cannot_follow_reason

    @property
    def full_reason(self) -> str:
        if self.way is Way.NOTHING or (self.way is Way.FULL and not self.reason):
            return ""
        if self.way is Way.FULL:
            return f"computed in full: {self.reason}"
        if self.partitions:
            return "the affected partitions are recomputed"
        return f"computed in full unless no row that it reads changed: {self.cannot_follow_reason}"

    @property
    def compared(self) -> str:
        if self.way is Way.NOTHING:
            return ""
        if self.way is Way.FULL:
            return f"all rows are compared: {self.reason}" if self.reason else "all rows are compared"
        if self.row_by_row:
            return f"only rows of '{self.inputs[0].name}' in files that changed are compared"
        return "all rows are compared: a row may be made of several rows, or its table may lack the earlier values"


class _FullError(Exception):
    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def refresh_choice(
    manifest: Manifest,
    model: Model,
    state: ModelState | None,
    written: TableFacts | None,
    inputs: Mapping[str, Any],
    of_table: Callable[[Model], TableFacts | None],
    environment: Mapping[str, str],
    spark_version: str,
) -> RefreshChoice:
    try:
        _check_query(manifest, model)
        _check_state(model, state, written, environment, spark_version)
        input_changes = tuple(_inputs(manifest, model, state, inputs, of_table)) if state is not None else ()
        if changed := [one for one in input_changes if one.changed]:
            _check_writing(model)
    except _FullError as full:
        return RefreshChoice(Way.FULL, full.reason, full.hint)
    if not changed:
        names = ", ".join(f"'{one.name}'" for one in input_changes if one.before != one.after)
        return RefreshChoice(
            Way.NOTHING, f"only files of {names} were rewritten" if names else "", inputs=input_changes
        )
    names = ", ".join(f"'{one.name}'" for one in changed)
    # Whether anything that is read changed is found for any query.
    columns = {unquoted_view(one.view): one.columns for one in input_changes}
    cannot_follow_reason, hint = _cannot_follow(model, columns)
    rows = (
        bool(model.write.history)
        and len(input_changes) == 1
        and _has_every_row(model.write)
        and _row_by_row(model, columns)
    )
    return RefreshChoice(Way.CHANGES, f"{names} changed", hint, input_changes, cannot_follow_reason, row_by_row=rows)


def _has_every_row(write: Write) -> bool:
    return write.check_all and write.deletes is Deletes.CLOSE


def _cannot_follow(model: Model, columns: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    from engine.compile.refresh.changed_keys import follow_changes
    from engine.compile.refresh.query_block import NotFollowedError

    parts = [part.column.lower() for part in model.write.partition_by]
    if not parts:
        return "it has no 'partition_by'", "Set partition_by to columns of its GROUP BY or PARTITION BY."
    try:
        keys = follow_changes(model.sql, columns).keys
    except NotFollowedError as fault:
        return fault.reason, fault.hint
    odd = next((part for part in parts if part not in keys), None)
    if odd is None:
        return "", ""
    hint = "Partition by columns of GROUP BY or PARTITION BY, and not by columns of a LEFT JOIN."
    return f"rows that belong together may have several values of '{odd}'", hint


def _row_by_row(model: Model, columns: Mapping[str, Sequence[str]]) -> bool:
    from engine.compile.refresh.changed_keys import follow_changes
    from engine.compile.refresh.query_block import NotFollowedError

    try:
        return all(branch.row_by_row for branch in follow_changes(model.sql, columns).branches)
    except NotFollowedError:
        return False


def unquoted_view(view: str) -> str:
    return view.replace("`", "")


def _check_query(manifest: Manifest, model: Model) -> None:
    """Check that the same rows of the inputs give the same rows. Raises _FullError: other things decide, too."""
    from engine.compile.sql.read_names import names_by_strings, reads_places

    if volatile(manifest, model):
        raise _FullError("it reads the clock or draws random numbers", "Compute such values where the rows are made.")
    if model.operation.pre_hook:
        raise _FullError("its pre_hook may change the result of the query", "Remove the pre_hook.")
    if names_refs(model.sql):
        raise _FullError("it reads a tag or branch")
    if names_by_strings(model.sql):
        raise _FullError("IDENTIFIER(..) may name any column", "Write the name of the column.")
    if reads_places(model.sql):
        raise _FullError("it reads where rows are stored")


def _check_writing(model: Model) -> None:
    """Check that rows can be put into the table that are a part of it. Raises _FullError: it is written as a whole."""
    if model.write.history is History.VERSIONS or (model.write.history and model.write.refresh is not Refresh.AUTO):
        raise _FullError("'history' compares all rows of each build", "Remove 'refresh'.")
    if model.write.overwrite is Overwrite.PARTITIONS:
        raise _FullError(
            "'overwrite: partitions' replaces the partitions that the query returns", "Remove 'overwrite'."
        )
    if model.write.publish is Publish.ON_TESTS_PASS:
        raise _FullError("'publish: on_tests_pass' stages the table in full", "Set publish: immediately.")
    if any(check.on_fail is OnFail.QUARANTINE for check in model.expectations):
        raise _FullError("its quarantine is computed with all rows", "Set on_fail: drop, warn or fail.")


def _check_state(
    model: Model,
    state: ModelState | None,
    written: TableFacts | None,
    environment: Mapping[str, str],
    spark_version: str,
) -> None:
    """Check that the table is what the same query made of known inputs. Raises _FullError: it is not."""
    if state is None or written is None:
        raise _FullError("it was not built yet")
    if state.phase is not Phase.PUBLISHED:
        raise _FullError("a build of it was not finished")
    if state.fingerprint != model.fingerprint:
        raise _FullError("its query or settings changed")
    if (state.engine_version, state.spark_version) != (__version__, spark_version):
        raise _FullError("it was built with another version of Headrace or of Spark")
    if dict(state.environment) != dict(environment):
        raise _FullError("it was built under another name, project or target")
    if (fault := changed_table(state, written)) is not None:
        raise _FullError(fault)
    if not state.pinned:
        raise _FullError("its last build did not record the exact snapshots that it read")


def _inputs(
    manifest: Manifest,
    model: Model,
    state: ModelState,
    inputs: Mapping[str, Any],
    of_table: Callable[[Model], TableFacts | None],
) -> Iterator[InputChange]:
    from engine.compile.sql.read_names import read_names

    names = read_names(model.sql)
    if state.inputs.keys() != inputs.keys():
        raise _FullError("it reads other tables than before")
    visited: set[str] = set()
    for item in model.inputs:
        if item.node in visited:
            continue
        visited.add(item.node)
        node, before, now = manifest.nodes[item.node], state.inputs[item.node], inputs[item.node]
        is_table = isinstance(node, Model) and not node.computed_when_read
        if before == now and before is not None and not is_table:
            continue
        if not is_table or not isinstance(node, Model):
            kind = "a view" if isinstance(node, Model) else "not a table of this project"
            hint = "Make it a table." if isinstance(node, Model) else "Read it through a model."
            raise _FullError(f"'{item.name}' changed, and is {kind}", hint)
        table = of_table(node)
        if table is None or now is None or before is None or before.get("table") != table.uuid:
            raise _FullError(f"'{item.name}' was dropped and recreated")
        yield _change(item.node, item.name, item.view, table, before, now, names)


def _change(
    node: str,
    name: str,
    view: str,
    table: TableFacts,
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    names: tuple[str, ...] | None,
) -> InputChange:
    old, new = before.get("snapshot"), now.get("snapshot")
    if old is None or new is None:
        raise _FullError(f"'{name}' was empty")
    if not {old, new} <= table.snapshots:
        raise _FullError(f"the snapshot of '{name}' that it was computed from has expired")
    read = _read(table.read, names)
    for snapshot in (old, new):
        fields = table.schemas.get(table.schema_of.get(snapshot, -1))
        if fields is None or not _same(_read(fields, names), read, ordered=names is None):
            raise _FullError(f"columns of '{name}' that it reads were added, changed or recreated")
    if before.get("columns") != now.get("columns"):
        earlier = [fields for fields in table.schemas.values() if table.columns_hash(fields) == before.get("columns")]
        if not any(_same(_read(fields, names), read, ordered=names is None) for fields in earlier):
            raise _FullError(f"columns of '{name}' that it reads were added, changed or recreated")
    columns = tuple(str(field["name"]) for field in read)
    return InputChange(node, name, view, old, new, columns, table.only_files_since(old))


def _read(fields: Sequence[Mapping[str, Any]], names: tuple[str, ...] | None) -> list[Mapping[str, Any]]:
    return [field for field in fields if names is None or str(field["name"]).lower() in names]


def _same(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]], *, ordered: bool) -> bool:
    lists = [[_deciding(field) for field in fields] for fields in (old, new)]
    if not ordered:
        lists = [sorted(fields, key=lambda field: int(field["id"])) for fields in lists]
    return lists[0] == lists[1]


def _deciding(field: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in field.items() if key not in {"doc", "write-default"}}


def refused_query(manifest: Manifest, model: Model) -> Diagnostic | None:
    """Return why `refresh: incremental` is impossible; None: possible, or decided when the model is built."""
    try:
        _check_query(manifest, model)
        _check_writing(model)
    except _FullError as full:
        return refused(model, RefreshChoice(Way.FULL, full.reason, full.hint))
    columns: dict[str, list[str]] = {}
    for item in model.inputs:
        columns[unquoted_view(item.view)] = [
            column.name for column in getattr(manifest.nodes[item.node], "columns", ())
        ]
    if not all(columns.values()):
        return None
    cannot_follow_reason, hint = _cannot_follow(model, columns)
    return refused(model, RefreshChoice(Way.CHANGES, "", hint, cannot_follow_reason=cannot_follow_reason))


def refused(model: Model, choice: RefreshChoice, state: ModelState | None = None) -> Diagnostic | None:
    """Return why an incremental table cannot be built; None: it can, as a first or interrupted build (in full)."""
    if state is not None and state.phase is not Phase.PUBLISHED:
        return None
    reason = choice.reason if choice.way is Way.FULL else choice.cannot_follow_reason
    if choice.way is Way.NOTHING or not reason:
        return None
    message = f"'{model.name}' has 'refresh: incremental' and would be computed in full: {reason}"
    hint = f"{choice.hint} Or set refresh: auto, or build it once in full: engine build -f -s {model.name}".lstrip()
    return Diagnostic("refresh-not-incremental", message, hint, node=model.name, location=Location(model.file))
