"""The SQL of a template in Spark's dialect, around its Jinja."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine_import.dialects.syntax.script import Note, Script, is_markable, unmarked
from engine_import.dialects.syntax.sql_tree import sql_tree
from engine_import.dialects.syntax.warehouse import Warehouse
from engine_import.dialects.warehouses.bigquery import BIGQUERY
from engine_import.dialects.warehouses.duckdb import DUCKDB
from engine_import.dialects.warehouses.postgres import POSTGRES, REDSHIFT
from engine_import.dialects.warehouses.snowflake import SNOWFLAKE
from engine_import.dialects.write_sql import write
from engine_import.templates.backticks import with_backticks

WAREHOUSES: Final[dict[str, Warehouse]] = {
    "bigquery": BIGQUERY, "duckdb": DUCKDB, "motherduck": DUCKDB, "postgres": POSTGRES, "redshift": REDSHIFT,
    "snowflake": SNOWFLAKE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Translation:
    """A translated template.

    Attributes:
        text: in Spark's dialect; what means the same there is as it was written.
        notes: what may give other rows, or was not translated, with its line.
    """

    text: str
    notes: tuple[Note, ...] = ()


def translated(template: str, adapter: str) -> Translation:
    """Translate SQL with Jinja for Spark; unchanged if dbt's name of the warehouse is not known."""
    warehouse = WAREHOUSES.get(adapter)
    if warehouse is None or not is_markable(template):
        return Translation(with_backticks(template, adapter))
    tree = sql_tree(template, warehouse.dialect)
    if isinstance(tree, str):
        return Translation(with_backticks(template, adapter), (Note(1, tree),))
    if not tree.nodes:
        return Translation(template)
    script = Script(tree, warehouse)
    before, after = script.gap(0, tree.nodes[0].start), script.gap(tree.nodes[-1].end, len(template))
    text, notes = unmarked(f"{before}{write(script, tree.nodes)}{after}", script.messages)
    return Translation(text, tuple(notes))
