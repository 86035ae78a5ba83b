"""Commands and options of dbt that do not exist here, each with what does the same."""

from __future__ import annotations

COMMANDS = {
    "deps": "copy the macros of a package to packages/NAME/macros/; nothing is downloaded",
    "seed": "read the file as a source: 'format: csv' with its path, listed under sources/",
    "snapshot": "a model with 'unique_key' and 'history: true' keeps every version of a row",
    "retry": "run engine build again: it continues where it stopped; engine build -s result:error result:skipped "
    "runs what failed",
    "clone": "build into the other target: engine build -t NAME",
    "run-operation": "write the SQL as pre_hook or post_hook of a model",
    "source-freshness": "engine source freshness",
}
OPTIONS = {
    "--profile": "targets are in project.yml: -t NAME",
    "--profiles-dir": "targets are in project.yml: -t NAME",
    "--target-path": "artifacts are always written to target/ of the project",
    "--log-path": "logs are always written to target/logs/",
    "--log-level": "target/logs/engine.log has everything; -q prints errors only",
    "--defer": "a target has its own tables: build what a model reads too, with -s +NAME",
    "--no-defer": "a target has its own tables",
    "--favor-state": "a target has its own tables: build what a model reads too, with -s +NAME",
    "--empty": "engine compile checks queries and types without rows and without Java",
    "--dry-run": "engine plan shows what a build would do; engine maintain has --dry-run",
    "--sample": "engine show MODEL --limit 10 runs a query and prints some rows",
    "--event-time-start": "bound the rows in the query, or begin a stream at a time: --reset-checkpoint TIME",
    "--event-time-end": "bound the rows in the query",
    "--indirect-selection": "tests are selected with the model that they test; exclude some with --exclude "
    "test_name:NAME",
    "--store-failures": "set 'store_failures: true' in the config of a test",
    "--no-store-failures": "set 'store_failures: false' in the config of a test",
    "--resource-type": "select the kind: -s resource_type:model, test_type:unit, test_type:data",
    "--resource-types": "select the kind: -s resource_type:model, test_type:unit, test_type:data",
    "--exclude-resource-type": "exclude it: --exclude resource_type:unit_test",
    "--exclude-resource-types": "exclude it: --exclude resource_type:unit_test",
    "--output-keys": "engine ls --output json prints all keys; jq selects",
    "--warn-error": "set 'severity: error' in the config of a test; warnings of compile are in --log-format json",
    "--warn-error-options": "set 'severity: error' in the config of a test",
    "--no-use-colors": "set the environment variable NO_COLOR=1",
    "--use-colors": "terminals get colours unless NO_COLOR is set",
    "--no-partial-parse": "set the environment variable ENGINE_CACHE to an empty folder",
    "--partial-parse": "unchanged models are not compiled again",
    "--no-fail-fast": "remove --fail-fast: nodes that do not depend on a failure run",
    "--no-version-check": "remove require_engine_version from project.yml",
    "--args": "write the SQL as pre_hook or post_hook of a model",
    "--inline": "engine show --inline SQL runs a query",
    "--debug": "target/logs/engine.log has everything",
    "-d": "target/logs/engine.log has everything",
    "--printer-width": "output is not truncated",
    "--full-refresh": "engine build -f rebuilds tables",
}


def answer_to_command(name: str) -> str | None:
    """The message for a command that dbt has."""
    return _answer("command", name, COMMANDS)


def answer_to_option(name: str) -> str | None:
    """The message for an option that dbt has."""
    return _answer("option", name, OPTIONS)


def _answer(kind: str, name: str, known: dict[str, str]) -> str | None:
    return f"There is no {kind} '{name}': {known[name]}." if name in known else None
