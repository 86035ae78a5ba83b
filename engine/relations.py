"""Names of Iceberg tables and columns, and how a table is partitioned and sorted."""

from __future__ import annotations

from dataclasses import dataclass

_NAMES = {"truncate": "trunc"}


@dataclass(frozen=True, slots=True)
class Relation:
    """The full name of an Iceberg table or view; a schema of several levels has dots between them."""

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
    """A partition field; `transform` is identity, year, month, day, hour, bucket or truncate."""

    transform: str
    column: str
    number: int | None = None
    name: str | None = None

    @property
    def field_name(self) -> str:
        default_name = f"{self.column}_{_NAMES.get(self.transform, self.transform)}"
        return self.name or (self.column if self.transform == "identity" else default_name)


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column of the write order; `nulls_first` None: Spark's default."""

    column: str
    descending: bool = False
    nulls_first: bool | None = None


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
