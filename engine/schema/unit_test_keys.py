"""The keys of unit tests."""

from __future__ import annotations

from typing import Final

from engine.schema.config_key import NONE, REQUIRED, ConfigBlock, ConfigKey, ValueForm
from engine.schema.source_keys import VERSION

_ROWS = (
    ConfigKey(
        "rows",
        ValueForm.TREE,
        NONE,
        "List of mappings; with `format` also CSV or a query",
        "rows: [{id: 1}]",
    ),
    ConfigKey(
        "format",
        ValueForm.TEXT,
        "by the value",
        "Format of `rows`, as in dbt",
        "format: csv",
        choices=("dict", "csv", "sql"),
    ),
    ConfigKey("csv", ValueForm.TEXT, NONE, "Rows as CSV with a header line", 'csv: "id,kind\\n1,a"'),
    ConfigKey("sql", ValueForm.SQL, NONE, "Query that returns the rows", "sql: select 1 as id"),
    ConfigKey("fixture", ValueForm.TEXT, NONE, "Name of a CSV file under `tests/fixtures/`", "fixture: orders"),
)

ROWS: Final = ConfigBlock("rows", "rows", "rows", "Rows of an input, or expected rows.", _ROWS)

GIVEN: Final = ConfigBlock(
    "given",
    "given rows",
    "given",
    "dbt's list of inputs; the shorter form is a mapping of inputs to rows: `given: {orders: [{id: 1}]}`.",
    (ConfigKey("input", ValueForm.TEXT, REQUIRED, "Input, as the model names it", "input: ref('orders')"), *_ROWS),
)

EXPECT: Final = ConfigBlock(
    "expect",
    "expect",
    "expect",
    "Expected results after a step, or at the end of the test. A list stands for the rows.",
    (
        *_ROWS,
        ConfigKey(
            "ordered", ValueForm.BOOLEAN, "`false`", "`true`: compare the order of the rows as well", "ordered: true"
        ),
        ConfigKey(
            "late",
            ValueForm.COUNT,
            "not compared",
            "Number of rows dropped because they are later than the watermark",
            "late: 1",
        ),
        ConfigKey("duplicates", ValueForm.COUNT, "not compared", "Number of rows dropped by `dedup`", "duplicates: 1"),
        ConfigKey(
            "quarantined", ValueForm.COUNT, "not compared", "Number of rows written to the quarantine", "quarantined: 1"
        ),
        ConfigKey(
            "watermark",
            ValueForm.TIME,
            "not compared",
            "Watermark at the start of the next step (UTC)",
            "watermark: 2024-05-01 10:00:00",
        ),
        ConfigKey("state_rows", ValueForm.COUNT, "not compared", "Number of rows in state", "state_rows: 2"),
    ),
)

_GIVEN_KEY = ConfigKey(
    "given",
    ValueForm.VALUES,
    NONE,
    "Rows of inputs; inputs without rows are empty",
    "given: {orders: [{id: 1}]}",
    also=(ValueForm.BLOCKS,),
    block="given",
)
_EXPECT_KEY = ConfigKey(
    "expect",
    ValueForm.BLOCK,
    NONE,
    "Expected results at the end of the test; required unless a step has it",
    "expect: {rows: [{id: 1}]}",
    also=(ValueForm.ROWS,),
    block="expect",
)

STEP: Final = ConfigBlock(
    "step",
    "a step",
    "steps",
    "One micro-batch, or the words `restart` and `flush`.",
    (
        ConfigKey(
            "given",
            ValueForm.VALUES,
            NONE,
            "Rows of one micro-batch; a batch without rows follows",
            "given: {orders: [{id: 1}]}",
            also=(ValueForm.BLOCKS,),
            block="given",
        ),
        ConfigKey(
            "restart",
            ValueForm.BOOLEAN,
            NONE,
            "Stop the query, and start another one from its checkpoint",
            "restart: true",
        ),
        ConfigKey(
            "flush",
            ValueForm.BOOLEAN,
            NONE,
            "Advance the watermark past every given time, so that windows close",
            "flush: true",
        ),
        ConfigKey(
            "now",
            ValueForm.TIME,
            "the clock",
            "Value of `current_timestamp()` from this step on (UTC)",
            "now: 2024-05-01 10:00:00",
        ),
        ConfigKey(
            "expect",
            ValueForm.BLOCK,
            NONE,
            "Expected results after the step",
            "expect: {late: 1}",
            also=(ValueForm.ROWS,),
            block="expect",
        ),
    ),
)

OVERRIDES: Final = ConfigBlock(
    "overrides",
    "overrides",
    "overrides",
    "Values to replace while Headrace compiles the model of the test.",
    (
        ConfigKey("vars", ValueForm.VALUES, NONE, "Values of `var()`", "vars: {least: 10}"),
        ConfigKey("macros", ValueForm.MAPPING, NONE, "Texts that macros return", "macros: {is_big: amount > 10}"),
        ConfigKey("env_vars", ValueForm.VALUES, NONE, "Values of `env_var()`", "env_vars: {REGION: eu}", later=True),
    ),
)

_CONFIG = (
    ConfigKey("tags", ValueForm.TEXTS, NONE, "Labels for selection", "tags: [slow]"),
    ConfigKey("meta", ValueForm.VALUES, NONE, "Any data; manifest.json contains it", "meta: {owner: sales}"),
    ConfigKey("enabled", ValueForm.BOOLEAN, "`true`", "`false`: ignore the test", "enabled: false"),
)
UNIT_TEST_CONFIG: Final = ConfigBlock(
    "unit_test_config",
    "the config of a unit test",
    "unit_tests: config",
    "Options of a unit test, as in dbt. A value next to `config:` wins; tags add up.",
    _CONFIG,
)

UNIT_TEST: Final = ConfigBlock(
    "unit_test",
    "a unit test",
    "unit_tests",
    "A test of one model's query over given rows.",
    (
        ConfigKey("name", ValueForm.NAME, REQUIRED, "Name of the test", "name: late_rows_are_dropped"),
        ConfigKey("model", ValueForm.TEXT, REQUIRED, "Model to test", "model: orders_hourly"),
        ConfigKey(
            "description", ValueForm.TEXT, NONE, "Text for people; manifest.json contains it", "description: As agreed."
        ),
        _GIVEN_KEY,
        ConfigKey(
            "steps",
            ValueForm.BLOCKS,
            "one step with `given`",
            "Micro-batches, in order, and the words `restart` and `flush`",
            "steps: [{given: {orders: [{id: 1}]}}, restart, flush]",
            also=(ValueForm.TEXTS,),
            block="step",
        ),
        _EXPECT_KEY,
        ConfigKey(
            "overrides",
            ValueForm.BLOCK,
            NONE,
            "Other values of variables and macros",
            "overrides: {vars: {least: 10}}",
            block="overrides",
        ),
        *_CONFIG,
        ConfigKey(
            "config",
            ValueForm.BLOCK,
            NONE,
            "The same options under `config:`, as in dbt",
            "config: {tags: [slow]}",
            block="unit_test_config",
        ),
    ),
)

UNIT_TEST_FILE: Final = ConfigBlock(
    "unit_test_file",
    "a file of tests",
    "A file under tests/",
    "YAML files under `tests/` hold unit tests.",
    (
        VERSION,
        ConfigKey(
            "unit_tests",
            ValueForm.BLOCKS,
            NONE,
            "List of unit tests",
            "unit_tests: [{name: t, model: orders, given: {shop.orders: []}, expect: []}]",
            block="unit_test",
        ),
    ),
)
