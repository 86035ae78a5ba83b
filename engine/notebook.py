"""Magics of a notebook (`%load_ext engine`): rows of a query over the lake, and of tables, as data frames of pandas.

%project PATH --target prod       the project that the others are about; without it, the one around the notebook
%%model [-n 20] [--sql]           a cell with a model's query: compiled, and its first rows, streams read as they are
%table NAME [-n 20]               rows of a model's table, without Java
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from IPython.core.error import UsageError as NotebookError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.display import Code

from engine.api import Project
from engine.api.inline_query import compile_query
from engine.errors import EngineError, RunError, UsageError, near
from engine.package_source import install_hint

_ROWS = 20
_count = click.option("-n", "--limit", type=click.IntRange(min=1), default=_ROWS)
Result = TypeVar("Result")


def register(shell: InteractiveShell) -> None:
    shell.register_magics(HeadraceMagics)


def _as_notebook_error(call: Callable[..., Result]) -> Callable[..., Result]:
    @functools.wraps(call)
    def reporting_errors(*arguments: Any) -> Result:
        try:
            return call(*arguments)
        except EngineError as error:
            raise NotebookError(str(error)) from None
        except click.UsageError as error:
            raise NotebookError(error.format_message()) from None

    return reporting_errors


@click.command(add_help_option=False)
@click.argument("path", default=".")
@click.option("--target")
def _project_line(path: str, target: str | None) -> Project:
    return Project(path, target=target)


@click.command(add_help_option=False)
@_count
@click.option("--sql", is_flag=True)
def _model_line(limit: int, *, sql: bool) -> tuple[int, bool]:
    return limit, sql


@click.command(add_help_option=False)
@click.argument("name")
@_count
def _table_line(name: str, limit: int) -> tuple[str, int]:
    return name, limit


def _read(command: click.Command, line: str) -> Any:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise click.UsageError(f"the line cannot be read: {error}") from error
    return command.main(words, prog_name="magic", standalone_mode=False)


@magics_class
class HeadraceMagics(Magics):
    _project: Project | None = None

    @line_magic
    @_as_notebook_error
    def project(self, line: str) -> Project:
        """`%project PATH --target NAME`: choose the project."""
        project: Project = _read(_project_line, line)
        project.compile()
        self._project = project
        return project

    @cell_magic
    @_as_notebook_error
    def model(self, line: str, cell: str) -> Any:
        """`%%model -n 20`: the first rows of the query in the cell; `--sql`: what Spark would run."""
        limit, sql = _read(_model_line, line)
        project = self._current_project()
        compiled, model = compile_query(project, cell)
        if sql:
            return Code(model.sql, language="sql")  # type: ignore[no-untyped-call]
        from engine.runtime.operations.preview import preview

        target, folder = compiled.target, project.target_dir
        rows = preview(compiled.manifest, target, project.root, model, limit, folder)
        return _pandas().DataFrame(rows.rows, columns=rows.names)

    @line_magic
    @_as_notebook_error
    def table(self, line: str) -> Any:
        """`%table NAME -n 20`: rows of a model's table."""
        from engine.lake.lake_reader import Lake

        name, limit = _read(_table_line, line)
        compiled = self._current_project().compile()
        models = {model.name: model for model in compiled.manifest.models}
        if name not in models:
            raise UsageError("usage", f"model '{name}' not found", near(name, models))
        model, relation = models[name], models[name].relation
        if not model.keeps_rows:
            hint = f"Run a query in a %%model cell that reads {{{{ ref('{name}') }}}}."
            raise UsageError("usage", f"'{name}' is a {model.materialized}, which stores no rows", hint)
        table_rows = Lake(compiled.target.catalog).arrow(relation.schema, relation.name, limit)
        if table_rows is None:
            hint = f"Build it first: engine build -s +{name}"
            raise RunError("table-missing", f"the table {relation} does not exist yet", hint, node=name)
        _pandas()
        return table_rows.to_pandas()

    def _current_project(self) -> Project:
        if self._project is None:
            current = Path.cwd()
            self._project = Project(
                next((f for f in (current, *current.parents) if (f / "project.yml").is_file()), current)
            )
        return self._project


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        message = "data frames in a notebook need the package pandas"
        raise UsageError("usage", message, install_hint("notebook")) from error
    return pd
