"""The options of data tests, and the columns and models under which the tests are listed."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from engine.schema.config_key import NONE, ConfigBlock, ConfigKey, ValueForm

_LATER = (
    ConfigKey("fail_calc", ValueForm.SQL, NONE, "Expression that counts failures", "fail_calc: count(*)", later=True),
    ConfigKey(
        "store_failures_as",
        ValueForm.TEXT,
        NONE,
        "Materialization of the failing rows",
        "store_failures_as: view",
        later=True,
    ),
    ConfigKey("schema", ValueForm.TEXT, NONE, "Schema of the failing rows", "schema: failures", later=True),
    ConfigKey("database", ValueForm.TEXT, NONE, "Catalog of the failing rows", "database: lake", later=True),
    ConfigKey("alias", ValueForm.TEXT, NONE, "Table of the failing rows", "alias: bad_orders", later=True),
)
_OPTIONS = (
    ConfigKey(
        "name", ValueForm.NAME, "made from test, model and column", "Name of the test", "name: orders_have_an_id"
    ),
    ConfigKey(
        "description", ValueForm.TEXT, NONE, "Text for people; manifest.json contains it", "description: As agreed."
    ),
    ConfigKey(
        "severity",
        ValueForm.TEXT,
        "`error`",
        "`warn`: the test never fails",
        "severity: warn",
        choices=("warn", "error"),
    ),
    ConfigKey(
        "error_if", ValueForm.TEXT, "`!= 0`", "Number of failing rows at which the test fails", 'error_if: "> 10"'
    ),
    ConfigKey("warn_if", ValueForm.TEXT, "`!= 0`", "Number of failing rows at which the test warns", 'warn_if: "> 0"'),
    ConfigKey("where", ValueForm.SQL, "all rows", "Rows to test", "where: amount > 0"),
    ConfigKey("limit", ValueForm.INTEGER, "all", "Maximum number of failing rows to count", "limit: 100"),
    ConfigKey(
        "store_failures",
        ValueForm.BOOLEAN,
        "`false`",
        "Store the failing rows of the last run in `<schema>_test_failures.<test>`",
        "store_failures: true",
    ),
    ConfigKey(
        "tags", ValueForm.TEXTS, NONE, "Labels for selection, in addition to the tags of the model", "tags: [nightly]"
    ),
    ConfigKey("meta", ValueForm.VALUES, NONE, "Any data; manifest.json contains it", "meta: {owner: sales}"),
    ConfigKey("enabled", ValueForm.BOOLEAN, "`true`", "`false`: ignore the test", "enabled: false"),
)

TEST_CONFIG: Final = ConfigBlock(
    "test_config",
    "the config of a test",
    "data tests: config",
    "Options of a data test under `config:`, as in dbt, or in `{{ config(..) }}` of a singular test.",
    (*_OPTIONS, *_LATER),
)

DATA_TEST: Final = ConfigBlock(
    "data_test",
    "a data test",
    "data tests",
    "Options of a generic test, next to the arguments of its macro: `- unique: {severity: warn}`.",
    (
        ConfigKey(
            "arguments",
            ValueForm.VALUES,
            NONE,
            "Arguments of the test macro, as in dbt; you can also write them next to the options",
            "arguments: {values: [a, b]}",
        ),
        ConfigKey(
            "config",
            ValueForm.BLOCK,
            NONE,
            "Options under `config:`, as in dbt",
            "config: {limit: 5}",
            block="test_config",
        ),
        *_OPTIONS,
        *_LATER,
    ),
    open=True,
)

TESTS: Final = ConfigKey("tests", ValueForm.TESTS, NONE, "Same as `data_tests`", "tests: [not_null]", block="data_test")
DATA_TESTS: Final = ConfigKey(
    "data_tests",
    ValueForm.TESTS,
    NONE,
    "Data tests: a name, or a name with arguments and options",
    "data_tests: [unique, {accepted_values: {values: [a, b]}}]",
    block="data_test",
)

# The same for a whole table.
_EXPRESSION = '[{expression: {expression: "amount > 0"}}]'
TABLE_TESTS: Final = (
    replace(DATA_TESTS, example=f"data_tests: {_EXPRESSION}"),
    replace(TESTS, example=f"tests: {_EXPRESSION}"),
)

COLUMN: Final = ConfigBlock(
    "column",
    "a column",
    "columns",
    "Columns as a mapping by name, or as a list as in dbt. A string instead of the mapping is the description.",
    (
        ConfigKey("name", ValueForm.TEXT, "required in a list", "Name of the column, in a list as in dbt", "name: id"),
        ConfigKey(
            "description",
            ValueForm.TEXT,
            NONE,
            "Text for the docs site and the comment of the column",
            "description: The customer.",
        ),
        ConfigKey(
            "type", ValueForm.TEXT, NONE, "Spark type; it is an error if the query returns another type", "type: string"
        ),
        ConfigKey("data_type", ValueForm.TEXT, NONE, "Same as `type`, as in dbt", "data_type: string"),
        ConfigKey(
            "renamed_from",
            ValueForm.TEXT,
            NONE,
            "Former name of the column in the table: the next build renames the column and keeps its values",
            "renamed_from: client",
        ),
        TESTS,
        DATA_TESTS,
        ConfigKey("meta", ValueForm.VALUES, NONE, "Any data; the docs site shows it", "meta: {pii: true}"),
    ),
    plain=(ValueForm.TEXT,),
)
