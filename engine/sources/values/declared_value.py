"""`value:` of a declaration: how the values of its records are read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from engine.errors import near
from engine.schema import ValueForm
from engine.sources.spec import SourceSpec, SpecFault
from engine.sources.traits import ChangeFeed
from engine.sources.values import value_format


def change_feed(spec: SourceSpec) -> ChangeFeed | None:
    """What the records of a source are changes of; None: they are rows."""
    value = value_of(spec)
    feed = getattr(value_format(value["format"]), "change_feed", None)
    declared_feed: ChangeFeed | None = feed(value) if feed is not None else None
    return declared_feed


def value_of(spec: SourceSpec) -> dict[str, Any]:
    declared = spec.settings.get("value")
    declared = {"format": declared} if isinstance(declared, str) else declared
    return {"format": "json", **declared} if isinstance(declared, dict) else {"format": "json"}


def value_faults(spec: SourceSpec, formats: Collection[str]) -> Iterator[SpecFault]:
    """Return what is wrong with `value:` of a source whose values have one of some formats."""
    declared = spec.settings.get("value")
    if declared is not None and not isinstance(declared, (dict, str)):
        yield SpecFault(("value",), "'value' must be a mapping", "Write value: {format: json}.", "wrong-type")
        return
    value = value_of(spec)
    form = value_format(value["format"]) if str(value["format"]) in formats else None
    if form is None:
        message = f"'{value['format']}' is not a value format"
        yield SpecFault(("value", "format"), message, near(str(value["format"]), formats))
        return
    known_keys = tuple(form.KEYS)
    for key in value:
        if key not in known_keys:
            message = f"a value of format '{value['format']}' has no key '{key}'"
            yield SpecFault(("value", key), message, near(key, known_keys), "unknown-key", at_key=True)
        elif key != "format" and not _has_form(value[key], form.KEYS[key]):
            yield SpecFault(("value", key), f"'{key}' must be {_FORMS[form.KEYS[key]]}", "", "wrong-type")
            return
    yield from form.faults(spec, value)


_FORMS = {
    ValueForm.TEXT: "text", ValueForm.PATH: "text", ValueForm.DURATION: "text", ValueForm.INTEGER: "a whole number",
    ValueForm.BOOLEAN: "true or false", ValueForm.MAPPING: "a mapping", ValueForm.TEXTS: "a list",
    ValueForm.TREE: "a mapping",
}  # fmt: skip


def _has_form(value: Any, form: ValueForm) -> bool:
    match form:
        case ValueForm.INTEGER:
            return isinstance(value, int) and not isinstance(value, bool) and value >= 0
        case ValueForm.BOOLEAN:
            return isinstance(value, bool)
        case ValueForm.MAPPING:
            return isinstance(value, dict)
        case ValueForm.TEXTS:
            return isinstance(value, (str, list))
        case ValueForm.TREE:
            return True
        case _:
            return isinstance(value, (str, int, float)) and not isinstance(value, bool)
