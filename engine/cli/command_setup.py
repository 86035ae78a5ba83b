"""What most commands begin with: logging, the project, its compilation, and what to do with findings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from engine.api import Project, Selection
from engine.api.requests import as_error
from engine.cli.console.log_level import LogLevel, level_of
from engine.cli.console.printing import Printer, printer
from engine.cli.console.safe_output import write
from engine.cli.log_output import LOG, is_shown, logged
from engine.errors import Diagnostic, EngineError, Level, Location, ProjectError, UsageError, near
from engine.package_source import install_hint
from engine.secrets.scrubber import scrub
from engine.target_folder import TargetFolder
from engine.user_cache import project_cache

if TYPE_CHECKING:
    from engine.compile import Compiled, Manifest, Model


class Failed(Exception):  # noqa: N818 - not an error of its own: it ends a command whose errors were printed
    """The command ends with exit code 1; its errors are printed."""


@dataclass(frozen=True, slots=True)
class CommandSettings:
    project: Project
    out: Printer
    level: LogLevel = LogLevel.INFO

    @property
    def root(self) -> Path:
        return self.project.root

    @property
    def target_dir(self) -> Path:
        return self.project.target_dir

    def note_shown_warnings(self, warnings: Sequence[Diagnostic]) -> None:
        from engine.cli.console.shown_warnings import note_shown

        if warnings and self.out.for_people:
            note_shown(project_cache(self.target_dir), warnings)


def read_settings(
    project_dir: Path,
    target: str | None = None,
    variables: str = "{}",
    log_format: str = "text",
    quiet: bool = False,
    *,
    debug: bool = False,
    log_level: str = LogLevel.INFO,
    target_path: Path | None = None,
    warn_error: bool | None = None,
) -> CommandSettings:
    """Read the shared options. Raises UsageError: --vars is not a mapping, or the target path cannot be used."""
    from engine.project.parse_yaml import load_yaml

    parsed, diagnostics = load_yaml(variables, "--vars")
    if diagnostics or not isinstance(parsed.data or {}, dict):
        raise UsageError("usage", f"--vars is not a mapping: {variables}", "Write --vars '{name: value}'.")
    level = level_of(log_level, quiet=quiet, debug=debug)
    project = Project(
        project_dir, target=target or None, vars=parsed.data, target_path=target_path, warn_error=warn_error
    )
    return CommandSettings(project, printer(log_format, level), level)


class Warnings(Enum):
    ALL = "all"
    DAILY = "those that were not shown within a day"
    SELECTED = "of the selected nodes: `select_and_report` and `print_warnings` show them"


def compile_and_report(
    settings: CommandSettings,
    *,
    fail_on_errors: bool = True,
    show_template_output: bool = True,
    warnings: Warnings = Warnings.ALL,
) -> Compiled:
    """Load and compile the project, and print what is wrong with it.

    `show_template_output` is not for output that other programs read. Raises Failed: there are errors; ProjectError.
    """
    with template_output(settings) if show_template_output else nullcontext():
        result = settings.project.compile()
    project, diagnostics = result.project, result.manifest.diagnostics
    if warnings is Warnings.ALL:
        settings.out.diagnostics(diagnostics)
        settings.note_shown_warnings([warning for warning in diagnostics if not warning.is_error])
    else:
        settings.out.diagnostics(result.manifest.errors)
    if warnings is Warnings.DAILY:
        print_warnings(settings, result.manifest, result.manifest.nodes, daily=True)
    if not project.models and not project.broken:
        finding = _no_models(project.paths["models"])
        if settings.project.warnings_fail(project):
            settings.out.diagnostics([as_error(finding)])
            raise Failed
        settings.out.diagnostics([finding])
    if fail_on_errors and result.manifest.errors:
        number = len(result.manifest.errors)
        settings.out.say(f"{number} error{'s' if number > 1 else ''}; nothing was run")
        raise Failed
    return result


def print_warnings(
    settings: CommandSettings, manifest: Manifest, nodes: Collection[str], *, daily: bool = False
) -> None:
    """Print the warnings about some nodes; `daily` leaves out what people were shown within a day."""
    from engine.cli.console.shown_warnings import not_shown_today, warnings_of

    warnings = warnings_of(manifest, nodes)
    if daily and settings.out.for_people:
        warnings = not_shown_today(project_cache(settings.target_dir), warnings)
    settings.out.diagnostics(warnings)
    settings.note_shown_warnings(warnings)


def _no_models(folder: str) -> Diagnostic:
    hint = f"Write a SELECT to {folder}/NAME.sql; engine build creates the table NAME."
    return Diagnostic("no-models", "the project has no models", hint, Level.WARNING, location=Location("project.yml"))


def check_project(settings: CommandSettings) -> None:
    """Make sure that the folder is a project. Raises ProjectError: `project-missing`."""
    from engine.project import is_project, missing_project

    if not is_project(settings.root):
        raise ProjectError.from_diagnostics([missing_project(settings.root)])


def select_and_report(
    settings: CommandSettings,
    manifest: Manifest,
    selection: Selection,
    *,
    report_empty: bool = True,
    daily: bool = False,
) -> list[str]:
    """Return the chosen nodes, and print their warnings; `report_empty` says so if there are none.

    `daily` leaves out warnings that people were shown within a day.

    Raises:
        UsageError: a selection that cannot be read, or matches nothing.
        ProjectError: the same in selectors.yml.
    """
    choice = settings.project.select(manifest, selection)
    settings.out.diagnostics(choice.unmatched)
    print_warnings(settings, manifest, choice.nodes, daily=daily)
    if choice.selector:
        settings.out.say(f"Selector '{choice.selector}' (the default of selectors.yml)")
    if report_empty and not choice.nodes:
        settings.out.say("No nodes match the selection; nothing to do")
    return choice.nodes


def find_model(manifest: Manifest, name: str) -> Model:
    """Return a model by its name, with or without `model.` before it. Raises UsageError: there is no such model."""
    models = {model.name: model for model in manifest.models}
    model = models.get(name.removeprefix("model."))
    if model is None:
        raise UsageError("usage", f"model '{name}' not found", near(name, models) or "List the models: engine ls")
    return model


def defer_and_report(
    settings: CommandSettings, result: Compiled, nodes: Sequence[str], selection: Selection
) -> Compiled:
    """Return the project with references to models that are not selected as another target's tables; say which.

    Raises:
        UsageError: there is no manifest.json to defer to.
        ProjectError: `defer-catalog`, `defer-missing`.
        SetupError: the catalog cannot be read.
    """
    result = settings.project.defer(result, nodes, selection)
    if result.deferred_to is not None:
        from engine.compile import Model

        models = [n for n in result.manifest.nodes.values() if isinstance(n, Model) and n.deferred_from is not None]
        names = ", ".join(f"{model.name} ({model.relation})" for model in models)
        if names:
            settings.out.say(f"Deferred: {names}")
    return result


def require_extra(module: str, extra: str) -> None:
    """Make sure that an extra is installed. Raises UsageError: it is not."""
    if find_spec(module) is None:
        message = f"the extra '{extra}' is not installed"
        raise UsageError("usage", message, install_hint(extra))


@contextmanager
def log_file(settings: CommandSettings) -> Iterator[Path]:
    """Send the log of a command to target/logs/engine.log (0600), secrets masked.

    Raises:
        ProjectError: `project-missing`: nothing is made in a folder that is not a project.
        ProjectError: `target-link`, `target-unwritable`.
    """
    check_project(settings)
    with TargetFolder(settings.target_dir) as folder:
        file = folder.append(LOG)
    with logged(settings.out, settings.level, file):
        yield settings.target_dir / LOG


@contextmanager
def template_output(settings: CommandSettings) -> Iterator[None]:
    """Show the output of templates (print(), log(..., info=True), warnings), as `log_file` does where it is open."""
    with nullcontext() if is_shown() else logged(settings.out, settings.level, None):
        yield


def report_internal_error(error: BaseException, settings: CommandSettings | None) -> None:
    """Say that the engine itself failed; the trace goes to the log."""
    import traceback

    text = scrub("".join(traceback.format_exception(error)))
    where = ""
    if settings is not None and (settings.root / "project.yml").is_file():
        try:
            with TargetFolder(settings.target_dir) as folder, folder.append(LOG) as stream:
                stream.write(text.encode("utf-8", "backslashreplace"))
            where = f" The trace is in {settings.target_dir / LOG}."
        except (EngineError, OSError):
            where = ""
    if not where or (settings is not None and settings.level is LogLevel.DEBUG):
        write(text, error=True, end="")
    write(f"internal error: {type(error).__name__}: {error}.{where} [internal-error]", error=True)


def exit_code_of(error: EngineError) -> int:
    """The exit code of an error: 2 for the command line, 1 for everything else."""
    return 2 if isinstance(error, UsageError) else 1
