"""All blocks by name, and the files in which they are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from engine.schema.config_key import ConfigBlock
from engine.schema.data_test_keys import COLUMN, DATA_TEST, TEST_CONFIG
from engine.schema.exposure_keys import EXPOSURE, EXPOSURE_CONFIG, EXPOSURE_FILE, OWNER
from engine.schema.format_keys import FILE_KEYS, ICEBERG_KEYS, KAFKA_KEYS, RATE_KEYS, READER_KEYS, SOCKET_KEYS, VALUE
from engine.schema.model_keys import FOLDER, MODEL
from engine.schema.project_keys import FLAGS, PATHS, PROJECT
from engine.schema.selector_keys import DEFINITION, SELECTOR, SELECTOR_FILE, TERM
from engine.schema.sink_keys import SINK, SINK_TO
from engine.schema.source_keys import AGE, FRESHNESS, READING, SOURCE, SOURCE_FILE, SOURCE_TABLE
from engine.schema.stream_keys import CONTRACT, EXPECTATION, PERSIST_DOCS, STATE_STORE, STREAM, WATERMARK
from engine.schema.target_keys import (
    ALERTS,
    CATALOG,
    CONNECTION,
    OBJECT_STORE,
    OPENLINEAGE,
    REGISTRY,
    SECURITY,
    SPARK,
    TARGET,
)
from engine.schema.unit_test_keys import (
    EXPECT,
    GIVEN,
    OVERRIDES,
    ROWS,
    STEP,
    UNIT_TEST,
    UNIT_TEST_CONFIG,
    UNIT_TEST_FILE,
)


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file that a project writes, or a part of one.

    `name`: of its page and its JSON Schema. `blocks`: the block of the whole file, then those inside it.
    """

    name: str
    blocks: tuple[ConfigBlock, ...]


FILES_OF_A_PROJECT: Final = (
    ConfigFile(
        "project",
        (
            PROJECT,
            PATHS,
            FLAGS,
            FOLDER,
            TARGET,
            CATALOG,
            OBJECT_STORE,
            SPARK,
            CONNECTION,
            SECURITY,
            REGISTRY,
            OPENLINEAGE,
            ALERTS,
        ),
    ),
    ConfigFile(
        "sources",
        (
            SOURCE_FILE,
            SOURCE,
            SOURCE_TABLE,
            FILE_KEYS,
            KAFKA_KEYS,
            VALUE,
            ICEBERG_KEYS,
            RATE_KEYS,
            SOCKET_KEYS,
            READER_KEYS,
            READING,
            FRESHNESS,
            AGE,
        ),
    ),
    ConfigFile("model", (MODEL, STREAM, WATERMARK, EXPECTATION, STATE_STORE, CONTRACT, PERSIST_DOCS)),
    ConfigFile(
        "tests",
        (
            UNIT_TEST_FILE,
            UNIT_TEST,
            STEP,
            GIVEN,
            ROWS,
            EXPECT,
            OVERRIDES,
            UNIT_TEST_CONFIG,
            COLUMN,
            DATA_TEST,
            TEST_CONFIG,
        ),
    ),
    ConfigFile("exposures", (EXPOSURE_FILE, EXPOSURE, OWNER, EXPOSURE_CONFIG, SINK, SINK_TO)),
    ConfigFile("selectors", (SELECTOR_FILE, SELECTOR, DEFINITION, TERM)),
)
BLOCKS: Final[Mapping[str, ConfigBlock]] = {block.name: block for file in FILES_OF_A_PROJECT for block in file.blocks}
