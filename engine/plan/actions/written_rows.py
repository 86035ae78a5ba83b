"""What an action writes, in a phrase, and how many rows its table has now."""

from __future__ import annotations

from engine.compile import Model
from engine.compile.nodes.model_settings import History, OutputMode, Overwrite, Publish, Refresh
from engine.plan.actions.action import ActionKind
from engine.plan.refresh.refresh_choice import RefreshChoice, Way

_NEW = {
    ActionKind.CREATE: "creates the table",
    ActionKind.EMPTY: "creates the table without rows",
    ActionKind.RESET: "keeps the rows of the table and adds what the new checkpoint reads",
}


def written_rows(
    model: Model, kind: ActionKind, rows: int | None, choice: RefreshChoice | None = None, *, edited: bool = False
) -> str:
    """Return what a build writes for a model; None: the rows now, or the choice, are not known."""
    if model.computed_when_read:
        return "creates the view" if kind is ActionKind.CREATE else "replaces the view"
    if kind in _NEW:
        return _NEW[kind]
    every = "all rows" if rows is None else f"all {rows:,} {'row' if rows == 1 else 'rows'}"
    if kind is ActionKind.REFRESH:
        text = f"replaces {every}"
    else:
        text = _of_stream(model, every) if model.streaming else _of_batch(model, every, choice, edited=edited)
    staged = model.write.publish is Publish.ON_TESTS_PASS
    return f"{text}, published when its tests pass" if staged else text


def _of_stream(model: Model, every: str) -> str:
    write = model.write
    if write.history:
        return f"appends versions of rows by {', '.join(write.unique_key)}"
    if write.output_mode is OutputMode.COMPLETE:
        return f"replaces {every}"
    return f"inserts or updates rows by {', '.join(write.unique_key)}" if write.unique_key else "appends rows"


def _of_batch(model: Model, every: str, choice: RefreshChoice | None, *, edited: bool) -> str:
    write = model.write
    if write.history:
        what = "changes" if write.history is History.CHANGES else "versions"
        return f"appends {what} of rows by {', '.join(write.unique_key)}"
    if write.overwrite is Overwrite.PARTITIONS:
        return "replaces the partitions that the query returns"
    if edited or write.refresh is Refresh.FULL or (choice is not None and choice.way is Way.FULL):
        return f"replaces {every}"
    if choice is not None and choice.partitions:
        return "replaces the affected partitions"
    return f"replaces the affected rows, at most {every}"
