"""`engine sql`: a query of the command line, of a pipe, or of the prompt."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from engine.cli.command_setup import CommandSettings, Warnings, compile_and_report, require_extra
from engine.cli.commands.show_command import PrintOptions, more, print_rows
from engine.cli.console.safe_output import write
from engine.errors import EngineError, UsageError, near
from engine.user_cache import project_cache

if TYPE_CHECKING:
    from engine.cli.sql.lake_queries import LakeQueries

_HISTORY = "sql_history"
_HELP = """\
A query ends with ; at the end of a line. It names models, schema.table or {{ ref('model') }}, in DuckDB's dialect.
\\d         lists the tables
\\d TABLE   lists the columns of a table
\\q         ends the prompt, as Ctrl-D does"""


def run_sql(settings: CommandSettings, query: str | None, print_options: PrintOptions) -> bool:
    """Run a query, or those that are typed or piped in; False if one of a pipe fails, which is the last then.

    Raises:
        UsageError: the extra `sql` is not installed.
        EngineError: the project, or the query of the command line, has an error.
    """
    require_extra("duckdb", "sql")
    from engine.cli.sql.lake_queries import LakeQueries
    from engine.lake.lake_reader import Lake

    result = compile_and_report(settings, warnings=Warnings.SELECTED)
    lake_queries = LakeQueries(settings.project, result, Lake(result.target.catalog))
    with lake_queries.database() as queries:

        def run(text: str) -> None:
            lake_queries.forget_tables()
            if text.startswith("\\"):
                _command(lake_queries, text)
                return
            result_rows = lake_queries.run(queries, text.removesuffix(";"), more(print_options))
            zoned = ["timestamp" if type_ == "TIMESTAMP WITH TIME ZONE" else type_ for type_ in result_rows.types]
            print_rows((result_rows.names, result_rows.rows), zoned, print_options)

        if query is not None:
            run(query.strip())
            return True
        if not sys.stdin.isatty():
            return all(_run_statement(settings, run, text) for text in statements(sys.stdin))
        _at_prompt(settings, lake_queries, run)
    return True


def _at_prompt(settings: CommandSettings, lake_queries: LakeQueries, run: Callable[[str], None]) -> None:
    from engine.cli.sql.prompt import prompt

    write("Queries over the stored tables, which are only read. \\? shows the help, \\q ends.")
    cache = project_cache(settings.target_dir)
    with prompt(lake_queries, cache / _HISTORY if cache else None) as lines:
        for text in statements(lines):
            if text == "\\q":
                break
            try:
                _run_statement(settings, run, text)
            except KeyboardInterrupt:
                write("Cancelled")


def _run_statement(settings: CommandSettings, run: Callable[[str], None], text: str) -> bool:
    """Run a statement; False if it fails, which is reported."""
    try:
        run(text)
    except EngineError as error:
        settings.out.diagnostics(error.diagnostics)
        return False
    return True


def _command(lake_queries: LakeQueries, text: str) -> None:
    word, _, name = text.rstrip("; ").partition(" ")
    if word != "\\d":
        if word != "\\?":
            raise UsageError("usage", f"'{word}' is not a command of the prompt", "\\? lists them.")
        write(_HELP)
    elif not name:
        write("\n".join(lake_queries.tables) or "There are no tables yet. Next: engine build")
    elif name.strip() not in lake_queries.tables:
        raise UsageError("usage", f"table '{name.strip()}' not found", near(name.strip(), lake_queries.tables))
    else:
        rows = [(column.name, column.type, column.doc) for column in lake_queries.columns(name.strip())]
        print_rows((["column", "type", "description"], [tuple(row) for row in rows]), [], PrintOptions(None))


def statements(lines: Iterable[str | None]) -> Iterator[str]:
    r"""Put lines together to statements; None discards the one that was begun.

    One ends with a semicolon at the end of a line, or with the input; `\d` and the like are a line.
    """
    statement_lines: list[str] = []
    for line in lines:
        if line is None:
            statement_lines = []
            continue
        if not "".join(statement_lines).strip() and line.lstrip().startswith("\\"):
            yield line.strip()
            continue
        statement_lines.append(line.rstrip("\n"))
        if line.rstrip().endswith(";"):
            yield "\n".join(statement_lines).strip()
            statement_lines = []
    if text := "\n".join(statement_lines).strip():
        yield text
