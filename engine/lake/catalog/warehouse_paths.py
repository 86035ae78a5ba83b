"""Files of a warehouse for PyIceberg, which is imported here: files or objects below its folder, and nothing else.

Locations and the properties of tables, which name classes to import, may be a stranger's: the class that opens files is
this one, without properties, and every location is resolved first. VARIANT columns, which PyIceberg (0.12) lacks, are
made known, so that their tables have facts; their rows need Java.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pyarrow.fs import LocalFileSystem
from pydantic import Field, ValidationError
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import ValidationError as MetadataError
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, TableMetadataWrapper
from pyiceberg.types import PrimitiveType
from typing_extensions import override

from engine.lake.catalog.locations import resolve_below, root
from engine.lake.catalog.object_warehouse import ObjectWarehouse
from engine.object_store.s3_settings import pyiceberg_properties

NAME = "variant"


class VariantType(PrimitiveType):
    root: Literal["variant"] = Field(default="variant")

    def minimum_format_version(self) -> Any:
        return 3


def parse_metadata(text: str) -> TableMetadata:
    if f'"{NAME}"' not in text:
        return TableMetadataUtil.parse_raw(text)
    document = json.loads(text)
    if isinstance(document, dict):
        schemas = document.get("schemas")
        document["schemas"] = [_typed(schema) for schema in schemas] if isinstance(schemas, list) else schemas
    try:
        # PyIceberg's validator of types takes the words that it knows, and objects of its classes.
        return TableMetadataWrapper.model_validate(document).root
    except ValidationError as error:
        raise MetadataError(error) from error


def _typed(kind: Any) -> Any:
    if kind == NAME:
        return VariantType()
    if not isinstance(kind, dict):
        return kind
    inner = {key: _typed(kind[key]) for key in ("element", "key", "value") if key in kind}
    if isinstance(kind.get("fields"), list):
        inner["fields"] = [_field(field) for field in kind["fields"]]
    return {**kind, **inner}


def _field(field: Any) -> Any:
    return {**field, "type": _typed(field.get("type"))} if isinstance(field, dict) else field


class ReadOnlyIO(PyArrowFileIO):
    @override
    def new_output(self, location: str) -> PyArrowFile:
        raise PermissionError(location)

    @override
    def delete(self, location: Any) -> None:
        raise PermissionError(location)


class WarehouseIO(ReadOnlyIO):
    def __init__(self, warehouse: Path) -> None:
        super().__init__({})
        self._root = root(warehouse)
        self._files = LocalFileSystem()

    def resolve(self, location: str) -> Path:
        """The file or folder of a location, links resolved. Raises OutsideError: it is not below the warehouse."""
        return resolve_below(self._root, location)

    @override
    def new_input(self, location: str) -> PyArrowFile:
        """A file of the warehouse.

        Raises:
            OutsideError: it is not below the warehouse.
            FileNotFoundError: there is none.
            OSError: it is not a regular file.
        """
        path = self.resolve(location)
        if not stat.S_ISREG(path.stat().st_mode):
            message = f"{path} is not a file"
            raise OSError(message)
        return PyArrowFile(location, str(path), self._files)


class ObjectIO(ReadOnlyIO):
    def __init__(self, warehouse: ObjectWarehouse) -> None:
        super().__init__(pyiceberg_properties(warehouse.store()))
        self._warehouse = warehouse

    @override
    def new_input(self, location: str) -> PyArrowFile:
        self._warehouse.resolve(location)
        return super().new_input(location)


def open_table(
    warehouse: Path | ObjectWarehouse, identifier: tuple[str, str], location: str, document: Mapping[str, Any]
) -> Table:
    """A table by its metadata; what its properties say about code, endpoints and credentials counts for nothing.

    Raises ValueError: the document is not the metadata of a table.
    """
    files = ObjectIO(warehouse) if isinstance(warehouse, ObjectWarehouse) else WarehouseIO(warehouse)
    metadata = parse_metadata(json.dumps(document))
    return Table(identifier, metadata, location, files, NoopCatalog("none"))
