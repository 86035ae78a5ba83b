"""What `engine erase` is asked for: a condition over the columns of a table, checked before Java starts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.compile import Model
from engine.compile.config.condition_config import condition_columns, condition_fault
from engine.compile.sql.determinism import deterministic_text
from engine.errors import UsageError, near
from engine.lake.table_facts import TableFacts

WHERE, QUARANTINE = "--where", "--quarantine"
_FORM = "Write one SQL condition over the columns of {0}, such as {1}."


@dataclass(frozen=True, slots=True)
class EraseRequest:
    """The rows that are to be erased.

    Attributes:
        where: the condition over the columns of its table; NULL is not a match.
        columns: of the table that it names; of a field of a struct the struct.
        quarantine: another condition, over the columns of the quarantine itself; None: there is none.
    """

    model: Model
    where: str
    columns: tuple[str, ...]
    quarantine: str | None = None


def check_model(model: Model) -> None:
    """Check that a model has a table of its own in this target.

    Raises:
        UsageError: it has none.
    """
    kind = model.materialized
    if not kind.traits.keeps_rows:
        names = [item.name for item in model.inputs]
        hint = f"Erase the rows from what it reads: {', '.join(names)}" if names else ""
        raise UsageError("usage", f"'{model.name}' is {_article(kind.value)} and stores no rows", hint)


def _article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def read_request(
    model: Model, table: TableFacts, quarantined: TableFacts | None, where: str, quarantine: str | None
) -> EraseRequest:
    """Check the conditions of a command.

    Raises:
        UsageError: `condition-syntax`, `unknown-column`; of the quarantine `usage` if there is none.
    """
    columns = _checked(WHERE, where, str(model.relation), table, "customer_id = 42")
    if quarantine is not None:
        if quarantined is None:
            raise UsageError("usage", f"'{model.name}' has no quarantine", f"Remove {QUARANTINE}.")
        _checked(QUARANTINE, quarantine, f"{model.relation}__quarantine", quarantined, "row like '%jane@example.com%'")
    return EraseRequest(model, where.strip(), columns, quarantine.strip() if quarantine is not None else None)


def _checked(option: str, text: str, relation: str, table: TableFacts, example: str) -> tuple[str, ...]:
    form = _FORM.format(relation, example)
    fault = condition_fault(text)
    if fault:
        raise UsageError("condition-syntax", f"{option} {text!r} {fault}", form)
    if not deterministic_text(f"SELECT {text}"):
        message = f"{option} {text!r} reads the clock, draws random numbers or calls a function that is not Spark's own"
        raise UsageError("condition-syntax", message, f"A repeated erase must match the same rows. {form}")
    known = {name.lower(): name for name, _ in table.columns}
    named = list(condition_columns(text))
    if not named:
        message = f"{option} {text!r} names no column, so that it matches all rows or none"
        raise UsageError("condition-syntax", message, f"{form} To remove all rows: engine drop, or engine build -f.")
    if unknown := [name for name in named if name.lower() not in known]:
        hint = near(unknown[0], known.values())
        raise UsageError("unknown-column", f"{option} names '{unknown[0]}', which is not a column of {relation}", hint)
    return tuple(known[name.lower()] for name in named)


def within(columns: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether some columns are among others, whatever their case."""
    return {name.lower() for name in columns} <= {name.lower() for name in others}
