"""Answers to commands and options of dbt that do not exist here."""

from __future__ import annotations

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
