"""The table of edits in docs/change-a-model.md: each row is a rule, and is made from the cases that belong to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.plan.edit_cases import ADDITIVE, BREAKING, FORWARD, SAME

PAGE = Path(__file__).parents[2] / "docs/change-a-model.md"
_GROUPS = (
    (SAME, "resumes, unchanged"),
    (FORWARD, "resumes with a note; applies to rows written after the edit"),
    (ADDITIVE, "resumes with a note; a new column (`on_schema_change: append_columns`), NULL in existing rows"),
    (BREAKING, "rejected"),
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table.

    Attributes:
        edit: what is edited, in Markdown.
        cases: their names; what becomes of the edit is what becomes of all of them.
        note: behind what becomes of it.
    """

    edit: str
    cases: tuple[str, ...]
    note: str = ""

    @property
    def becomes(self) -> str:
        """What becomes of the edit.

        Raises:
            ValueError: the cases have more than one answer, or none.
        """
        (answer,) = {answer for cases, answer in _GROUPS for name in self.cases if name in cases}
        return answer + self.note


RULES = (
    Rule(
        "the letter case of a struct field, needless backticks and brackets",
        ("letter case of a field", "the brackets that Spark adds"),
    ),
    Rule(
        "the letter case of a name in `struct(v as Price)`, of a map's key, of a text; brackets that Spark would not add",
        ("letter case of a name in JSON", "letter case of a map's key", "letter case of a text", "brackets against Spark's precedence"),
    ),
    Rule(
        "aliases, qualified columns, CTE or subquery, a renamed window, `hour.start`, a position, an alias or ALL in GROUP BY, another name for the "
        "column of a watermark that is computed",
        (
            "an alias of the table", "qualified columns", "a renamed window", "grouped by the start", "grouped by an alias",
            "grouped by position", "grouped by ALL", "a CTE", "a subquery", "aliases of a join", "an alias of what is distinct",
            "CTEs of a join in its order", "a column named by a reserved word", "a renamed column of a watermark",
            "a renamed column of a watermark of a dedup", "a chain in other words",
        ),
    ),
    Rule(
        "the order of the SELECT list, also in windows of windows, and with an alias that a later column uses",
        (
            "the order of the SELECT list", "the SELECT list of a join", "the order inside a chain", "both orders of a chain",
            "the order with an alias of the same SELECT", "the order of columns named by reserved words",
        ),
    ),
    Rule(
        "another spelling: `60 minutes` for `1 hour`, `count(1)` for `count(*)`, `avg` and `mean`, `stddev` and `stddev_samp`, a cast to the type that a "
        "column has",
        (
            "another spelling of a window", "another spelling of a delay", "another spelling of a gap", "another spelling of a bound",
            "count(1)", "avg and mean", "stddev and stddev_samp", "std and stddev", "some and bool_or", "any and some",
            "a synonym inside an aggregate", "a cast to the type it has", "a cast of a field to the type it has",
        ),
    ),
    Rule(
        "a repeated or constant key of GROUP BY",
        ("a group key twice", "a group key no longer twice", "a constant as group key", "a constant of the SELECT as group key"),
    ),
    Rule(
        "`b = a` for `a = b`, `b < a` for `a > b`, two comparisons for BETWEEN, IN for a chain of OR, the order of the comparisons in ON",
        (
            "IN for OR", "a turned filter", "the words of a filter in another order", "conditions of a join in another order",
            "conditions of a join turned",
        ),
    ),
    Rule(
        "HAVING over aggregates, another expression over the same aggregates, ORDER BY",
        (
            "HAVING changed", "HAVING removed", "HAVING in update mode", "another expression over aggregates", "ORDER BY",
            "a filter above a static join that uses an aggregate",
        ),
    ),
    Rule("a column that is no longer returned", ("a column no longer returned",)),
    Rule(
        "the delay of a watermark",
        ("a larger delay", "a smaller delay", "a delay in update mode", "a delay of dedup", "a delay of a join"),
    ),
    Rule("a watermark on an input of a join that has none", ("a watermark for the other side of a join",)),
    Rule("the number of a LIMIT", ("the number of a LIMIT",)),
    Rule(
        "a filter before an aggregate (WHERE, or HAVING over a key) or after a dedup, the gap of a session, in append mode",
        ("a filter before an append aggregate", "HAVING over a key", "a filter behind a dedup", "a session gap"),
        "; windows that are open at the edit mix both rules",
    ),
    Rule(
        "the same in update or complete mode, between the windows of a chain, and on one side of a join",
        (
            "a filter in update mode", "HAVING over a key in update mode", "a filter in complete mode", "a filter inside a chain",
            "a filter on one side of a join", "a filter above a static join of groups", "the gap of a session in complete mode",
        ),
    ),
    Rule(
        "an output renamed, a column from aggregates or columns that the state has",
        (
            "a renamed output", "a derived column", "an aggregate once more", "one more column of a dedup", "a column from what a join has",
        ),
    ),
    Rule(
        "another, a new or a dropped aggregate",
        (
            "another function", "another argument", "count(*) to count(v)", "IGNORE NULLS", "a FILTER", "DISTINCT-like collects",
            "one more aggregate", "one aggregate less", "an aggregate only in HAVING", "the type of a cast", "IN of other types",
            "size and array_size", "an order that no SELECT list has",
        ),
    ),
    Rule("other keys or another order of keys", ("other keys", "swapped keys", "swapped keys by ALL", "one key less")),
    Rule(
        "size, slide, start or kind of a window; another event time",
        (
            "the size of a window", "the start of a window", "tumbling to sliding", "tumbling to session", "another event time",
            "a cast that loses the event time of a window",
        ),
    ),
    Rule("keys of a dedup, columns of DISTINCT", ("dedup keys", "dedup removed", "columns of DISTINCT", "the order of DISTINCT")),
    Rule(
        "kind, condition, order of equalities or columns of a join",
        (
            "a CTE that moves a stream to the front", "a join of another kind", "the bound of a join", "one more column of a join",
            "a column that only a filter had", "one column less of a join", "the other side of a join",
            "equalities of a join in another order", "equalities of an inner join's WHERE in another order",
            "a static input of an aggregate",
        ),
    ),
    Rule("a step added or removed", ("LIMIT removed", "no state any more")),
)  # fmt: skip


def with_table(text: str) -> str:
    """A text of the page with the table as the rules have it."""
    rows = "".join(f"| {rule.edit} | {rule.becomes} |\n" for rule in RULES)
    before, head, rest = text.partition("| edit | effect |\n|---|---|\n")
    return before + head + rows + rest[rest.index("\n\n") + 1 :]
