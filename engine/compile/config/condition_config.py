"""Conditions over a row of the output: `delete_when`, and the checks of `expectations`."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from engine.compile.config.winning_values import MergedSettings
from engine.compile.nodes.model_settings import Expectation, OnFail
from engine.compile.sql.aggregates import has_aggregate
from engine.compile.sql.dialect import parse_text
from engine.compile.sql.parse import is_expression
from engine.compile.sql.token_checks import VARIABLE, VARIABLE_HINT, variable
from engine.errors import Location
from engine.project.yaml_section import UNKNOWN, Section, quote_text
from engine.schema.stream_keys import EXPECTATION

_CONDITION = "Write one SQL condition over the columns of the SELECT, such as amount > 0."
_EXPECTATION = "Write '- name: plausible', 'check: amount > 0' and 'on_fail: quarantine'."
_NOT_BOOLEAN = (exp.Literal, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.DPipe, exp.Star)


def read_condition(settings: MergedSettings, key: str, section: Section | None) -> str | None:
    if section is None or section.value is UNKNOWN:
        return None
    text = section.text().strip()
    if not text and not isinstance(section.value, str):
        return None
    if _has_variable(section, text):
        return None
    fault = condition_fault(text)
    if fault:
        section.report("condition-syntax", f"{quote_text(text)} {fault}", _CONDITION)
        return None
    for column in condition_columns(text):
        settings.name(key, column, section)
    return text


def _has_variable(section: Section, text: str) -> bool:
    name = variable(text)
    if name:
        section.report("spark-variable", VARIABLE.format(name), VARIABLE_HINT)
    return name is not None


def condition_fault(text: str) -> str:
    if not is_expression(text):
        return "is not an SQL expression"
    tree = _tree(text)
    if tree.find(exp.Query):
        return "reads a table, but a condition is evaluated on one row"
    if tree.find(exp.Window) or has_aggregate(tree):
        return "needs several rows, but a condition is evaluated row by row"
    return "is not true or false" if isinstance(tree.unnest(), _NOT_BOOLEAN) else ""


def _tree(text: str) -> exp.Expr:
    select = parse_text(f"SELECT {text}")
    tree: exp.Expr = select.expressions[0]
    return tree


def condition_columns(text: str) -> Iterator[str]:
    roots = (column.parts[0].name for column in _tree(text).find_all(exp.Column))
    yield from dict.fromkeys(roots)


def read_expectations(settings: MergedSettings) -> tuple[Expectation, ...]:
    section = settings.get("expectations")
    expectations: dict[str, Expectation] = {}
    for item in section.items() if section else ():
        expectation = _expectation(settings, item)
        if expectation is None:
            continue
        if expectation.name in expectations:
            message = f"two expectations have the name '{expectation.name}'"
            (item.child("name") or item).report("duplicate-name", message, "Give one of them another name.")
        expectations.setdefault(expectation.name, expectation)
    return tuple(expectations.values())


def condition_places(settings: MergedSettings) -> Iterator[tuple[str, Location]]:
    deletes, section = settings.get("delete_when"), settings.get("expectations")
    if deletes is not None:
        yield "delete_when", deletes.place
    if section is not None and isinstance(section.value, list):
        for item in section.items():
            name, check = item.child("name"), item.child("check")
            if check is not None and name is not None and isinstance(name.value, str):
                yield f"expectations.{name.value}", check.place


def _expectation(settings: MergedSettings, item: Section) -> Expectation | None:
    if not isinstance(item.value, dict):
        if item.value is not UNKNOWN:
            item.expected("an expectation with 'name' and 'check'")
        return None
    item.check_keys(EXPECTATION)
    name, check, on_fail, text = (item.child(key) for key in ("name", "check", "on_fail", "description"))
    if name is None or check is None:
        item.report("missing-key", "an expectation needs 'name' and 'check'", _EXPECTATION)
        return None
    policy = on_fail.choice(*OnFail) if on_fail else ""
    called, condition = name.identifier(), read_condition(settings, "expectations", check)
    if not called or condition is None:
        return None
    action = OnFail(policy) if policy in set(OnFail) else OnFail.WARN
    return Expectation(called, condition, action, text.text() if text else "")
