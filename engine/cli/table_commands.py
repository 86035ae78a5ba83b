"""Commands about tables and sources: their rows, freshness, maintenance and removal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from engine.cli.arguments import Command, Group
from engine.cli.command_setup import CommandSettings
from engine.cli.exits import carry_out
from engine.cli.options import project_options, selection_options, split
from engine.cli.shell_completion import of_models, of_sources
from engine.errors import UsageError


@click.command(cls=Command)
@click.argument("model", required=False, shell_complete=of_models)
@click.option("-s", "--select", "chosen_model", metavar="MODEL", help="Same as MODEL.")
@click.option("--inline", metavar="SQL", help="A query instead of a model; it may use ref() and source().")
@click.option(
    "--table", is_flag=True, help="Print the stored table instead (needs no Java, except for VARIANT columns)."
)
@click.option(
    "-n", "--limit", type=click.IntRange(1, 100_000), default=10, show_default=True, help="Number of rows to print."
)
@click.option("--all", "everything", is_flag=True, help="Print all rows.")
@click.option("--sort", metavar="COLUMNS", help="Sort by these columns: 'amount desc, id'.")
@click.option(
    "--output", type=click.Choice(["text", "json", "csv", "markdown", "parquet"]), default="text", show_default=True,
    help="Format of the rows; json: one object per line.",
)  # fmt: skip
@click.option("--out", "file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file.")
@project_options
def show(
    model: str | None,
    chosen_model: str | None,
    inline: str | None,
    table: bool,
    limit: int,
    everything: bool,
    sort: str | None,
    output: str,
    file: Path | None,
    **shared: Any,
) -> int:
    """Preview a model over all current data, including open windows."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.show_command import RowsWanted, read_sort, show_query, show_table

        if model and chosen_model:
            raise UsageError(
                "usage", f"show takes one model, not '{model}' and '{chosen_model}'", f"Write engine show {model}."
            )
        name = model or chosen_model
        wanted = RowsWanted(None if everything else limit, read_sort(sort), output, file)
        if table:
            show_table(chosen, name, wanted)
        else:
            show_query(chosen, name, inline, wanted)

    return carry_out(work, **shared)


@click.command(cls=Command)
@click.argument("query", required=False)
@click.option(
    "-n", "--limit", type=click.IntRange(1, 100_000), default=100, show_default=True, help="Number of rows to print."
)
@click.option("--all", "everything", is_flag=True, help="Print all rows.")
@click.option(
    "--output", type=click.Choice(["text", "json", "csv", "markdown"]), default="text", show_default=True,
    help="Format of the rows; json: one object per line.",
)  # fmt: skip
@click.option("--out", "file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file.")
@project_options
def sql(query: str | None, limit: int, everything: bool, output: str, file: Path | None, **shared: Any) -> int:
    """Query the stored tables without Java, or without QUERY at a prompt; needs the extra 'sql'."""

    def work(chosen: CommandSettings) -> bool:
        from engine.cli.commands.show_command import RowsWanted
        from engine.cli.commands.sql_command import run_sql

        return run_sql(chosen, query, RowsWanted(None if everything else limit, (), output, file))

    return carry_out(work, **shared)


@click.command(cls=Command)
@click.argument("model", shell_complete=of_models)
@click.option("-n", "--limit", type=click.IntRange(0, 10_000), default=10, show_default=True,
              help="Number of entries to print of each step.")  # fmt: skip
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@project_options
def state(model: str, limit: int, output: str, **shared: Any) -> int:
    """Show what a stream holds: open windows, keys of dedup, rows that may still find a match."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.state_command import show_state

        show_state(chosen, model, limit, output)

    return carry_out(work, **shared)


@click.command(cls=Command)
@click.option("--dry-run", is_flag=True, help="Print what would be done without changing anything.")
@click.option(
    "--older-than", metavar="DURATION", help="Expire snapshots older than this (default: the table's setting, 5 days)."
)
@click.option(
    "--orphans-older-than", "orphans", metavar="DURATION", help="Remove orphan files older than this (default: 3 days)."
)
@selection_options
@project_options
def maintain(dry_run: bool, older_than: str | None, orphans: str | None, **options: Any) -> int:
    """Compact small files, expire old snapshots and remove orphan files; safe while streams run."""
    wanted, shared = split(options)

    def work(chosen: CommandSettings) -> bool:
        from engine.cli.commands.maintain_command import care_for

        return care_for(chosen, wanted, older_than, orphans, shared["log_format"], dry_run=dry_run)

    return carry_out(work, **shared)


@click.command(cls=Command)
@click.argument("model", shell_complete=of_models)
@click.option("--accept", is_flag=True, help="Publish the staged rows of MODEL although tests failed.")
@project_options
def publish(model: str, accept: bool, **shared: Any) -> int:
    """Accept rows that failed the tests of a model with publish: on_tests_pass."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.publish_command import accept_rows

        accept_rows(chosen, model, accept=accept)

    return carry_out(work, **shared)


