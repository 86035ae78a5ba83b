"""Commands about tables and sources: their rows, freshness, maintenance and removal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from engine.cli.arguments import Command, Group
from engine.cli.command_setup import CommandSettings
from engine.cli.exits import run_command
from engine.cli.options import project_options, selection_options, split
from engine.cli.shell_completion import complete_models, complete_sources
from engine.errors import UsageError


@click.command(cls=Command)
@click.argument("model", required=False, shell_complete=complete_models)
@click.option("-s", "--select", "chosen_model", metavar="MODEL", help="Same as MODEL.")
@click.option(
    "--inline", metavar="SQL", help="Run this query instead of a model. The query can use ref() and source()."
)
@click.option(
    "--table", is_flag=True, help="Print the rows of the stored table (without Java, except for VARIANT columns)."
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
@click.option(
    "--out", "file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write the rows to a file."
)
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
    """Run a model's query over all current data, including open windows, and print the rows."""

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.show_command import PrintOptions, read_sort, show_query, show_table

        if model and chosen_model:
            raise UsageError(
                "usage", f"show takes one model, not '{model}' and '{chosen_model}'", f"Write engine show {model}."
            )
        name = model or chosen_model
        print_options = PrintOptions(None if everything else limit, read_sort(sort), output, file)
        if table:
            show_table(settings, name, print_options)
        else:
            show_query(settings, name, inline, print_options)

    return run_command(work, **shared)


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
@click.option(
    "--out", "file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write the rows to a file."
)
@project_options
def sql(query: str | None, limit: int, everything: bool, output: str, file: Path | None, **shared: Any) -> int:
    """Query the stored tables without Java. Without QUERY, open a prompt. Needs the Python extra 'sql'."""

    def work(settings: CommandSettings) -> bool:
        from engine.cli.commands.show_command import PrintOptions
        from engine.cli.commands.sql_command import run_sql

        return run_sql(settings, query, PrintOptions(None if everything else limit, (), output, file))

    return run_command(work, **shared)


@click.command(cls=Command)
@click.argument("model", shell_complete=complete_models)
@click.option("-n", "--limit", type=click.IntRange(0, 10_000), default=10, show_default=True,
              help="Number of state entries to print per step of the query.")  # fmt: skip
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format.")
@project_options
def state(model: str, limit: int, output: str, **shared: Any) -> int:
    """Inspect a stream's state: open windows, dedup keys, unmatched join rows."""

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.state_command import show_state

        show_state(settings, model, limit, output)

    return run_command(work, **shared)


@click.command(cls=Command)
@click.option("--dry-run", is_flag=True, help="Print the planned changes without making them.")
@click.option(
    "--older-than",
    metavar="DURATION",
    help="Expire snapshots older than this (default: the table's setting, or 5 days).",
)
@click.option(
    "--orphans-older-than", "orphans", metavar="DURATION", help="Remove orphan files older than this (default: 3 days)."
)
@selection_options
@project_options
def maintain(dry_run: bool, older_than: str | None, orphans: str | None, **options: Any) -> int:
    """Compact small files, expire old snapshots and remove orphan files. Safe while streams run."""
    print_options, shared = split(options)

    def work(settings: CommandSettings) -> bool:
        from engine.cli.commands.maintain_command import maintain_models

        return maintain_models(settings, print_options, older_than, orphans, shared["log_format"], dry_run=dry_run)

    return run_command(work, **shared)


@click.command(cls=Command)
@click.argument("model", shell_complete=complete_models)
@click.option("--accept", is_flag=True, help="Publish the rows even if their tests failed.")
@project_options
def publish(model: str, accept: bool, **shared: Any) -> int:
    """Publish the staged rows of a model that sets publish: on_tests_pass."""

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.publish_command import accept_rows

        accept_rows(settings, model, accept=accept)

    return run_command(work, **shared)


@click.command(cls=Command)
@click.argument("tables", metavar="MODEL|TABLE...", nargs=-1, shell_complete=complete_models)
@click.option("--all", "everything", is_flag=True, help="Drop everything that this project has built in the target.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--accept",
    multiple=True,
    type=click.Choice(["downstream-stops", "files-gone", "protected"]),
    help="Proceed even if downstream streams stop (downstream-stops), rows of archived or deleted files are lost "
    "(files-gone), or the table is protected. Can be repeated.",
)
@project_options
def drop(tables: tuple[str, ...], accept: tuple[str, ...], *, everything: bool, yes: bool, **shared: Any) -> int:
    """Drop tables with their files, state, quarantine tables and deleted keys. Asks for confirmation."""

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.drop_command import drop_tables

        if everything == bool(tables):
            problem = f"--all and '{tables[0]}' cannot be combined" if tables else "drop needs a model or a table"
            raise UsageError("usage", problem, "Name the tables to remove: engine drop MODEL, or engine drop --all.")
        if everything and settings.project.target is None:
            raise UsageError("usage", "--all needs a target", "Name it, so that no default is dropped: --target NAME.")
        drop_tables(settings, tables, accept, shared["log_format"], yes=yes)

    return run_command(work, **shared)


