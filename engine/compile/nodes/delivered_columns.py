"""Which columns of a table a sink delivers."""

from __future__ import annotations

from collections.abc import Collection

from engine.compile.nodes.manifest import Manifest, Model
from engine.compile.nodes.personal_data import hidden_columns, personal_columns
from engine.compile.nodes.sink import Sink


def delivered_columns(manifest: Manifest, model: Model, sink: Sink, table_columns: Collection[str]) -> list[str]:
    """Return the columns in lower case: those that the sink lists, else those of the table without personal data.

    Args:
        manifest: of the sink.
        model: that the sink delivers.
        sink: whose `exclude` is left out.
        table_columns: names of the table's columns, in lower case.
    """
    listed = [name.lower() for name in sink.columns]
    if not listed:
        hidden = {name.lower() for name in hidden_columns(model, table_columns, personal_columns(manifest))}
        listed = [name for name in table_columns if name not in hidden]
    left_out = {name.lower() for name in sink.exclude}
    return [name for name in listed if name not in left_out]
