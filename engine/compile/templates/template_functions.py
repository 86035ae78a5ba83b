"""Functions of dbt's templates that give a value and do nothing else; some give a value of one run.

A batch table is rebuilt from its text each time, which may hold such values. The text of a stream, of a view and of
what others take in is kept: there the same names are rejected.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import yaml

from engine.jinja import Absent
from engine.jinja.opaque_values import Opaque
from engine.project.parse_yaml import load_yaml


class RunValue(Opaque):
    """A value that differs from run to run; `may` is called at each use, `refusal` raises the error."""

    __slots__ = ("_may", "_refusal", "_value")

    def __init__(self, value: Any, refusal: Absent, may: Callable[[], bool]) -> None:
        self._value, self._refusal, self._may = value, refusal, may

    def __repr__(self) -> str:
        return "<value of the run>"

    def __str__(self) -> str:
        return str(self._value if self._may() else self._refusal)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._value if self._may() else self._refusal, name)

    def __getitem__(self, key: Any) -> Any:
        return (self._value if self._may() else self._refusal)[key]


_Function = Callable[..., Any]


def plain_functions() -> Mapping[str, _Function]:
    from engine.jinja import give_back

    return {
        "return": give_back,
        "tojson": tojson,
        "fromjson": fromjson,
        "toyaml": toyaml,
        "fromyaml": fromyaml,
        "set": distinct,
        "set_strict": distinct,
        "zip": pairs,
        "zip_strict": pairs,
    }


def tojson(value: Any, default: Any = None, sort_keys: bool = False) -> Any:
    try:
        return json.dumps(value, sort_keys=sort_keys)
    except (TypeError, ValueError, RecursionError):
        return default


def fromjson(text: str, default: Any = None) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return default


def toyaml(value: Any, default: Any = None, sort_keys: bool = False) -> Any:
    try:
        return yaml.safe_dump(value, sort_keys=sort_keys)
    except yaml.YAMLError:
        return default


def fromyaml(text: str, default: Any = None) -> Any:
    document, problems = load_yaml(text, "")
    return default if problems else document.data


def distinct(values: Iterable[Any], default: Any = None) -> Any:
    """The distinct values in the order of their first appearance: Python's own sets have another one in each run."""
    try:
        return list(dict.fromkeys(values))
    except TypeError:
        return default


def pairs(*lists: Iterable[Any], default: Any = None) -> Any:
    """The lists side by side, as long as the shortest."""
    try:
        return list(zip(*lists, strict=False))
    except TypeError:
        return default
