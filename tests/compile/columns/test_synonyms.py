"""Functions under several names: the list is that of Spark's registry, and Spark plans each name alike."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import pytest

from engine.compile.types.builtin_functions import SYNONYMS
from tests.lab import LabSession

# One class for names that differ: a cast for each type, with or without a row for what is empty, with names of fields.
_NO_SYNONYMS = {
    "Cast", "CreateNamedStruct", "ExplodeExpressionBuilder", "InlineExpressionBuilder", "PosExplodeExpressionBuilder",
}  # fmt: skip
# Operators, which are no calls, and what is also an operator.
_OPERATORS = {"Remainder", "EqualTo", "Not", "RLike", "ShiftLeft", "ShiftRight", "ShiftRightUnsigned"}
# Replaced by the other while Spark plans (RuntimeReplaceable), or made by another builder.
_REPLACED = {"ifnull": "coalesce", "nvl": "coalesce", "curdate": "current_date"}
# Arguments by the name that stands for all; `a` is an array, `d` a date, `i` an int, `s` a string.
_ARGUMENTS = {
    "aggregate": "a, 0, (x, y) -> x + y", "bool_and": "i > 1", "bool_or": "i > 1", "chr": "i", "coalesce": "s, 'x'",
    "current_database": "", "current_date": "", "current_user": "", "date_add": "d, i", "date_part": "'day', d",
    "datediff": "d, d", "day": "d", "format_string": "'%s', s", "getbit": "i, 1",
    "java_method": "'java.util.UUID', 'fromString', s", "listagg": "s, ','", "length": "s", "lower": "s",
    "percentile_approx": "i, 0.5", "position": "'x', s", "power": "i, 2", "rand": "3", "sha1": "s", "size": "a",
    "substring": "s, 2", "to_char": "i, '999'", "upper": "s", "xpath_double": "s, 'a'",
}  # fmt: skip


@pytest.mark.spark
def test_synonyms_are_the_names_of_one_class_in_the_registry(lab_session: LabSession) -> None:
    registry = lab_session.spark._jsparkSession.sessionState().functionRegistry()
    names: dict[str, set[str]] = defaultdict(set)
    identifiers = registry.listFunction()
    for index in range(identifiers.size()):
        info = registry.lookupFunction(identifiers.apply(index)).get()
        names[info.getClassName().rpartition(".")[2]].add(info.getName())
    several = {kind: group for kind, group in names.items() if len(group) > 1 and kind not in _OPERATORS}
    registered = {frozenset(group) for kind, group in several.items() if kind not in _NO_SYNONYMS}
    ours: dict[str, set[str]] = defaultdict(set)
    for name, stands in SYNONYMS.items():
        if name not in _REPLACED:
            ours[stands] |= {name, stands}
    assert {frozenset(group) for group in ours.values()} == registered - {frozenset({"ifnull", "nvl"})}
    assert {name: SYNONYMS[name] for name in _REPLACED} == _REPLACED


@pytest.mark.spark
@pytest.mark.parametrize("stands", sorted({*SYNONYMS.values()}))
def test_synonyms_are_planned_alike(lab_session: LabSession, stands: str) -> None:
    arguments = _ARGUMENTS.get(stands, "i")
    names = [stands, *(name for name, other in SYNONYMS.items() if other == stands)]
    plans = {name: _plan(lab_session.spark, f"{name}({arguments})", names) for name in names}
    first = plans[stands]
    assert [name for name, plan in plans.items() if plan != first] == []


def _plan(spark: Any, call: str, names: list[str]) -> str:
    """Spark's plan of a call, without the name by which it is called."""
    rows = "select array(int(id)) as a, date_from_unix_date(int(id)) as d, int(id) as i, string(id) as s from range(2)"
    plan = str(
        spark.sql(f"select {call} as c from ({rows})")._jdf.queryExecution().optimizedPlan().canonicalized().toString()
    )
    # Some names are in capitals in a plan; variables of lambdas are numbered.
    return re.sub(rf"\b({'|'.join(names)})\(|#\d+L?|(?<=\w)_\d+", "(", plan, flags=re.IGNORECASE)
