"""`engine sql`: a query of the command line, of a pipe, or of the prompt."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from engine.cli.command_setup import CommandSettings, Warnings, compiled, need_extra
from engine.cli.commands.show_command import RowsWanted, more, print_rows
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


def run_sql(chosen: CommandSettings, query: str | None, wanted: RowsWanted) -> bool:
    """Run a query, or those that are typed or piped in; False if one of a pipe fails, which is the last then.

    Raises:
        UsageError: the extra `sql` is not installed.
        EngineError: the project, or the query of the command line, has an error.
    """
    need_extra("duckdb", "sql")
    from engine.cli.sql.lake_queries import LakeQueries
    from engine.lake.lake_reader import Lake

    result = compiled(chosen, warnings=Warnings.SELECTED)
    reading = LakeQueries(chosen.project, result, Lake(result.target.catalog))
    with reading.opened() as queries:

        def run(text: str) -> None:
            reading.look_again()
            if text.startswith("\\"):
                _command(reading, text)
                return
            found = reading.run(queries, text.removesuffix(";"), more(wanted))
            zoned = ["timestamp" if type_ == "TIMESTAMP WITH TIME ZONE" else type_ for type_ in found.types]
            print_rows((found.names, found.rows), zoned, wanted)

        if query is not None:
            run(query.strip())
            return True
        if not sys.stdin.isatty():
            return all(_ran(chosen, run, text) for text in statements(sys.stdin))
        _at_prompt(chosen, reading, run)
    return True


def _at_prompt(chosen: CommandSettings, reading: LakeQueries, run: Callable[[str], None]) -> None:
    from engine.cli.sql.prompt import prompt

    write("Queries over the stored tables, which are only read. \\? shows the help, \\q ends.")
    cache = project_cache(chosen.target_dir)
    with prompt(reading, cache / _HISTORY if cache else None) as lines:
        for text in statements(lines):
            if text == "\\q":
                break
            try:
                _ran(chosen, run, text)
            except KeyboardInterrupt:
                write("Cancelled")


def _ran(chosen: CommandSettings, run: Callable[[str], None], text: str) -> bool:
    """Run a statement; False if it fails, which is reported."""
    try:
        run(text)
    except EngineError as error:
        chosen.out.diagnostics(error.diagnostics)
        return False
    return True


def _command(reading: LakeQueries, text: str) -> None:
    word, _, name = text.rstrip("; ").partition(" ")
    if word != "\\d":
        if word != "\\?":
            raise UsageError("usage", f"'{word}' is not a command of the prompt", "\\? lists them.")
        write(_HELP)
    elif not name:
        write("\n".join(reading.tables) or "There are no tables yet. Next: engine build")
    elif name.strip() not in reading.tables:
        raise UsageError("usage", f"table '{name.strip()}' not found", near(name.strip(), reading.tables))
    else:
        rows = [(column.name, column.type, column.doc) for column in reading.columns(name.strip())]
        print_rows((["column", "type", "description"], [tuple(row) for row in rows]), [], RowsWanted(None))


def statements(lines: Iterable[str | None]) -> Iterator[str]:
    r"""Put lines together to statements.

    A statement ends with a semicolon at the end of a line, or with the input; `\d` and the like are a line.

    Args:
        lines: None discards those of the statement that was begun.
    """
    held: list[str] = []
    for line in lines:
        if line is None:
            held = []
            continue
        if not "".join(held).strip() and line.lstrip().startswith("\\"):
            yield line.strip()
            continue
        held.append(line.rstrip("\n"))
        if line.rstrip().endswith(";"):
            yield "\n".join(held).strip()
            held = []
    if text := "\n".join(held).strip():
        yield text
