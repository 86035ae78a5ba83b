"""The place of NULLs in an order, where it decides on rows or values."""

from __future__ import annotations

from engine_import.dialects.syntax.script import Script, Written

_ENDS = frozenset(
    ("rows", "range", "groups", "limit", "fetch", "offset", "qualify", "union", "except", "intersect", "window", "for")
)  # fmt: skip
_LIMITS = frozenset(("limit", "fetch", "offset"))


def with_null_order(script: Script, made: list[Written], *, ordered: bool) -> None:
    """Add NULLS FIRST or NULLS LAST to the keys of an ORDER BY whose warehouse orders NULLs in another way than Spark.

    The order of a whole table has no meaning, so it is left alone; that of a window, of an aggregate and before a
    LIMIT has.
    """
    if script.warehouse.nulls == "low":
        return
    words = [entry.word for entry in made]
    for at in range(len(words) - 1):
        if words[at] != "order" or words[at + 1] != "by":
            continue
        end = next((place for place in range(at + 2, len(words)) if words[place] in _ENDS), len(words))
        if ordered or _LIMITS & set(words[end:]):
            _add(script, made, at + 2, end)


def _add(script: Script, made: list[Written], start: int, end: int) -> None:
    first = start
    for at in range(start, end + 1):
        if at < end and made[at].word != ",":
            continue
        words = [entry.word for entry in made[first:at]]
        if words and "nulls" not in words:
            falls = words[-1] == "desc"
            # NULL is the highest value, or is last either way, which is what Spark does in a falling order.
            if not falls or script.warehouse.nulls == "high":
                text = "nulls first" if falls else "nulls last"
                shown = text.upper() if made[start - 1].text.isupper() else text
                made[at - 1].text += f" {shown}"
        first = at + 1
