"""VARIANT columns: Spark and the third version of Iceberg's format have them, PyIceberg (0.12) does not.

Their type is made known here, so that a table with such a column has facts like any other. Its rows cannot be read
without Java.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field, ValidationError
from pyiceberg.exceptions import ValidationError as MetadataError
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, TableMetadataWrapper
from pyiceberg.types import PrimitiveType

NAME = "variant"


class VariantType(PrimitiveType):
    root: Literal["variant"] = Field(default="variant")

    def minimum_format_version(self) -> Any:
        return 3


def parse_metadata(text: str) -> TableMetadata:
    """The metadata of a table, from its JSON.

    Raises:
        ValueError: it is not JSON, or does not describe a table.
    """
    if f'"{NAME}"' not in text:
        return TableMetadataUtil.parse_raw(text)
    found = json.loads(text)
    if isinstance(found, dict):
        schemas = found.get("schemas")
        found["schemas"] = [_typed(schema) for schema in schemas] if isinstance(schemas, list) else schemas
    try:
        # PyIceberg's validator of types takes the words that it knows, and objects of its classes.
        return TableMetadataWrapper.model_validate(found).root
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
