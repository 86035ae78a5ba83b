"""What an Iceberg table is called, and how it is partitioned and sorted: records of models and of the lake alike.

Names of columns in Spark's SQL.
"""

from __future__ import annotations

from dataclasses import dataclass

_NAMES = {"truncate": "trunc"}


@dataclass(frozen=True, slots=True)
class Relation:
    """An Iceberg table or view by its full name; a schema of several levels has dots between them."""

    catalog: str
    schema: str
    name: str

    @property
    def sql(self) -> str:
        return f"`{self.catalog}`.{self.in_catalog}"

    @property
    def in_catalog(self) -> str:
        return ".".join(f"`{part}`" for part in (*self.schema.split("."), self.name))

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition field: transform (identity, year, month, day, hour, bucket, truncate), column, number, name."""

    transform: str
    column: str
    number: int | None = None
    name: str | None = None

    @property
    def field_name(self) -> str:
        given = f"{self.column}_{_NAMES.get(self.transform, self.transform)}"
        return self.name or (self.column if self.transform == "identity" else given)


@dataclass(frozen=True, slots=True)
class SortColumn:
    """One column of the order in which files are written; None: nulls are where Spark puts them."""

    column: str
    descending: bool = False
    nulls_first: bool | None = None


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
