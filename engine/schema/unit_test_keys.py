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
        "a list of mappings; with `format` also CSV or a query",
        "rows: [{id: 1}]",
    ),
    ConfigKey(
        "format",
        ValueForm.TEXT,
        "by the value",
        "dbt's word for what `rows` is",
        "format: csv",
        choices=("dict", "csv", "sql"),
    ),
    ConfigKey("csv", ValueForm.TEXT, NONE, "the rows as CSV with a line of names", 'csv: "id,kind\\n1,a"'),
    ConfigKey("sql", ValueForm.SQL, NONE, "a query that gives the rows", "sql: select 1 as id"),
    ConfigKey("fixture", ValueForm.TEXT, NONE, "name of a CSV file under `tests/fixtures/`", "fixture: orders"),
)

ROWS: Final = ConfigBlock("rows", "rows", "rows", "Rows of an input, or rows that are expected.", _ROWS)

GIVEN: Final = ConfigBlock(
    "given",
    "given rows",
    "given",
    "dbt's list of inputs; the shorter form is a mapping of inputs to rows: `given: {orders: [{id: 1}]}`.",
    (ConfigKey("input", ValueForm.TEXT, REQUIRED, "the input, as the model names it", "input: ref('orders')"), *_ROWS),
)

EXPECT: Final = ConfigBlock(
    "expect",
    "expect",
    "expect",
    "What must hold after a step, or at the end. A list is the rows.",
    (
        *_ROWS,
        ConfigKey("ordered", ValueForm.BOOLEAN, "`false`", "the order of the rows counts", "ordered: true"),
        ConfigKey("late", ValueForm.COUNT, "not compared", "rows dropped behind the watermark", "late: 1"),
        ConfigKey("duplicates", ValueForm.COUNT, "not compared", "rows dropped by `dedup`", "duplicates: 1"),
        ConfigKey("quarantined", ValueForm.COUNT, "not compared", "rows put into the quarantine", "quarantined: 1"),
        ConfigKey(
            "watermark",
            ValueForm.TIME,
            "not compared",
            "the watermark with which the next step begins (UTC)",
            "watermark: 2024-05-01 10:00:00",
        ),
        ConfigKey("state_rows", ValueForm.COUNT, "not compared", "rows held in state", "state_rows: 2"),
    ),
)

_GIVEN_KEY = ConfigKey(
    "given",
    ValueForm.VALUES,
    NONE,
    "rows of inputs; inputs without rows are empty",
    "given: {orders: [{id: 1}]}",
    also=(ValueForm.BLOCKS,),
    block="given",
)
_EXPECT_KEY = ConfigKey(
    "expect",
    ValueForm.BLOCK,
    NONE,
    "what must hold at the end of the test; required unless a step has it",
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
            "one micro-batch with these rows, and the batch without rows that follows",
            "given: {orders: [{id: 1}]}",
            also=(ValueForm.BLOCKS,),
            block="given",
        ),
        ConfigKey(
            "restart",
            ValueForm.BOOLEAN,
            NONE,
            "stop the query, start another from its checkpoint",
            "restart: true",
        ),
        ConfigKey(
            "flush",
            ValueForm.BOOLEAN,
            NONE,
            "advance the watermark past every time given: windows close",
            "flush: true",
        ),
        ConfigKey(
            "now",
            ValueForm.TIME,
            "the clock",
            "what `current_timestamp()` gives from here on (UTC)",
            "now: 2024-05-01 10:00:00",
        ),
        ConfigKey(
            "expect",
            ValueForm.BLOCK,
            NONE,
            "what must hold after the step",
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
    "What is different while the test's model is compiled.",
    (
        ConfigKey("vars", ValueForm.VALUES, NONE, "values of `var()`", "vars: {least: 10}"),
        ConfigKey("macros", ValueForm.MAPPING, NONE, "texts that macros give", "macros: {is_big: amount > 10}"),
        ConfigKey("env_vars", ValueForm.VALUES, NONE, "values of `env_var()`", "env_vars: {REGION: eu}", later=True),
    ),
)

_CONFIG = (
    ConfigKey("tags", ValueForm.TEXTS, NONE, "for selection", "tags: [slow]"),
    ConfigKey("meta", ValueForm.VALUES, NONE, "anything; manifest.json has it", "meta: {owner: sales}"),
    ConfigKey("enabled", ValueForm.BOOLEAN, "`true`", "`false`: the test does not exist", "enabled: false"),
)
UNIT_TEST_CONFIG: Final = ConfigBlock(
    "unit_test_config",
    "the config of a unit test",
    "unit_tests: config",
    "Options of a unit test, as dbt has them. What is also set beside `config:` counts there; tags add up.",
    _CONFIG,
)

UNIT_TEST: Final = ConfigBlock(
    "unit_test",
    "a unit test",
    "unit_tests",
    "A test of one model's query over rows that it gives.",
    (
        ConfigKey("name", ValueForm.NAME, REQUIRED, "name of the test", "name: late_rows_are_dropped"),
        ConfigKey("model", ValueForm.TEXT, REQUIRED, "the model that is tested", "model: orders_hourly"),
        ConfigKey("description", ValueForm.TEXT, NONE, "for people: manifest.json has it", "description: As agreed."),
        _GIVEN_KEY,
        ConfigKey(
            "steps",
            ValueForm.BLOCKS,
            "one step with `given`",
            "micro-batches, in order; also the words `restart` and `flush`",
            "steps: [{given: {orders: [{id: 1}]}}, restart, flush]",
            also=(ValueForm.TEXTS,),
            block="step",
        ),
        _EXPECT_KEY,
        ConfigKey(
            "overrides",
            ValueForm.BLOCK,
            NONE,
            "other values of variables and macros",
            "overrides: {vars: {least: 10}}",
            block="overrides",
        ),
        *_CONFIG,
        ConfigKey(
            "config",
            ValueForm.BLOCK,
            NONE,
            "the same options, as dbt has them",
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
            "the unit tests",
            "unit_tests: [{name: t, model: orders, given: {shop.orders: []}, expect: []}]",
            block="unit_test",
        ),
    ),
)