@click.command(cls=Command)
@click.argument("model", shell_complete=complete_models)
@click.option("--where", required=True, metavar="SQL", help="Condition on the columns of the table: 'user_id = 42'.")
@click.option("--quarantine", metavar="SQL", help="Also erase rows of MODEL__quarantine that match this condition.")
@click.option("--dry-run", is_flag=True, help="Print the rows to erase without erasing them.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@project_options
def erase(model: str, where: str, quarantine: str | None, *, dry_run: bool, yes: bool, **shared: Any) -> int:
    """Erase rows from a table, its earlier snapshots and its quarantine table, and delete the underlying files."""

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.erase_command import erase_rows

        erase_rows(settings, model, where, quarantine, shared["log_format"], dry_run=dry_run, yes=yes)

    return run_command(work, **shared)


@click.command(cls=Command)
@click.argument("model", shell_complete=complete_models)
@click.option("--from", "begin", required=True, metavar="TIME", help="Start of the time range, in UTC: 2026-05-01.")
@click.option("--to", "end", metavar="TIME", help="End of the time range, exclusive (default: no end).")
@click.option(
    "--column",
    metavar="NAME",
    help="Date or timestamp column of the table (default: the watermark or partition column).",
)
@click.option(
    "--rows-per-commit",
    type=click.IntRange(min=1),
    default=1_000_000,
    show_default=True,
    help="Maximum rows per commit. A commit always covers at least one full day, even if that exceeds the limit.",
)
@click.option("--dry-run", is_flag=True, help="Print the rows to replace without replacing them.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--accept", multiple=True, type=click.Choice(["fewer-rows"]), help="Proceed even if the new result has fewer rows."
)
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
    """Recompute rows of a stateless stream after its query changed. Asks for confirmation."""

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.backfill_command import backfill_rows

        backfill_rows(
            settings,
            model,
            (column, begin, end),
            rows_per_commit,
            accept,
            shared["log_format"],
            dry_run=dry_run,
            yes=yes,
        )

    return run_command(work, **shared)


@click.command(cls=Command)
@click.argument("model", shell_complete=complete_models)
@click.option(
    "--output",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="Output format.",
)
@project_options
def compare(model: str, output: str, **shared: Any) -> int:
    """Compare a table with its version before the last full refresh, or its staged rows with its published rows."""

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.compare_command import show_difference

        show_difference(settings, model, output)

    return run_command(work, **shared)


@click.command(cls=Command)
@click.argument("selection", metavar="MODEL...", nargs=-1, required=True, shell_complete=complete_models)
@click.option("--dry-run", is_flag=True, help="Print the versions to restore without restoring them.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--accept", multiple=True, type=click.Choice(["downstream-stops"]), help="Proceed even if downstream streams stop."
)
@project_options
def rollback(selection: tuple[str, ...], accept: tuple[str, ...], *, dry_run: bool, yes: bool, **shared: Any) -> int:
    """Restore streaming tables and checkpoints from before the last full refresh. Asks for confirmation."""

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.rollback_command import roll_tables_back

        roll_tables_back(settings, selection, accept, shared["log_format"], dry_run=dry_run, yes=yes)

    return run_command(work, **shared)


@click.group(cls=Group)
def source() -> None:
    """Inspect sources and check freshness."""


@source.command()
@click.argument("name", shell_complete=complete_sources)
@click.option(
    "--lateness",
    metavar="COLUMN",
    help="Measure how late rows arrive by this event-time column, and suggest a watermark delay.",
)
@project_options
def inspect(name: str, lateness: str | None, **shared: Any) -> int:
    """Generate a source declaration, with columns inferred from the schema registry or a sample of records."""

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.show_command import show_lateness, show_source

        if lateness is None:
            show_source(settings, name)
        else:
            show_lateness(settings, name, lateness)

    return run_command(work, **shared)


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
    """Check the age of the newest row of each source."""
    print_options, shared = split(options)

    def work(settings: CommandSettings) -> bool:
        from engine.cli.commands.source_freshness_command import show_freshness

        return show_freshness(settings, print_options, output, shared["log_format"])

    return run_command(work, **shared)


@click.group(cls=Group)
def sink() -> None:
    """Show how far sinks have delivered, and set their positions."""


@sink.command(name="show")
@click.argument("name")
@click.option("-n", "--limit", type=click.IntRange(0, 10_000), default=5, show_default=True,
              help="Number of undelivered rows to print.")  # fmt: skip
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format.")
@project_options
def show_sink(name: str, limit: int, output: str, **shared: Any) -> int:
    """Show the position of a sink and the rows that it has not delivered yet."""

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.sink_command import show_sink

        show_sink(settings, name, limit, output)

    return run_command(work, **shared)


@sink.command(name="reset")
@click.argument("name")
@click.option("--to", required=True, metavar="POSITION", help="now, earliest, or a snapshot id.")
@project_options
def reset_sink(name: str, to: str, **shared: Any) -> int:
    """Set the position from which the next build starts to deliver."""

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.sink_command import reset_sink

        reset_sink(settings, name, to)

    return run_command(work, **shared)


COMMANDS = (show, sql, state, maintain, publish, drop, erase, backfill, compare, rollback, source, sink)
