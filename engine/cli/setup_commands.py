"""Commands about the machine, the cache and the diagnostics."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from typing import Any

import click

from engine.cli.arguments import Command, Group
from engine.cli.command_setup import CommandSettings, check_project, log_file, require_extra
from engine.cli.console.safe_output import write
from engine.cli.exits import run_command
from engine.cli.options import output_options, project_options
from engine.cli.shell_completion import SHELLS, complete_codes, script
from engine.errors import UsageError


@click.command(cls=Command)
@click.option(
    "--show-spark-conf", is_flag=True, help="Only print the settings of the Spark session, with secrets masked."
)
@project_options
def debug(*, show_spark_conf: bool, **shared: Any) -> int:
    """Check Java, jars, catalog and state, and suggest a fix for each problem."""

    def work(settings: CommandSettings) -> bool:
        from engine.cli.commands.debug_command import debug

        return debug(settings, spark_conf=show_spark_conf)

    return run_command(work, **shared)


@click.command(cls=Command)
@click.argument("codes", metavar="[CODE]...", nargs=-1, shell_complete=complete_codes)
@output_options
def explain(codes: tuple[str, ...], **shared: Any) -> int:
    """Explain an error CODE: cause, example and fix. Without CODE, list all codes by topic."""

    def work(_: CommandSettings) -> None:
        from engine.cli.explain_command import explain

        explain(codes, as_json=shared["log_format"] == "json")

    return run_command(work, **shared)


@click.command(cls=Command)
@output_options
def clean(**shared: Any) -> int:
    """Delete target/ and the project's cache. Does not delete tables or their state."""

    def work(settings: CommandSettings) -> None:
        from engine.target_folder import TargetFolder
        from engine.user_cache import project_cache

        check_project(settings)
        for folder in filter(None, (settings.target_dir, project_cache(settings.target_dir))):
            with TargetFolder(folder) as target:
                target.clear()
        settings.out.say("Removed target/")

    return run_command(work, **shared)


@click.command(cls=Command)
@click.option("--force", is_flag=True, help="Rebuild the cache even if it exists.")
@click.option(
    "--driver-memory",
    default="",
    metavar="SIZE",
    help="Driver heap size to build the cache for. Needed only for 32g or more.",
)
@click.option("--background", is_flag=True, hidden=True)
@project_options
def warmup(*, force: bool, driver_memory: str, background: bool, **shared: Any) -> int:
    """Build the Java class cache (about a minute), so that Spark starts in half the time.

    Without this command, Headrace builds the cache in the background after the first Spark session.
    """

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.warmup_command import warm_up

        path = warm_up(force=force, memory=driver_memory, background=background)
        if path is not None:
            settings.out.say(f"{path} ({path.stat().st_size / 1e6:.0f} MB)")

    return run_command(work, **shared)


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
@output_options
@click.pass_context
def completion(context: click.Context, /, shell: str, **shared: Any) -> int:
    """Print a shell completion script.

    For bash, in ~/.bashrc: eval "$(engine completion bash)"
    """
    return run_command(lambda _: write(script(context.find_root().command, shell)), **shared)


@click.command(cls=Command)
@click.option("-y", "--yes", is_flag=True, help="Confirm without asking.")
@click.option("--list", "list_only", is_flag=True, help="List the approved hosts of this project.")
@click.option("--forget", "forget_all", is_flag=True, help="Revoke all approvals of this project.")
@project_options
def trust(*, yes: bool, list_only: bool, forget_all: bool, **shared: Any) -> int:
    """Show which secrets the target sends to which hosts, and ask you to approve them.

    Headrace stores the approvals per project folder, outside the project. In CI, set ENGINE_TRUST to the hosts,
    separated by commas.
    """

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.trust_command import trust

        trust(settings, shared["log_format"], yes=yes, list_only=list_only, forget_all=forget_all)

    return run_command(work, **shared)


@click.group(cls=Group)
def jars() -> None:
    """Manage extra Spark jars."""


@jars.command()
@output_options
def fetch(**shared: Any) -> int:
    """Download and verify all jars, so that later runs need no network."""

    def work(settings: CommandSettings) -> None:
        from engine.project import is_project
        from engine.spark.jars import jar_paths, jar_sets
        from engine.spark.java import find_java

        # The jars are the user's, not a project's.
        with log_file(settings) if is_project(settings.root) else nullcontext():
            for path in jar_paths(jar_sets(), fetch=True, java=find_java(), notify=settings.out.say):
                settings.out.say(f"verified {path}")

    return run_command(work, **shared)


@click.command(cls=Command)
@click.option("--formatter", metavar="COMMAND", help="Formatter that reads a model from stdin and writes it to stdout.")
@project_options
def lsp(formatter: str | None, **shared: Any) -> int:
    """Run the language server (LSP) over stdin and stdout. Needs the Python extra 'lsp'."""

    def work(settings: CommandSettings) -> None:
        require_extra("pygls", "lsp")
        from engine.lsp.language_server import serve

        try:
            command = shlex.split(formatter or "")
        except ValueError as error:
            message = f"--formatter cannot be read: {error}"
            raise UsageError("usage", message, "Example: --formatter 'sqlfluff fix --dialect sparksql -'") from error
        serve(settings.project, command)

    return run_command(work, **shared)


@click.command(cls=Command)
@click.option(
    "--allow-tests", is_flag=True, help="Add a tool that runs unit tests, which execute the project's SQL in Spark."
)
@click.option("--allow-build", is_flag=True, help="Add tools that run unit tests and build models.")
@project_options
def mcp(*, allow_tests: bool, allow_build: bool, **shared: Any) -> int:
    """Run the MCP server for AI assistants over stdin and stdout. Needs the Python extra 'mcp'."""

    def work(settings: CommandSettings) -> None:
        require_extra("mcp", "mcp")
        from engine.mcp.tool_server import serve

        check_project(settings)
        serve(settings.project, allow_tests=allow_tests, allow_build=allow_build)

    return run_command(work, **shared)


COMMANDS = (debug, explain, trust, clean, warmup, completion, lsp, mcp, jars)
