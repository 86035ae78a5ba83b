"""No documented key does nothing: each one changes what the engine makes of a project, or is rejected."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.api.requests import Selection, choose
from engine.compile import Compiled
from engine.errors import EngineError
from engine.object_store.s3_settings import S3Settings, hadoop_conf, iceberg_properties, pyiceberg_properties
from engine.project.parse_yaml import load_yaml
from engine.schema import ConfigKey
from engine.schema.all_blocks import BLOCKS
from engine.sinks.postgres import database_parameters
from engine.sources.connection import read_connection
from engine.sources.registry import read_settings
from tests.lab import REPOSITORY
from tests.project.small_projects import compiled
from tests.schema.key_places import BESIDE, ELSEWHERE, FILES, PLACES, REJECTED, VALUES, Files

KEYS = [(block.name, key) for block in BLOCKS.values() for key in block.keys]
# What only repeats the text of a file, or says where something is in it.
ECHO = {"raw_sql", "positions", "location", "file", "places"}
# What is made of the projects without a key, which many keys share.
SEEN: dict[str, tuple[str, list[str]]] = {}
AUTHORITY = REPOSITORY / "tests" / "spark" / "authority.pem"
_VARIABLE = re.compile(r"env_var\('(\w+)'\)")


def plain(value: Any) -> Any:
    """A record as JSON, without what is only an echo."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items() if key not in ECHO}
    return [plain(inner) for inner in value] if isinstance(value, (list, tuple)) else str(value)


def seen(root: Path, files: Files) -> tuple[str, list[str]]:
    """What the engine makes of a project, as text, and its errors."""
    whole = {**FILES, **files}
    env = {name: _value(name) for text in whole.values() for name in _VARIABLE.findall(str(text))}
    result = compiled(root, whole, env=env)
    errors = [f"{found.code}: {found.message}" for found in result.manifest.errors]
    chosen = None if errors else of_selectors(root, result, errors)
    parts = plain([of_project(result), of_target(result), chosen])
    return json.dumps(parts, sort_keys=True).replace(str(root), ""), errors


def _value(variable: str) -> str:
    """Of an environment variable: a PEM text for those that need one, as examples of keys name them."""
    if variable.endswith(("_CA", "_CERTIFICATE")):
        return AUTHORITY.read_text(encoding="ascii")
    return "-----BEGIN PRIVATE KEY-----" if variable.endswith("KAFKA_KEY") else f"value of {variable}"


def of_project(result: Compiled) -> list[Any]:
    read, manifest = result.project, result.manifest
    macros = [macro.file for macro in read.macros]
    return [manifest.project, manifest.version, read.vars, read.paths, asdict(read.flags), macros, manifest.nodes]


def of_target(result: Compiled) -> list[Any]:
    """With what Kafka's client, registries and lineage backends get of it."""
    target = result.target
    connections = {name: late() for name, late in target.connections.items()}
    kafka = [read_connection(name, found) for name, found in connections.items() if "bootstrap_servers" in found]
    databases = [database_parameters(name, found) for name, found in connections.items() if "uri" in found]
    registries = [read_settings(name, late()) for name, late in target.registries.items()]
    return [
        [target.name, target.catalog, target.schema, target.state, target.require_replayable, target.stalled_after],
        [target.master, target.conf, target.driver_memory, target.shared_folders],
        [(connection.addresses, connection.options) for connection in kafka],
        databases,
        [(registry, registry.authorization) for registry in registries],
        target.openlineage() if target.openlineage else None,
        target.alerts() if target.alerts else None,
        _clients(target.s3()) if target.s3 else None,
    ]


def _clients(settings: S3Settings) -> list[Any]:
    return [hadoop_conf(settings), iceberg_properties(settings), pyiceberg_properties(settings)]


def of_selectors(root: Path, result: Compiled, errors: list[str]) -> list[Any]:
    """What a command without a selection takes, and what it is told of selectors."""
    hint, nodes = "", []
    try:
        choose(result.manifest, Selection(selector="nothing"), root, root / "target")
    except EngineError as error:
        hint = error.diagnostic.hint
    try:
        nodes = choose(result.manifest, Selection(), root, root / "target").nodes
    except EngineError as error:
        errors += [f"{found.code}: {found.message}" for found in error.diagnostics]
    return [hint, nodes]


@pytest.mark.slow
@pytest.mark.parametrize(("block", "key"), KEYS, ids=[f"{block}.{key.name}" for block, key in KEYS])
def test_a_key_changes_something_or_is_rejected(block: str, key: ConfigKey, tmp_path: Path) -> None:
    name = f"{block}.{key.name}"
    base, place = ELSEWHERE.get(name, PLACES[block])
    without = {part: value for part, value in {**base, **BESIDE.get(name, {})}.items() if value is not None}
    rejected, code = REJECTED.get(name, (None, "not-supported" if key.later else ""))
    example = load_yaml(key.example, "example.yml")[0].data[key.name]
    value = rejected if rejected is not None else VALUES.get(name, example)
    files = place(without)
    known = json.dumps(files, sort_keys=True)
    if known not in SEEN:
        SEEN[known] = seen(tmp_path / "without", files)
    before, errors_before = SEEN[known]
    after, errors = seen(tmp_path / "with", place({**without, key.name: value}))
    if code:
        assert any(error.startswith(f"{code}:") for error in errors), errors
        assert errors_before != errors
        return
    assert errors == []
    assert errors_before or before != after


def test_the_tables_of_this_test_name_keys_that_there_are() -> None:
    names = {f"{block}.{key.name}" for block, key in KEYS}
    assert {*BESIDE, *VALUES, *REJECTED, *ELSEWHERE} - names == set()