@click.command(cls=Command)
@click.argument("tables", metavar="MODEL|TABLE...", nargs=-1, shell_complete=of_models)
@click.option("--all", "everything", is_flag=True, help="Everything this project has built in the target.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--accept",
    multiple=True,
    type=click.Choice(["downstream-stops", "files-gone", "protected"]),
    help="Accept a named consequence.",
)
@project_options
def drop(tables: tuple[str, ...], accept: tuple[str, ...], *, everything: bool, yes: bool, **shared: Any) -> int:
    """Drop tables with their files, state, quarantine and deleted keys; asks first."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.drop_command import drop_tables

        if everything == bool(tables):
            both = f"--all and '{tables[0]}' cannot be combined" if tables else "drop needs a model or a table"
            raise UsageError("usage", both, "Name what is to be removed: engine drop MODEL, or engine drop --all.")
        if everything and chosen.project.target is None:
            raise UsageError("usage", "--all needs a target", "Name it, so that no default is dropped: --target NAME.")
        drop_tables(chosen, tables, accept, shared["log_format"], yes=yes)

    return carry_out(work, **shared)


@click.command(cls=Command)
@click.argument("model", shell_complete=of_models)
@click.option(
    "--where", required=True, metavar="SQL", help="A condition over the columns of the table: 'user_id = 42'."
)
@click.option(
    "--quarantine", metavar="SQL", help="Also the rows of MODEL__quarantine that match this condition over its columns."
)
@click.option("--dry-run", is_flag=True, help="Print what would be erased without changing anything.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@project_options
def erase(model: str, where: str, quarantine: str | None, *, dry_run: bool, yes: bool, **shared: Any) -> int:
    """Erase the rows of a person: from the table, its earlier versions, what is beside it, and the disk; asks first."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.erase_command import erase_rows

        erase_rows(chosen, model, where, quarantine, shared["log_format"], dry_run=dry_run, yes=yes)

    return carry_out(work, **shared)


@click.command(cls=Command)
@click.argument("model", shell_complete=of_models)
@click.option("--from", "begin", required=True, metavar="TIME", help="The first time, in UTC: 2026-05-01.")
@click.option("--to", "end", metavar="TIME", help="Rows before this time; default: all later rows.")
@click.option("--column", metavar="NAME", help="Of the table; default: the watermark's or the partitions' column.")
@click.option(
    "--rows-per-commit",
    type=click.IntRange(min=1),
    default=1_000_000,
    show_default=True,
    help="Replace so many rows at a time, or one day.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be replaced without changing anything.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--accept", multiple=True, type=click.Choice(["fewer-rows"]), help="Accept a named consequence.")
@project_options
def backfill(
    model: str,
    begin: str,
    end: str | None,
    column: str | None,
    rows_per_commit: int,
    accept: tuple[str, ...],
    *,
    dry_run: bool,
    yes: bool,
    **shared: Any,
) -> int:
    """Compute rows of a stateless stream again from the input it has read, after its query changed; asks first."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.backfill_command import backfill_rows

        backfill_rows(
            chosen, model, (column, begin, end), rows_per_commit, accept, shared["log_format"], dry_run=dry_run, yes=yes
        )

    return carry_out(work, **shared)


@click.command(cls=Command)
@click.argument("model", shell_complete=of_models)
@click.option("--output", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True)
@project_options
def compare(model: str, output: str, **shared: Any) -> int:
    """Compare a table with what its last full refresh replaced, or staged rows with the table."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.compare_command import show_difference

        show_difference(chosen, model, output)

    return carry_out(work, **shared)


@click.command(cls=Command)
@click.argument("selection", metavar="MODEL...", nargs=-1, required=True, shell_complete=of_models)
@click.option("--dry-run", is_flag=True, help="Print what would come back without changing anything.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--accept", multiple=True, type=click.Choice(["downstream-stops"]), help="Accept a named consequence.")
@project_options
def rollback(selection: tuple[str, ...], accept: tuple[str, ...], *, dry_run: bool, yes: bool, **shared: Any) -> int:
    """Undo the last full refresh of streaming tables: rows, columns and checkpoint of before; asks first."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.rollback_command import roll_tables_back

        roll_tables_back(chosen, selection, accept, shared["log_format"], dry_run=dry_run, yes=yes)

    return carry_out(work, **shared)


@click.group(cls=Group)
def source() -> None:
    """Inspect sources and check freshness."""


@source.command()
@click.argument("name", shell_complete=of_sources)
@project_options
def inspect(name: str, **shared: Any) -> int:
    """Print a source's declaration with its columns, from the schema registry or a sample of records."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.show_command import show_source

        show_source(chosen, name)

    return carry_out(work, **shared)


@source.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Output file (default: target/sources.json).",
)
@selection_options
@project_options
def freshness(output: Path | None, **options: Any) -> int:
    """Check the age of each source's newest row against its freshness settings."""
    wanted, shared = split(options)

    def work(chosen: CommandSettings) -> bool:
        from engine.cli.commands.source_freshness_command import show_freshness

        return show_freshness(chosen, wanted, output, shared["log_format"])

    return carry_out(work, **shared)


COMMANDS = (show, sql, state, maintain, publish, drop, erase, backfill, compare, rollback, source)
