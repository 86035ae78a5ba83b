"""Folders of this machine that the executors of a cluster would have to reach (`shared_folders`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from engine.compile.declarations.catalog_config import SQLITE, Catalog
from engine.errors import Diagnostic
from engine.project.yaml_section import Section

SHARED_HINT: Final = (
    "Use an object store or HDFS; or, if that folder is the same one at the same path on every machine of the cluster, "
    "set 'spark: {shared_folders: true}' in the target."
)


def check_folders(section: Section, catalog: Catalog, state: str, master: str) -> None:
    """Report folders of the driver's machine: each executor would write to its own disk, and lose it."""
    local = list(_local_folders(catalog, state))
    if local:
        spark = section.child("spark")
        place = (spark.child("master") if spark else None) or section
        are = "are in folders" if len(local) > 1 else "is in a folder"
        message = f"{' and '.join(local)} {are} of this machine, and executors of {master} run on others"
        place.diagnostics.append(
            Diagnostic("folder-not-shared", message, SHARED_HINT, node=place.node, location=place.place)
        )


def _local_folders(catalog: Catalog, state: str) -> Iterator[str]:
    if not catalog.objects and (catalog.type == SQLITE or _local_warehouse(catalog.keys)):
        yield "the warehouse"
    if is_folder_here(state):
        yield "the state"


def _local_warehouse(keys: Mapping[str, str]) -> bool:
    # A REST server has names for warehouses, too.
    return keys.get("warehouse", "").startswith(("/", "file:", ".", "~"))


def is_folder_here(path: str) -> bool:
    return "://" not in path or path.startswith("file:")
