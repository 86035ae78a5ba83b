"""The JSON Schemas of a project's files in target/schema: an editor finds them there, always those of this version."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from engine import __version__, schema
from engine.compile.artifacts import written_files
from engine.compile.artifacts.written_files import WrittenFiles
from engine.target_folder import TargetFolder

# The keys that the schemas are made from.
_KEYS: Final = Path(schema.__file__).parent
# Among what was written; no node has such an id.
SCHEMAS: Final = "schema"


def write_schemas(folder: TargetFolder, before: Mapping[str, WrittenFiles]) -> WrittenFiles:
    """Write the schemas to target/schema unless they are there; `before` is what an earlier compilation wrote."""
    with os.scandir(_KEYS) as entries:
        modules = [(entry.name, entry.stat()) for entry in entries if entry.name.endswith(".py")]
    stamps = sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in modules)
    # Installers may give all files one time.
    key = " ".join([__version__, *(f"{name}:{size}:{time}" for name, size, time in stamps)])
    schemas_before = before.get(SCHEMAS)
    if schemas_before is not None and schemas_before.stands(key, folder):
        return schemas_before
    from engine.schema.all_blocks import FILES_OF_A_PROJECT
    from engine.schema.json_schema import json_schema

    texts = {f"schema/{file.name}.json": json_schema(file) for file in FILES_OF_A_PROJECT}
    return WrittenFiles(key, {name: written_files.write(folder, name, text) for name, text in texts.items()})
