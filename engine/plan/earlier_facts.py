"""Facts that an earlier version recorded in another normal form, made comparable with those of now.

Its form had no letter case (`m.A` and `m.a` were one). Both sides lose what it had not recorded: what differs then has
changed, and what does not is probably the same, which is said and not assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.compile.sql.normalize import FORM, spelling_of
from engine.plan.comparison import Change, Comparison

NOTE = (
    "it was last written by an earlier version, which recorded the query without letter case: an edit of letter case "
    "or backticks alone is not seen this time"
)
_TEXTS = {"sql", "delete_when", "expression"}
_LISTS = {"windows", "expectations", "pre_hook"}


def is_earlier(facts: Mapping[str, Any]) -> bool:
    """Whether facts are in another normal form than those of this version."""
    return bool(facts.get("form") != FORM)


def without_letter_case(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts as far as the first normal form had them."""
    return {key: _value(key, value) for key, value in facts.items() if key != "form"}


def noted(found: Comparison, *, streaming: bool) -> Comparison:
    """What comes of a comparison without letter case: a table is recreated, a stream continues with a note."""
    if found.change not in {Change.UNCHANGED, Change.FORWARD, Change.ADDITIVE, Change.REBUILT}:
        return found
    change = {Change.UNCHANGED: Change.FORWARD}.get(found.change, found.change) if streaming else Change.REBUILT
    return Comparison(change, (*found.reasons, NOTE))


def _value(key: str, value: Any) -> Any:
    if key in _TEXTS and isinstance(value, str):
        return spelling_of(value).lower()
    if key in _LISTS:
        return _lowered(value)
    if key in {"state", "began", "keyed"}:
        return {**without_letter_case(value), "inputs": [_input(item) for item in value["inputs"]]}
    if key == "inlined":
        return {name: without_letter_case(inner) for name, inner in value.items()}
    if isinstance(value, Mapping):
        return {name: _value(name, inner) for name, inner in value.items()}
    return [_value("", inner) for inner in value] if isinstance(value, list) else value


def _input(item: Mapping[str, Any]) -> dict[str, Any]:
    columns = [[str(name).lower(), kind] for name, kind in item["columns"]] if item["columns"] is not None else None
    return {**without_letter_case(item), "columns": columns, "exact": False}


def _lowered(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _lowered(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_lowered(inner) for inner in value]
    return spelling_of(value).lower() if isinstance(value, str) else value
