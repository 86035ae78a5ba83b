"""The columns of a table against those that a stream of it began with."""

from __future__ import annotations

from collections.abc import Mapping

from engine.errors import Diagnostic


def changed_columns(table: str, reader: str, before: Mapping[str, str], now: Mapping[str, str]) -> Diagnostic | None:
    """Return how the columns of a table differ from those at the last start of a stream; None: all are there.

    Args:
        table: its full name.
        reader: name of the model.
        before: the columns at the last start, with their types.
        now: those that there are.
    """
    wrong = [
        f"{name} {type_}: " + (f"is {now[name]} now" if name in now else "is gone")
        for name, type_ in before.items()
        if now.get(name) != type_
    ]
    if not wrong:
        return None
    message = f"{table} has changed since '{reader}' last read it: {'; '.join(wrong)}"
    hint = (
        "Declare the new columns ('schema:' of the source), undo the change of the table, or rebuild the "
        f"table: engine build -f -s {reader}"
    )
    return Diagnostic("source-columns", message, hint)
