"""The functions that a step of a job applies after its SQL, as macros."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from engine_import.flare.read_job import JobPart

_REASONS: Final = {
    "drop_duplicates": "set 'dedup: [..]' of the stream in the header, with a watermark",
    "cleanse_column_names": "names of columns are not known while a template is rendered: use rename()",
    "unfurl": "write explode(items), or item.*, in the SQL",
    "hash": "write sha2(column, 256) in the SQL",
    "mask": "write mask(column) in the SQL",
    "find_and_replace": "write regexp_replace(column, ..) in the SQL",
    "pivot": "write PIVOT in the SQL",
    "unpivot": "write UNPIVOT in the SQL",
    "fill_null_or_empty": "write coalesce(column, value) in the SQL",
    "filter": "write WHERE in the SQL",
}


def function_select(function: JobPart, before: str) -> tuple[str, str]:
    """Return the SELECT that does the same to the rows of a relation, or why there is none."""
    name = function.child("name").text()
    columns = {key: part.text() for key, part in function.child("columns").entries()}
    listed = [value for value in function.child("columns").value or [] if isinstance(value, str)]
    function.child("columns").whole()
    select = ""
    if name == "set_type" and columns:
        select = f"{{{{ set_type({_literal(columns)}) }}}}"
    elif name == "rename_all" and columns:
        select = f"{{{{ rename({_literal(columns)}) }}}}"
    elif name == "rename":
        old, new = function.child("column").text(), function.child("asColumn").text()
        select = f"{{{{ rename({_literal({old: new})}) }}}}" if old and new else ""
    elif name == "drop" and listed:
        select = f"{{{{ star(except={_literal(listed)}) }}}}"
    elif name == "epoch_to_timestamp":
        select = _added(function, lambda column: f"{{{{ epoch_to_timestamp({_literal(column)}) }}}}")
    elif name == "any_timestamp":
        formats = [part for part in (function.child("formats").value or []) if isinstance(part, str)]
        function.child("formats").whole()
        select = _added(function, lambda column: f"{{{{ any_timestamp({_literal(column)}, {_literal(formats)}) }}}}")
    if select:
        return f"select {select} from {before}", ""  # noqa: S608 - text of a file
    reason = _REASONS.get(name, "write it in the SQL")
    return "", f"the function '{name}' is not carried over: {reason}"


def _added(function: JobPart, call: Callable[[str], str]) -> str:
    column = function.child("column").text()
    name = function.child("asColumn").text() or column
    if not column or not name.isidentifier():
        return ""
    others = "*" if name != column else f"{{{{ star(except={_literal([column])}) }}}}"
    return f"{others}, {call(column)} as {name}"


def _literal(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
