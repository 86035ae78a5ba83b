"""The JSON Schemas of a project's files in target/schema: an editor finds them there, always those of this version."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from engine import __version__
from engine.compile.artifacts import written_files
from engine.compile.artifacts.written_files import WrittenFiles
from engine.schema import FOLDER_OF_SCHEMAS
from engine.target_folder import TargetFolder

# Among what was written; no node has such an id.
SCHEMAS: Final = "schema"


def write_schemas(folder: TargetFolder, before: Mapping[str, WrittenFiles]) -> WrittenFiles:
    """Copy the schemas of the package to target/schema, unless they are there.

    Args:
        folder: target/.
        before: what an earlier compilation wrote.
    """
    with os.scandir(FOLDER_OF_SCHEMAS) as entries:
        found = sorted((entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in entries)
    # Installers may give all files one time.
    key = " ".join([__version__, *(f"{name}:{size}:{time}" for name, size, time in found)])
    known = before.get(SCHEMAS)
    if known is not None and known.stands(key, folder):
        return known
    names = [name for name, _, _ in found]
    texts = {f"schema/{name}": (FOLDER_OF_SCHEMAS / name).read_text(encoding="utf-8") for name in names}
    return WrittenFiles(key, {name: written_files.write(folder, name, text) for name, text in texts.items()})
