"""Arguments as dbt takes them: several values behind one option, shared options before the command, bare names.

click gives an option a fixed number of values. The arguments are rewritten before click reads them: `-s a b` becomes
`-s a --select b`, `build a` becomes `build --select a`, and `-q build` becomes `build -q`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click
from click.shell_completion import CompletionItem

from engine.cli.options import Several, fail_fast_option, project_options
from engine.cli.shell_completion import selection_completions

COMMANDS = {
    "deps": "copy the macros of a package to packages/NAME/macros/; nothing is downloaded",
    "seed": "read the file as a source: 'format: csv' with its path, listed under sources/",
    "snapshot": "a model with 'unique_key' and 'history: true' keeps every version of a row",
    "clone": "build into the other target: engine build -t NAME",
    "run-operation": "write the SQL as pre_hook or post_hook of a model",
    "source-freshness": "engine source freshness",
    "snapshot-freshness": "engine source freshness",
    "sl": "there are no metrics; a model can compute them",
    "lint": "engine compile reports errors of SQL and of streams",
}
OPTIONS = {
    "--profile": "targets are in project.yml: -t NAME",
    "--profiles-dir": "targets are in project.yml: -t NAME",
    "--config-dir": "engine debug lists its checks; targets are in project.yml",
    "--connection": "engine debug checks the catalog and everything else",
    "--log-level-file": "target/logs/engine.log has everything of level info; --debug adds the rest",
    "--log-format-file": "the log file is text; --log-format json prints JSON lines",
    "--log-path": "logs are written to logs/ of the folder of --target-path",
    "--no-empty": "tables are filled unless --empty is given",
    "--dry-run": "engine plan shows the effect of a build; engine maintain has --dry-run",
    "--sample": "engine show MODEL --limit 10 runs a query and prints some rows",
    "--event-time-start": "bound the rows in the query, or begin a stream at a time: --reset-checkpoint TIME",
    "--event-time-end": "bound the rows in the query",
    "--indirect-selection": "tests are selected with the model that they test; exclude some with --exclude "
    "test_name:NAME",
    "--no-store-failures": "set 'store_failures: false' in the config of a test",
    "--resource-type": "select the kind: -s resource_type:model, test_type:unit, test_type:data",
    "--resource-types": "select the kind: -s resource_type:model, test_type:unit, test_type:data",
    "--exclude-resource-type": "exclude it: --exclude resource_type:unit_test",
    "--exclude-resource-types": "exclude it: --exclude resource_type:unit_test",
    "--warn-error-options": "set 'severity: error' in the config of a test",
    "--no-use-colors": "set the environment variable NO_COLOR=1",
    "--use-colors": "terminals get colours unless NO_COLOR is set",
    "--no-partial-parse": "set the environment variable ENGINE_CACHE to an empty folder",
    "--partial-parse": "unchanged models are not recompiled",
    "--no-version-check": "remove require_engine_version from project.yml",
    "--no-quiet": "lines are printed unless -q is set",
    "--no-debug": "the log is printed with --debug only",
    "--cache-selected-only": "only the tables of selected models are looked at",
    "--no-introspect": "engine compile never queries a table",
    "--introspect": "engine compile never queries a table",
    "--populate-cache": "only the tables of selected models are looked at",
    "--no-populate-cache": "only the tables of selected models are looked at",
    "--no-compile": "engine docs generate compiles only changed files",
    "--static": "the site of engine docs generate is static files",
    "--empty-catalog": "engine docs generate reads tables where there are some",
    "--send-anonymous-usage-stats": "nothing is ever sent",
    "--no-send-anonymous-usage-stats": "nothing is ever sent",
    "--skip-profile-setup": "engine init asks nothing",
    "--single-threaded": "use --threads 1",
    "--no-write-json": "artifacts are always written",
    "--write-json": "artifacts are always written",
    "--args": "write the SQL as pre_hook or post_hook of a model",
    "--printer-width": "output is not truncated",
    "--full-refresh": "engine build -f rebuilds tables",
}


def hint_for_command(name: str) -> str | None:
    return _hint("command", name, COMMANDS)


def hint_for_option(name: str) -> str | None:
    return _hint("option", name, OPTIONS)


def as_markdown() -> str:
    """All answers as a table; docs/dbt-commands.md has it between two marks."""
    rows = [f"| `{name}` | {text} |" for answers in (COMMANDS, OPTIONS) for name, text in answers.items()]
    return "\n".join(["| dbt | Headrace |", "|---|---|", *rows])


def _hint(kind: str, name: str, answers: dict[str, str]) -> str | None:
    return f"There is no {kind} '{name}': {answers[name]}." if name in answers else None


_END = "--"
_SUMMARY = 200


class Command(click.Command):
    """A command; what is bare is for its option --select, if it has one and takes no argument."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, _one_value_each(self.get_params(ctx), args))
        except click.NoSuchOption as error:
            if (dbt_hint := hint_for_option(error.option_name)) is None:
                raise
            raise click.UsageError(dbt_hint, ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete options, and bare names as those of --select."""
        completions = super().shell_complete(ctx, incomplete)
        selects = any("--select" in param.opts for param in self.params)
        return (
            [*completions, *selection_completions(ctx, incomplete)]
            if selects and not incomplete.startswith("-")
            else completions
        )


class Group(click.Group):
    """A group of commands; the options that all of them share may be before the command."""

    command_class = Command
    group_class = type

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, _behind_command(_SHARED, args))
        except click.NoSuchOption as error:
            if (dbt_hint := hint_for_option(error.option_name)) is None:
                raise
            raise click.UsageError(dbt_hint, ctx) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the equivalent of dbt's."""
        dbt_hint = hint_for_command(args[0]) if self.get_command(ctx, args[0]) is None else None
        if dbt_hint is not None:
            ctx.fail(dbt_hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List each command with its whole summary, and under one name."""
        commands = {name: command for name in self.list_commands(ctx) if (command := self.get_command(ctx, name))}
        rows = [(name, command.get_short_help_str(_SUMMARY)) for name, command in commands.items() if name != "list"]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.command()
@project_options
@fail_fast_option
def _shared() -> None: ...


_SHARED: Sequence[click.Parameter] = _shared.params


class _OptionNames:
    def __init__(self, params: Iterable[click.Parameter]) -> None:
        options = [param for param in params if isinstance(param, click.Option)]
        self._options = {name: option for option in options for name in (*option.opts, *option.secondary_opts)}

    def get(self, name: str) -> click.Option | None:
        return self._options.get(name)

    def read(self, word: str) -> tuple[click.Option | None, bool]:
        """The last option in an argument, and whether its value is the next argument; None: not all is known."""
        if word.startswith("--"):
            name, attached, _ = word.partition("=")
            option = self.get(name)
            return option, option is not None and _takes_value(option) and not attached
        option = None
        for place, letter in enumerate(word[1:], 2):
            option = self.get(f"-{letter}")
            if option is None:
                return None, False
            if _takes_value(option):
                return option, place == len(word)
        return option, False


def _takes_value(option: click.Option) -> bool:
    return not option.is_flag and not option.count


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _one_value_each(params: Sequence[click.Parameter], args: Sequence[str]) -> list[str]:
    options, remaining, result = _OptionNames(params), list(args), list[str]()
    bare = None if any(isinstance(param, click.Argument) for param in params) else options.get("--select")
    while remaining:
        word = remaining.pop(0)
        if word == _END:
            return [*result, *(_with_option_name(bare, remaining) if bare else [word, *remaining])]
        if not _is_option(word):
            result += _with_option_name(bare, [word]) if bare else [word]
            continue
        result.append(word)
        option, value_follows = options.read(word)
        if value_follows and remaining:
            if isinstance(option, Several) and _is_option(remaining[0]):
                # click would take the option for the value.
                raise click.BadOptionUsage(word, f"Option '{word}' requires an argument.")
            result.append(remaining.pop(0))
        if isinstance(option, Several):
            while remaining and not _is_option(remaining[0]):
                result += _with_option_name(option, [remaining.pop(0)])
    return result


def _with_option_name(option: click.Option, values: Iterable[str]) -> list[str]:
    """Values that do not begin with a hyphen, or do: each behind the option's long name."""
    name = max(option.opts, key=len)
    return [f"{name}={value}" for value in values]


def _behind_command(shared: Sequence[click.Parameter], args: Sequence[str]) -> list[str]:
    options, remaining = _OptionNames(shared), list(args)
    own, moved = list[str](), list[str]()
    while remaining and _is_option(remaining[0]) and remaining[0] != _END:
        word = remaining.pop(0)
        option, value_follows = options.read(word)
        if option is None:
            own.append(word)
            continue
        moved.append(word)
        if value_follows and remaining:
            moved.append(remaining.pop(0))
    return [*own, *remaining[:1], *moved, *remaining[1:]] if remaining else own
