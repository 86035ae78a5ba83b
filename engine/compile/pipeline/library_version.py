"""The version of an installed library, without importing it or `importlib.metadata`, which takes 10 ms to load."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

_END = ".dist-info"


def library_version(name: str) -> str:
    """Return the version by the name of the folder that describes the library; else as its metadata has it.

    Raises:
        importlib.metadata.PackageNotFoundError: it is not installed.
    """
    spec = find_spec(name)
    if spec is not None and spec.origin is not None:
        beside = os.listdir(Path(spec.origin).parent.parent)  # noqa: PTH208 - names are enough
        metadata_folders = [entry for entry in beside if entry.endswith(_END) and entry.lower().startswith(f"{name}-")]
        # Two are left where an installation was cut off.
        if len(metadata_folders) == 1:
            return metadata_folders[0].removesuffix(_END)[len(name) + 1 :]
    from importlib.metadata import version

    return version(name)
