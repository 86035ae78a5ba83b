"""What a build does to a node, what that writes, the order of a build, and the error that lists all that forbids it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from engine.compile import DataTest, Manifest, Model, Source, UnitTest
from engine.compile.nodes.model_settings import History, OutputMode, Overwrite, Publish, Refresh
from engine.compile.nodes.topological_order import ancestors
from engine.errors import Diagnostic, EngineError, Level
from engine.plan.comparison import Comparison
from engine.plan.deployed.renamed_tables import Renaming
from engine.plan.refresh.refresh_choice import RefreshChoice, Way

if TYPE_CHECKING:
    from engine.sources.spec import ClusterOffsets, SourceSpec


class ActionKind(StrEnum):
    """What becomes of a node; for a streaming table it says how its query starts.

    EMPTY: CREATE, but no row is read (`--empty`). RESUME: a stream continues with its checkpoint. RESET: a new
    checkpoint over the rows of its table (`--reset-checkpoint`). REFRESH: rebuilt from the first row
    (`--full-refresh`). REBUILD: a batch table or view is recomputed. TEST: data and unit tests.
    """

    CREATE = "create"
    EMPTY = "empty"
    RESUME = "resume"
    RESET = "reset"
    REFRESH = "refresh"
    REBUILD = "rebuild"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Reset:
    """What `--reset-checkpoint` says.

    `at`: from which time sources are read, in milliseconds since 1970; None: from the first record. `gap`: nothing is
    read again. `windows`: events of windows that are written are left out (see `engine.plan.edits.open_windows`).
    """

    at: int | None
    gap: bool = False
    windows: bool = False


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What the user says about a build.

    `reset`: where the sources of the selected streams begin, each with a new checkpoint; None: they resume. `accept`:
    consequences that are accepted: `downstream-stops`, `files-gone`, `sink-schema`. `empty`: tables that do not exist
    are made without rows, and those that do are left as they are.
    """

    full_refresh: bool = False
    reset: Reset | None = None
    accept: tuple[str, ...] = ()
    empty: bool = False
    discard_refresh: bool = False


@dataclass(frozen=True, slots=True)
class UnreadRecords:
    """Topics with records that a stream has not read; when they were written is not part of a plan."""

    spec: SourceSpec
    offsets: tuple[Mapping[str, Any], ...]
    topics: ClusterOffsets


@dataclass(frozen=True, slots=True)
class Unread:
    """What an input has that its reader has not read.

    `unit`: `files`, `snapshots`, `offsets` or `tables`; empty: only the system behind it knows. `present`: how many
    there are now, where nodes before it will add some. `oldest_at`: modification time of a file or commit time of a
    snapshot, in seconds since 1970; None: not known, or there is none.
    """

    name: str
    unit: str = ""
    count: int | None = None
    names: tuple[str, ...] = ()
    rows: int | None = None
    present: int | None = None
    oldest_at: float | None = None
    records: UnreadRecords | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Action:
    """What a build does to a node.

    `refusals`: why it cannot be built. `unchanged` None: only a build can tell. `comparison`: with what wrote the table
    last; None: a test. `notes`: of an edit, and of settings without effect as long as a checkpoint lives. `renaming`:
    what gets its table its name first. `inputs`: of an unchanged batch table, what it counts as computed from; None:
    what is recorded. `events_from`: of a reset, the time before which no window is written again, in milliseconds since
    1970. `writes`: in a phrase.
    """

    node: str
    kind: ActionKind
    reasons: tuple[str, ...] = ()
    refusals: tuple[Diagnostic, ...] = ()
    unread: tuple[Unread, ...] = ()
    unchanged: bool | None = None
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()
    inputs: Mapping[str, Any] | None = None
    renaming: Renaming | None = None
    events_from: int | None = None
    writes: str = ""
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    actions: Mapping[str, Action]

    @property
    def refusals(self) -> tuple[Diagnostic, ...]:
        return tuple(dict.fromkeys(refusal for action in self.actions.values() for refusal in action.refusals))

    @property
    def unchanged(self) -> bool:
        return all(action.unchanged for action in self.actions.values())

    def rejected(self) -> Iterator[str]:
        yield from (node for node, action in self.actions.items() if action.refusals)


