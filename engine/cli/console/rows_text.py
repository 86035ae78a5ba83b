"""Rows as text, Markdown, CSV or JSON lines; values as SQL writes them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from engine.characters import one_line
from engine.cli.console.safe_output import json_text
from engine.lake.catalog.value_text import value_text

Rows = tuple[list[str], list[tuple[Any, ...]]]


def format_rows(rows: Rows, output: str) -> str:
    names, values = rows
    if output == "json":
        return "\n".join(json_text(dict(zip(names, row, strict=True)), default=value_text) for row in values)
    if output == "csv":
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([["" if v is None else value_text(v) for v in row] for row in values])
        return stream.getvalue().rstrip("\n")
    escape = _markdown if output == "markdown" else one_line
    cells = [[escape(value_text(v)) for v in row] for row in values]
    right = [_right(values, i) for i in range(len(names))]
    return _table([escape(name) for name in names], cells, right, output == "markdown")


def _markdown(text: str) -> str:
    return one_line(text).replace("|", "\\|").replace("<", "&lt;")


def _right(values: Sequence[Sequence[Any]], index: int) -> bool:
    kinds = {type(row[index]) for row in values if row[index] is not None}
    return bool(kinds) and kinds <= {int, float}


def _table(names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], marked: bool) -> str:
    widths = [max(len(name), *(len(row[i]) for row in rows), 0) for i, name in enumerate(names)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        ]
        return "| " + " | ".join(padded) + " |"

    ends = [":" if marked and to_right else "-" for to_right in right]
    rule = "|" + "|".join("-" * (width + 1) + end for width, end in zip(widths, ends, strict=True)) + "|"
    return "\n".join([line(names), rule, *(line(row) for row in rows)])
