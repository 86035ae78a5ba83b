"""The keys of project.yml."""

from __future__ import annotations

from typing import Final

from engine.schema.config_key import NONE, REQUIRED, ConfigBlock, ConfigKey, ValueForm

PATHS: Final = ConfigBlock(
    "paths",
    "paths",
    "paths",
    "Folders of the project. Paths are relative to the project folder.",
    (
        ConfigKey("models", ValueForm.PATH, "`models`", "SQL files of models", "models: sql"),
        ConfigKey("macros", ValueForm.PATH, "`macros`", "Files with macros", "macros: jinja"),
        ConfigKey("packages", ValueForm.PATH, "`packages`", "Macro packages, one folder each", "packages: vendor"),
        ConfigKey("sources", ValueForm.PATH, "`sources`", "Source declarations and Avro schemas", "sources: inputs"),
        ConfigKey("tests", ValueForm.PATH, "`tests`", "Unit tests, singular data tests and fixtures", "tests: checks"),
    ),
)

FLAGS: Final = ConfigBlock(
    "flags",
    "flags",
    "flags",
    "Defaults of command options. The command line and `ENGINE_<NAME>` override them.",
    (
        ConfigKey(
            "fail_fast",
            ValueForm.BOOLEAN,
            "`false`",
            "Stop a run at the first failure (`--fail-fast`)",
            "fail_fast: true",
        ),
        ConfigKey(
            "warn_error",
            ValueForm.BOOLEAN,
            "`false`",
            "Treat warnings as errors and fail data tests that warn (`--warn-error`)",
            "warn_error: true",
        ),
        ConfigKey(
            "defer",
            ValueForm.BOOLEAN,
            "`false`",
            "With `--state`, read unselected models from the target of that manifest (`--defer`)",
            "defer: true",
        ),
        ConfigKey(
            "favor_state",
            ValueForm.BOOLEAN,
            "`false`",
            "With `defer`, prefer the other target even for models that this target has (`--favor-state`)",
            "favor_state: true",
        ),
    ),
)

PROJECT: Final = ConfigBlock(
    "project",
    "project.yml",
    "project.yml",
    "The main file of a project, in the project folder.",
    (
        ConfigKey("name", ValueForm.NAME, REQUIRED, "Name of the project", "name: shop"),
        ConfigKey(
            "version", ValueForm.TEXT, NONE, "Your version of the project; the docs site shows it", 'version: "1.0"'
        ),
        ConfigKey(
            "require_engine_version",
            ValueForm.TEXTS,
            NONE,
            "Versions of Headrace that may build the project; other versions stop with an error",
            'require_engine_version: ">=0.1,<0.2"',
        ),
        ConfigKey("target", ValueForm.TEXT, "`dev`", "Target to use without `--target`", "target: dev"),
        ConfigKey(
            "targets",
            ValueForm.BY_NAME,
            "`dev` with its defaults",
            "Places to build into, by name",
            "targets: {dev: {schema: shop_dev}, prod: {schema: shop}}",
            block="target",
        ),
        ConfigKey("vars", ValueForm.VALUES, NONE, "Values of `var()`; `--vars` overrides them", "vars: {days: 7}"),
        ConfigKey(
            "models",
            ValueForm.TREE,
            NONE,
            "Defaults for folders under `models/`: header keys with a plus; the deepest folder wins",
            "models: {+tags: [shop], marts: {+schema: marts}}",
            block="folder",
        ),
        ConfigKey(
            "paths",
            ValueForm.BLOCK,
            "the keys' own names",
            "Folders of the project",
            "paths: {tests: tests/models}",
            block="paths",
        ),
        ConfigKey(
            "flags",
            ValueForm.BLOCK,
            NONE,
            "Defaults of command options",
            "flags: {warn_error: true}",
            block="flags",
        ),
    ),
)