_NEW = {
    ActionKind.CREATE: "creates the table",
    ActionKind.EMPTY: "creates the table without rows",
    ActionKind.RESET: "keeps the rows of the table and adds the rows that the new checkpoint reads",
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
        appended = "changes" if write.history is History.CHANGES else "versions"
        return f"appends {appended} of rows by {', '.join(write.unique_key)}"
    if write.overwrite is Overwrite.PARTITIONS:
        return "replaces the partitions that the query returns"
    if edited or write.refresh is Refresh.FULL or (choice is not None and choice.way is Way.FULL):
        return f"replaces {every}"
    if choice is not None and choice.partitions:
        return "replaces the affected partitions"
    return f"replaces the affected rows, at most {every}"


_SHOWN = 20


def refused_build(manifest: Manifest, plan: Plan) -> EngineError | None:
    """Return all that forbids a build, with what would be built without it; None: nothing forbids it."""
    refusals = plan.refusals
    if not refusals:
        return None
    rejected = [node for node in plan.rejected() if isinstance(manifest.nodes[node], Model)]
    buildable = list(_buildable_models(manifest, plan, rejected))
    return EngineError.from_diagnostics(
        (*refusals, _left_out(rejected, buildable)) if rejected and buildable else refusals
    )


def _buildable_models(manifest: Manifest, plan: Plan, rejected: list[str]) -> Iterable[str]:
    parents = {node: set(manifest.parents(node)) for node in manifest.order}
    for node, action in plan.actions.items():
        if action.unchanged or not isinstance(manifest.nodes[node], Model):
            continue
        if not {node, *ancestors(parents, node)}.intersection(rejected):
            yield node


def _left_out(rejected: list[str], buildable: list[str]) -> Diagnostic:
    names = [node.partition(".")[2] for node in buildable]
    names_in_text = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    without = " ".join(f"{node.partition('.')[2]}+" for node in rejected)
    number = f"{len(rejected)} model{' is' if len(rejected) == 1 else 's are'} rejected"
    message = f"nothing was started, because {number}; without that this would be built: {names_in_text}"
    return Diagnostic("build-rejected", message, f"To build the others add: --exclude {without}", Level.NOTE)


def run_order(manifest: Manifest, nodes: Iterable[str]) -> list[str]:
    """The selected nodes in order: each model after its unit tests, before its data tests (as early as possible)."""
    selected = {i for i in nodes if not isinstance(n := manifest.nodes[i], Model) or n.in_catalog}
    units: dict[str, list[str]] = {}
    for node in manifest.order:
        if node in selected and isinstance(unit := manifest.nodes[node], UnitTest):
            units.setdefault(unit.model, []).append(node)
    tests = [t for t in manifest.order if t in selected and isinstance(manifest.nodes[t], DataTest)]
    # Those of sources come before what reads the sources.
    order = [t for t in tests if _is_of_sources(manifest, t) and not set(manifest.parents(t)) & selected]
    placed: set[str] = set(order)
    for node in manifest.order:
        if node not in selected:
            order += units.get(node, ())
        elif node not in tests and not isinstance(manifest.nodes[node], UnitTest):
            order += [*units.get(node, ()), node]
            placed.add(node)
            ready = [t for t in tests if t not in placed and not (set(manifest.parents(t)) & selected) - placed]
            order += ready
            placed.update(ready)
    return order + [t for t in tests if t not in placed]


def _is_of_sources(manifest: Manifest, test_id: str) -> bool:
    test = manifest.nodes[test_id]
    return isinstance(test, DataTest) and isinstance(manifest.nodes[test.model], Source)
