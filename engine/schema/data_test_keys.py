"""The options of data tests, and the columns and models under which the tests are listed."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from engine.schema.config_key import NONE, ConfigBlock, ConfigKey, ValueForm

_LATER = (
    ConfigKey("fail_calc", ValueForm.SQL, NONE, "how failures are counted", "fail_calc: count(*)", later=True),
    ConfigKey(
        "store_failures_as", ValueForm.TEXT, NONE, "a view of failing rows", "store_failures_as: view", later=True
    ),
    ConfigKey("schema", ValueForm.TEXT, NONE, "where failing rows are stored", "schema: failures", later=True),
    ConfigKey("database", ValueForm.TEXT, NONE, "where failing rows are stored", "database: lake", later=True),
    ConfigKey("alias", ValueForm.TEXT, NONE, "table of failing rows", "alias: bad_orders", later=True),
)
_OPTIONS = (
    ConfigKey(
        "name", ValueForm.NAME, "made from test, model and column", "name of the test", "name: orders_have_an_id"
    ),
    ConfigKey("description", ValueForm.TEXT, NONE, "for people: manifest.json has it", "description: As agreed."),
    ConfigKey(
        "severity",
        ValueForm.TEXT,
        "`error`",
        "`warn`: the test never fails",
        "severity: warn",
        choices=("warn", "error"),
    ),
    ConfigKey("error_if", ValueForm.TEXT, "`!= 0`", "for which number of failing rows it fails", 'error_if: "> 10"'),
    ConfigKey("warn_if", ValueForm.TEXT, "`!= 0`", "for which number of failing rows it warns", 'warn_if: "> 0"'),
    ConfigKey("where", ValueForm.SQL, "all rows", "the rows that are tested", "where: amount > 0"),
    ConfigKey("limit", ValueForm.INTEGER, "all", "at most so many failing rows are counted", "limit: 100"),
    ConfigKey(
        "store_failures",
        ValueForm.BOOLEAN,
        "`false`",
        "keep the failing rows of the last run in `<schema>_test_failures.<test>`",
        "store_failures: true",
    ),
    ConfigKey("tags", ValueForm.TEXTS, NONE, "for selection; the model's are added", "tags: [nightly]"),
    ConfigKey("meta", ValueForm.VALUES, NONE, "anything; manifest.json has it", "meta: {owner: sales}"),
    ConfigKey("enabled", ValueForm.BOOLEAN, "`true`", "`false`: the test does not exist", "enabled: false"),
)

TEST_CONFIG: Final = ConfigBlock(
    "test_config",
    "the config of a test",
    "data tests: config",
    "The options of a data test, as dbt has them under `config:`, or `{{ config(..) }}` in a singular test.",
    (*_OPTIONS, *_LATER),
)

DATA_TEST: Final = ConfigBlock(
    "data_test",
    "a data test",
    "data tests",
    "Options of a generic test, beside the arguments of its macro: `- unique: {severity: warn}`.",
    (
        ConfigKey(
            "arguments",
            ValueForm.VALUES,
            NONE,
            "arguments of the test's macro, as dbt has them; they may also be beside the options",
            "arguments: {values: [a, b]}",
        ),
        ConfigKey(
            "config", ValueForm.BLOCK, NONE, "the options, as dbt has them", "config: {limit: 5}", block="test_config"
        ),
        *_OPTIONS,
        *_LATER,
    ),
    open=True,
)

TESTS: Final = ConfigKey(
    "tests", ValueForm.TESTS, NONE, "the same as `data_tests`", "tests: [not_null]", block="data_test"
)
DATA_TESTS: Final = ConfigKey(
    "data_tests",
    ValueForm.TESTS,
    NONE,
    "data tests: a name, or a name with arguments and options",
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
    "Columns as a mapping by name, or as dbt's list. A string in place of the mapping is the description.",
    (
        ConfigKey("name", ValueForm.TEXT, "required in a list", "name of the column, in dbt's list", "name: id"),
        ConfigKey(
            "description",
            ValueForm.TEXT,
            NONE,
            "for the docs, and the column's comment in the table",
            "description: The customer.",
        ),
        ConfigKey(
            "type", ValueForm.TEXT, NONE, "Spark type; one that the query does not give is an error", "type: string"
        ),
        ConfigKey("data_type", ValueForm.TEXT, NONE, "the same as `type`, as in dbt", "data_type: string"),
        ConfigKey(
            "renamed_from",
            ValueForm.TEXT,
            NONE,
            "the name that the column of the table had: the next build gives the column its name, with its rows",
            "renamed_from: client",
        ),
        TESTS,
        DATA_TESTS,
        ConfigKey("meta", ValueForm.VALUES, NONE, "anything; the docs site shows it", "meta: {pii: true}"),
    ),
    plain=(ValueForm.TEXT,),
)
