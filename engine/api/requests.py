"""Requests of a project: which nodes, how they are built, and whether every warning is an error (`--warn-error`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

from engine.errors import Diagnostic, Level, ProjectError, UsageError
from engine.events import Diagnosed, Emit, Event, RunResults

if TYPE_CHECKING:
    from engine.compile import Compiled, Manifest
    from engine.compile.selection.select_nodes import Choice
    from engine.plan import PlanOptions


Command = Literal["build", "run", "test"]

THREADS = 4
_ALLOWED = "With --allow-empty this is a warning."


@dataclass(frozen=True, slots=True)
class Selection:
    """Which nodes, in the words of the command line.

    Attributes:
        select: terms such as `orders`, `+orders`, `tag:hourly`; none: everything.
        exclude: terms of what is left out.
        selector: name of a selection in selectors.yml, instead of `select`; with neither, nor `exclude`, its default.
        state: folder of an earlier manifest.json, for `state:` and `result:`; None: the project's target/.
        allow_empty: a term that matches nothing is a warning and not an error.
        defer: models that run nowhere in the selection and do not exist in the target are read from the tables that
            the manifest.json of `defer_state` names; None: as `flags:` of project.yml has it, where there is a `state`.
        defer_state: folder of that manifest.json; None: that of `state`.
        favor_state: with `defer`, also models that exist in the target; None: as `flags:` of project.yml has it.
    """

    select: Sequence[str] = ()
    exclude: Sequence[str] = ()
    selector: str | None = None
    state: Path | None = None
    allow_empty: bool = False
    defer: bool | None = None
    favor_state: bool | None = None
    defer_state: Path | None = None


Select = str | Sequence[str] | Selection


class RebuildOptions(TypedDict, total=False):
    """What decides how models are built, as on the command line.

    Attributes:
        full_refresh: the selected models are rebuilt from their first row.
        accept: consequences that are accepted: of a full refresh `downstream-stops` and `files-gone`, of an edit
            `sink-schema`.
        reset_checkpoint: `now`, `earliest`, `open-windows` or a time (UTC): where the sources of the selected streams
            begin, each with a new checkpoint over the rows that are there.
        empty: tables that do not exist are made with their columns and without rows; data tests are left out.
        discard_refresh: full refreshes that were interrupted are discarded, and the tables are continued as they are.
    """

    empty: bool
    discard_refresh: bool
    full_refresh: bool
    accept: Sequence[str]
    reset_checkpoint: str | None


class TestRunOptions(TypedDict, total=False):
    """How tests are run.

    Attributes:
        threads: nodes that run side by side; 4.
        fail_fast: after the first failure nothing more is started; else as `flags:` of project.yml has it.
        no_cache: every test runs; left out, one that passed with the same model, rows and text does not run again.
        store_failures: every data test keeps its failing rows in a table, whatever its configuration says.
    """

    threads: int
    fail_fast: bool | None
    no_cache: bool
    store_failures: bool


class RunOptions(RebuildOptions, TestRunOptions, total=False):
    """How models and tests are run."""


def selection_of(select: Select) -> Selection:
    if isinstance(select, Selection):
        return select
    return Selection((select,) if isinstance(select, str) else tuple(select))


def choose(manifest: Manifest, selection: Selection, root: Path, folder: Path) -> Choice:
    """The nodes of a selection, with a warning for each term that matches nothing and may.

    Args:
        manifest: the compiled project.
        selection: what is chosen.
        root: the project's folder.
        folder: of the artifacts that are compared with where the selection names none.

    Raises:
        UsageError: a selection that cannot be read, or matches nothing.
        ProjectError: the same in selectors.yml.
    """
    from functools import partial

    from engine.compile.selection.named_selectors import default_selector, named_selection
    from engine.compile.selection.previous_state import load_previous
    from engine.compile.selection.select_nodes import select

    if selection.selector and selection.select:
        raise UsageError("usage", "--select and --selector cannot be combined", "Use one of them.")
    terms = " ".join([*selection.select, *selection.exclude])
    default = None if terms or selection.selector else default_selector(root)
    selector = selection.selector or default
    previous_state = None
    if selection.state or "result:" in terms or selector or "selector:" in terms:
        state = selection.state or folder
        previous_state = load_previous(state, must_exist=selection.state is not None)
    named_selector = partial(named_selection, root, selector) if selector else None
    choice = select(
        manifest,
        selection.select,
        selection.exclude,
        previous_run=previous_state,
        choose_named=named_selector,
        selector=partial(named_selection, root),
    )
    choice = replace(choice, selector=default)
    if selection.allow_empty:
        allowed = tuple(replace(finding, level=Level.WARNING) for finding in choice.unmatched)
        return replace(choice, unmatched=allowed)
    if any(finding.is_error for finding in choice.unmatched):
        kind = ProjectError if choice.unmatched[0].location else UsageError
        raise kind.from_diagnostics(map(_allowing, choice.unmatched))
    return choice


def _allowing(finding: Diagnostic) -> Diagnostic:
    return replace(finding, hint=f"{finding.hint} {_ALLOWED}".strip()) if finding.is_error else finding


def runnable(manifest: Manifest, nodes: Iterable[str], command: Command, *, empty: bool = False) -> list[str]:
    """The models and tests among some nodes that a command runs; `empty`: no data tests, which would see no row."""
    from engine.compile import DataTest, Model, UnitTest

    if empty:
        nodes = [node for node in nodes if not isinstance(manifest.nodes[node], DataTest)]
    kinds = {"build": (Model, DataTest, UnitTest), "run": (Model,), "test": (DataTest, UnitTest)}[command]
    return [node for node in nodes if isinstance(manifest.nodes[node], kinds)]


def sinks_among(nodes: Iterable[str], command: Command, *, empty: bool = False) -> list[str]:
    """The sinks among some nodes that a command delivers: a build does, unless it reads no row."""
    return [node for node in nodes if node.startswith("sink.")] if command == "build" and not empty else []


def check_supported(manifest: Manifest, nodes: Iterable[str]) -> None:
    """Refuse what this version compiles but cannot run, before anything starts."""
    from engine.compile import Model
    from engine.compile.pipeline.unsupported import unsupported_settings

    models = (node for i in nodes if isinstance(node := manifest.nodes[i], Model))
    if findings := [finding for model in models for finding in unsupported_settings(model)]:
        raise ProjectError.from_diagnostics(findings)


def plan_options(options: RebuildOptions) -> PlanOptions:
    """The options as the plan has them. Raises UsageError: two of them do not go together, or one cannot be read."""
    from engine.plan import PlanOptions
    from engine.plan.actions.reset_checks import reset_of

    reset, full = options.get("reset_checkpoint"), options.get("full_refresh", False)
    if reset and full:
        raise UsageError("usage", "--full-refresh and --reset-checkpoint cannot be combined", "Use one of them.")
    empty = options.get("empty", False)
    if empty and (reset or full):
        message = f"--empty and {'--full-refresh' if full else '--reset-checkpoint'} cannot be combined"
        raise UsageError("usage", message, "Remove one of them: --empty changes no table that exists.")
    discard = options.get("discard_refresh", False)
    if discard and full:
        raise UsageError("usage", "--full-refresh and --discard-refresh cannot be combined", "Use one of them.")
    return PlanOptions(full, reset_of(reset) if reset else None, tuple(options.get("accept", ())), empty, discard)


def artifact_folder(root: Path, path: str | Path) -> Path:
    """Return the folder of artifacts that is named instead of target/, relative to the project.

    Raises:
        UsageError: it is the project's folder, or above it, where artifacts would be among other files.
        ProjectError: `target-link`: a folder on the way to it is a link in the project.
    """
    import os

    from engine.project.project_files import first_link

    folder = Path(os.path.abspath(root / path))  # noqa: PTH100 - links must not be followed
    if root.is_relative_to(folder.resolve()):
        message = f"--target-path {path} is not a folder of its own"
        raise UsageError("usage", message, "Name a folder such as target or build/artifacts.")
    if (link := first_link(root, folder)) is not None:
        hint = "Remove it: artifacts are never written through a symbolic link of the project."
        raise ProjectError("target-link", f"{link} is a symlink; nothing is written there", hint)
    return folder


def as_error(finding: Diagnostic) -> Diagnostic:
    """Return a warning as an error; notes and errors stay as they are."""
    return replace(finding, level=Level.ERROR) if finding.level is Level.WARNING else finding


def as_errors(findings: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    return tuple(map(as_error, findings))


def failing_on_warnings(compiled: Compiled) -> Compiled:
    manifest = compiled.manifest
    return replace(compiled, manifest=replace(manifest, diagnostics=as_errors(manifest.diagnostics)))


def results_with_errors(results: RunResults) -> RunResults:
    return replace(results, diagnostics=as_errors(results.diagnostics))


def emitting_errors(emit: Emit) -> Emit:
    def raised(event: Event) -> None:
        emit(Diagnosed(as_error(event.diagnostic)) if isinstance(event, Diagnosed) else event)

    return raised
