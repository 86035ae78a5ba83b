"""The keys of project.yml."""

from __future__ import annotations

from typing import Final

from engine.schema.config_key import NONE, REQUIRED, ConfigBlock, ConfigKey, ValueForm

PATHS: Final = ConfigBlock(
    "paths",
    "paths",
    "paths",
    "Folders of the project, relative to it.",
    (
        ConfigKey("models", ValueForm.PATH, "`models`", "the SQL files of models", "models: sql"),
        ConfigKey("macros", ValueForm.PATH, "`macros`", "the files of macros", "macros: jinja"),
        ConfigKey("packages", ValueForm.PATH, "`packages`", "macro packages, a folder each", "packages: vendor"),
        ConfigKey("sources", ValueForm.PATH, "`sources`", "declarations of sources, Avro schemas", "sources: inputs"),
        ConfigKey("tests", ValueForm.PATH, "`tests`", "unit tests, singular data tests, fixtures", "tests: checks"),
    ),
)

FLAGS: Final = ConfigBlock(
    "flags",
    "flags",
    "flags",
    "Defaults of options of commands; the command line and `ENGINE_<NAME>` win over them.",
    (
        ConfigKey(
            "fail_fast",
            ValueForm.BOOLEAN,
            "`false`",
            "a run stops at the first failure (`--fail-fast`)",
            "fail_fast: true",
        ),
        ConfigKey(
            "warn_error",
            ValueForm.BOOLEAN,
            "`false`",
            "warnings are errors, and data tests that warn fail (`--warn-error`)",
            "warn_error: true",
        ),
        ConfigKey(
            "defer",
            ValueForm.BOOLEAN,
            "`false`",
            "where `--state` is given, models that are not selected are read from its target (`--defer`)",
            "defer: true",
        ),
        ConfigKey(
            "favor_state",
            ValueForm.BOOLEAN,
            "`false`",
            "with `defer`, also models that exist in the target are read from the other one (`--favor-state`)",
            "favor_state: true",
        ),
    ),
)

PROJECT: Final = ConfigBlock(
    "project",
    "project.yml",
    "project.yml",
    "The file at the top of a project.",
    (
        ConfigKey("name", ValueForm.NAME, REQUIRED, "name of the project", "name: shop"),
        ConfigKey(
            "version", ValueForm.TEXT, NONE, "your version of the project; the docs site shows it", 'version: "1.0"'
        ),
        ConfigKey(
            "require_engine_version",
            ValueForm.TEXTS,
            NONE,
            "versions of Headrace that may build the project; another one stops with an error",
            'require_engine_version: ">=0.1,<0.2"',
        ),
        ConfigKey("target", ValueForm.TEXT, "`dev`", "the target to use without `--target`", "target: dev"),
        ConfigKey(
            "targets",
            ValueForm.BY_NAME,
            "`dev` with its defaults",
            "where to build",
            "targets: {dev: {schema: shop_dev}, prod: {schema: shop}}",
            block="target",
        ),
        ConfigKey("vars", ValueForm.VALUES, NONE, "values of `var()`; `--vars` overrides them", "vars: {days: 7}"),
        ConfigKey(
            "models",
            ValueForm.TREE,
            NONE,
            "defaults for folders under `models/`: keys of a model's header with a plus; the deeper folder wins",
            "models: {+tags: [shop], marts: {+schema: marts}}",
            block="folder",
        ),
        ConfigKey(
            "paths", ValueForm.BLOCK, "the keys' own names", "folders", "paths: {tests: tests/models}", block="paths"
        ),
        ConfigKey(
            "flags",
            ValueForm.BLOCK,
            NONE,
            "defaults of options of commands",
            "flags: {warn_error: true}",
            block="flags",
        ),
    ),
)
