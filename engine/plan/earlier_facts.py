"""Facts that an earlier version recorded in another normal form, made comparable with those of now.

The first form had no letter case (`m.A` and `m.a` were one). Until the third, two adjacent strings (`'it' 's'`) and one
with a doubled quote (`'it''s'`) were one. Both sides lose what was not recorded: what differs then has changed, and
what does not is probably the same, which is said and not assumed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.compile.sql.lexer.lexemes import Kind, lexemes
from engine.compile.sql.normalize import FORM, spelling_of
from engine.plan.comparison import Change, Comparison

_LETTER_CASE: Final = (
    "it was last written by an earlier version, which recorded the query without letter case: an edit of letter case "
    "or backticks alone is not seen this time"
)
_QUOTES: Final = (
    "it was last written by an earlier version, which recorded 'it''s' and 'it' 's' alike: an edit of one into the "
    "other is not seen this time"
)
_FIRST, _SECOND = None, 2
_TEXTS = {"sql", "delete_when", "expression"}
_LISTS = {"windows", "expectations", "pre_hook"}
# Signs that the second form wrote as several.
_TAKEN_APART: Final = re.compile(r"(?<=[<>!]) (?=[<>])| \. (?=[0-9])")


@dataclass(frozen=True, slots=True)
class ComparableFacts:
    """Facts of two versions in one form; `note` says what that form does not show, empty: nothing."""

    before: Mapping[str, Any]
    now: Mapping[str, Any]
    note: str = ""


def is_first_form(facts: Mapping[str, Any]) -> bool:
    """Whether facts are in the form without letter case."""
    return facts.get("form") is _FIRST


def in_one_form(before: Mapping[str, Any], now: Mapping[str, Any]) -> ComparableFacts:
    """Return facts, perhaps of an earlier version, and those of now, so that they can be compared."""
    form = before.get("form")
    if form == FORM:
        return ComparableFacts(before, now)
    if form == _SECOND and not any(map(_has_adjacent_strings, _texts(before))):
        respelled = _each(before, lambda text: spelling_of(_joined(text)))
        return ComparableFacts(respelled, _each(now, str))
    lower = form != _SECOND

    def coarse(text: str) -> str:
        spelled = spelling_of(_joined(text)).replace("' '", "").replace("\\'", "")
        return spelled.lower() if lower else spelled

    both = [_each(facts, coarse) for facts in (before, now)]
    if lower:
        both = [_without_types(facts) for facts in both]
    return ComparableFacts(both[0], both[1], _LETTER_CASE if lower else _QUOTES)


def noted(found: Comparison, note: str, *, streaming: bool) -> Comparison:
    """What comes of a comparison that did not see all: a table is recreated, a stream continues with a note."""
    if not note or found.change not in {Change.UNCHANGED, Change.FORWARD, Change.ADDITIVE, Change.REBUILT}:
        return found
    change = {Change.UNCHANGED: Change.FORWARD}.get(found.change, found.change) if streaming else Change.REBUILT
    return Comparison(change, (*found.reasons, note))


def _joined(text: str) -> str:
    """A text of an earlier form, with the signs that it took apart."""
    parts, at = [], 0
    for kind, start, end in lexemes(text):
        if kind is Kind.STRING or kind is Kind.QUOTED_NAME or kind is Kind.RAW_STRING:
            parts += [_TAKEN_APART.sub(_closer, text[at:start]), text[start:end]]
            at = end
    return "".join([*parts, _TAKEN_APART.sub(_closer, text[at:])])


def _closer(match: re.Match[str]) -> str:
    return " ." if "." in match[0] else ""


def _has_adjacent_strings(text: str) -> bool:
    kinds = [kind for kind, _, _ in lexemes(text)] if "' '" in text or '" "' in text else []
    return any(kinds[i : i + 2] == [Kind.STRING] * 2 for i in range(len(kinds)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _each(facts: Mapping[str, Any], spelled: Callable[[str], str]) -> dict[str, Any]:
    """The facts with another form of their SQL, and without the number of it."""
    return {key: _value(key, value, spelled) for key, value in facts.items() if key != "form"}


def _value(key: str, value: Any, spelled: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return spelled(value) if key in _TEXTS or key in _LISTS else value
    if isinstance(value, Mapping):
        inside = {name: _value(key if key in _LISTS else name, inner, spelled) for name, inner in value.items()}
        return {name: inner for name, inner in inside.items() if name != "form"}
    if isinstance(value, list):
        return [_value(key if key in _LISTS else "", inner, spelled) for inner in value]
    return value


def _without_types(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts as the first form had their inputs."""
    result = dict(facts)
    for key in {"state", "began", "keyed"} & facts.keys():
        result[key] = {**facts[key], "inputs": [_input(item) for item in facts[key]["inputs"]]}
    if "inlined" in facts:
        result["inlined"] = {name: _without_types(inner) for name, inner in facts["inlined"].items()}
    return result


def _input(item: Mapping[str, Any]) -> dict[str, Any]:
    columns = [[str(name).lower(), kind] for name, kind in item["columns"]] if item["columns"] is not None else None
    return {**item, "columns": columns, "exact": False}
